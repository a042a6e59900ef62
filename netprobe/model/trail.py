"""The trail of one flow: an entry for every check, which tells what the check saw.

A run leaves it in the evidence and ``explain`` prints it; the stages of the Konnectivity diagnosis
are entries too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# ``ok``: nothing against the flow · ``bad``: here the flow fails · ``doubt``: something is odd ·
# ``not-needed``: nothing to check here · ``not-possible``: nobody could check, the words say why
TrailStatus = Literal["ok", "bad", "doubt", "not-needed", "not-possible"]

Facts = Mapping[str, Any]  # Any: JSON values, and records of the wire


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """What one check saw: ``words`` are sentences for people, ``facts`` the same for programs.

    ``name`` is the check's own name, ``elapsed_ms`` how long it took (0 where nobody measured).
    """

    name: str
    status: TrailStatus = "ok"
    words: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    elapsed_ms: int = 0

    @property
    def is_skipped(self) -> bool:
        """Whether the check did not look: it was not needed, or not possible."""
        return self.status in ("not-needed", "not-possible")
