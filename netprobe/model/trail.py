"""The trail of a flow: one entry for everything that was looked at, in order.

A run leaves it in the evidence, ``explain`` prints it, and the stages of the Konnectivity diagnosis
are entries too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# ``ok``: nothing against the flow · ``bad``: here the flow fails · ``doubt``: something is odd ·
# ``not-needed``: nothing to ask here · ``not-possible``: nobody could look, the words say why
TrailStatus = Literal["ok", "bad", "doubt", "not-needed", "not-possible"]

Facts = Mapping[str, Any]  # Any: JSON values, and records of the wire


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """One look: ``words`` are sentences for people, ``facts`` the same for programs."""

    name: str
    status: TrailStatus = "ok"
    words: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    elapsed_ms: int = 0
