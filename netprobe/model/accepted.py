"""Failures that somebody accepted until a day (docs/accepted-format.md)."""

from __future__ import annotations

from datetime import date
from typing import Final, Literal, get_args

from msgspec import Struct

from netprobe.model.ports import Ports
from netprobe.model.result import AcceptedBy, Place
from netprobe.model.shapes import (
    AddressText,
    Day,
    LastDay,
    LineText,
    Name,
    ProtocolText,
    RowId,
)

ACCEPTED_SCHEMA: Final = "netprobe.accepted/1"
# ``until`` of an entry without a last day.
NEVER: Final = "never"
# An entry that ends so soon is told as expiring.
EXPIRING_DAYS: Final = 14
# From ``since`` to ``until``; ``--max-acceptance`` says otherwise.
MAX_ACCEPTANCE_DAYS: Final = 365

AcceptedVerdict = Literal["blocked", "exposed", "inconclusive"]
AcceptanceState = Literal[
    "expired", "not-yet", "stale", "unmatched", "elsewhere", "too-wide", "expiring", "active",
    "unseen",
]  # fmt: skip
# First those that somebody has to look at.
STATES: Final[tuple[AcceptanceState, ...]] = get_args(AcceptanceState)


class Acceptance(Struct, frozen=True, kw_only=True):
    """One entry: these failures, of all of these sources to all of these destinations.

    A host to itself is meant only where it alone stands at both ends. No ``addresses``: whatever
    address the destinations have. No ``where``: wherever the flows are stopped, else only while all
    places that are possible are among these. ``since`` and ``until``, the last day on which the
    entry holds, are ISO dates; ``until`` may be ``never``.
    """

    id: Name
    matrix: Name
    requirement: RowId
    from_: tuple[LineText, ...]
    to: tuple[LineText, ...]
    addresses: tuple[AddressText, ...] = ()
    protocol: ProtocolText
    ports: Ports = ()
    verdict: AcceptedVerdict
    where: tuple[Place, ...] = ()
    reason: str
    owner: str
    ticket: str
    since: Day
    until: LastDay

    def has_begun(self, today: date) -> bool:
        """Tell whether the first day has come."""
        return self.since <= today.isoformat()

    def has_ended(self, today: date) -> bool:
        """Tell whether the last day is over."""
        return self.until != NEVER and self.until < today.isoformat()

    @property
    def signature(self) -> AcceptedBy:
        """What results repeat of the entry."""
        return AcceptedBy(self.id, self.reason, self.owner, self.until)


class CheckedAcceptance(Acceptance, frozen=True, kw_only=True):
    """An entry held against a run: ``flows`` of the run fail as it says, ``passing`` ones pass.

    ``counting`` of ``flows`` decide the exit status: nothing else excuses them. ``elsewhere`` flows
    have its verdict, but not, or not for certain, at its places.

    ``state``: ``expired`` (its last day is over), ``not-yet`` (its first day has not come),
    ``stale`` (none of its flows fails so any more), ``unmatched`` (the run has no flow of it),
    ``elsewhere`` (all that fail are at other places), ``unseen`` (the run cannot tell),
    ``too-wide`` (some of its flows pass), ``expiring`` (ends within 14 days), else ``active``.
    ``days_left`` is 0 on the last day; None without one.
    """

    state: AcceptanceState
    flows: int = 0
    counting: int = 0
    elsewhere: int = 0
    passing: int = 0
    days_left: int | None = None

    @property
    def is_in_force(self) -> bool:
        """Whether its flows do not count."""
        return self.state not in ("expired", "not-yet")
