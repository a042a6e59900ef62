"""The trail of one flow: an entry for every check, which tells what the check saw.

A run leaves it in the evidence. ``explain`` and the Konnectivity diagnosis print steps, which have
words and facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

# ``ok``: nothing against the flow · ``bad``: here the flow fails · ``doubt``: something is odd ·
# ``not-needed``: nothing to check here · ``not-possible``: nobody could check, the words say why
TrailStatus = Literal["ok", "bad", "doubt", "not-needed", "not-possible"]

Facts = Mapping[str, Any]  # Any: JSON values


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """What one check saw of a flow; ``name`` is the check's own.

    ``note`` is one of ``model/notes.py``, or an answer of the wire;
    ``elapsed_ms`` how long it took (0 where nobody measured).
    """

    name: str
    status: TrailStatus = "ok"
    note: NamedTuple | None = None
    elapsed_ms: int = 0

    def facts(self) -> dict[str, Any]:
        """Give the note for programs; a field with its default was not looked at."""
        if self.note is None:
            return {}
        defaults = self.note._field_defaults
        given = self.note._asdict().items()
        return {name: one for name, one in given if name not in defaults or one != defaults[name]}


@dataclass(frozen=True, slots=True)
class Step:
    """One step on a page: ``words`` are sentences for people, ``facts`` the same for programs."""

    name: str
    status: TrailStatus = "ok"
    words: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    elapsed_ms: int = 0

    @property
    def is_skipped(self) -> bool:
        """Whether nobody looked: it was not needed, or not possible."""
        return self.status in ("not-needed", "not-possible")
