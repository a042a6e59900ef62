"""Holds failures against what somebody accepted until a day: after judging, by flow and port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import asdict, replace

from netprobe.model.accepted import (
    EXPIRING_DAYS,
    NEVER,
    Acceptance,
    AcceptanceState,
    CheckedAcceptance,
)
from netprobe.model.ports import count, divide
from netprobe.model.result import PORTLESS, Result
from netprobe.model.run import RunInfo


class Acceptances:
    """The entries of a file of accepted flows, by what they are about, as they hold on a day."""

    def __init__(self, entries: Sequence[Acceptance], today: date) -> None:
        self._entries = entries
        self._today = today
        self._index: dict[tuple[str, str, str, str], list[_Scope]] = {}
        for entry in entries:
            scope = _Scope.of(entry)
            for host in scope.destinations:
                key = (entry.matrix, entry.requirement, entry.protocol, host)
                self._index.setdefault(key, []).append(scope)

    def mark(self, result: Result) -> Iterator[Result]:
        """Give the result, cut where some of its ports are accepted and others are not.

        What an earlier run said of it is forgotten.
        """
        rest = result if result.accepted is None else replace(result, accepted=None)
        left = result.ports or PORTLESS
        for scope in self._scopes_of(result):
            if scope.fits(result) and self._is_in_force(scope.entry):
                marked = replace(rest, accepted=scope.entry.signature)
                common, left = divide(left, scope.entry.ports or PORTLESS)
                yield from map(marked.cut, common)
        yield from map(rest.cut, left)

    def check(self, results: Iterable[Result], info: RunInfo) -> tuple[CheckedAcceptance, ...]:
        """Say of every entry what became of its flows in this run."""
        counts: dict[str, Counter[str]] = {entry.id: Counter() for entry in self._entries}
        for result in results:
            for scope in self._scopes_of(result):
                flows, of_entry = scope.count_flows(result), counts[scope.entry.id]
                fits = scope.fits(result)
                of_entry["flows" if fits else result.verdict] += flows
                of_entry["counting"] += flows if fits and result.decides else 0
        return tuple(self._check_entry(entry, counts[entry.id], info) for entry in self._entries)

    def _is_in_force(self, entry: Acceptance) -> bool:
        return entry.has_begun(self._today) and not entry.has_ended(self._today)

    def _scopes_of(self, result: Result) -> Iterator[_Scope]:
        keys = ((*name, result.protocol, result.destination) for name in result.names)
        scopes = (scope for key in keys for scope in self._index.get(key, ()))
        return (scope for scope in scopes if scope.count_flows(result))

    def _check_entry(
        self, entry: Acceptance, counts: Counter[str], info: RunInfo
    ) -> CheckedAcceptance:
        days = None
        if entry.until != NEVER:
            days = (date.fromisoformat(entry.until) - self._today).days
        return CheckedAcceptance(
            **asdict(entry),
            state=self._choose_state(entry, counts, info, days),
            flows=counts["flows"],
            counting=counts["counting"],
            elsewhere=counts[entry.verdict],
            passing=counts["pass"],
            days_left=days,
        )

    def _choose_state(
        self, entry: Acceptance, counts: Counter[str], info: RunInfo, days: int | None
    ) -> AcceptanceState:
        if not self._is_in_force(entry):
            return "expired" if entry.has_ended(self._today) else "not-yet"
        if not counts["flows"]:
            return _choose_needless(entry, counts, info)
        if counts["pass"]:
            return "too-wide"
        return "expiring" if days is not None and days <= EXPIRING_DAYS else "active"


class _Scope(Struct, frozen=True):
    """An entry with its names as sets: it may list hundreds of hosts."""

    entry: Acceptance
    sources: frozenset[str]
    destinations: frozenset[str]

    @classmethod
    def of(cls, entry: Acceptance) -> _Scope:
        return cls(entry, frozenset(entry.from_), frozenset(entry.to))

    def count_flows(self, result: Result) -> int:
        """Count the flows of a result, to a destination of the entry, that the entry names."""
        if result.source not in self.sources:
            return 0
        alone = len(self.sources) == len(self.destinations) == 1
        if result.source == result.destination and not alone:
            return 0
        if self.entry.addresses and result.address not in self.entry.addresses:
            return 0
        return count(divide(result.ports or PORTLESS, self.entry.ports or PORTLESS)[0])

    def fits(self, result: Result) -> bool:
        """Tell whether it fails as the entry says."""
        where = self.entry.where
        at_place = not where or (bool(result.where) and set(result.where) <= set(where))
        return result.verdict == self.entry.verdict and at_place


def _choose_needless(entry: Acceptance, counts: Counter[str], info: RunInfo) -> AcceptanceState:
    """Choose the state of an entry where no flow of the run fails as it says."""
    if counts[entry.verdict]:
        return "elsewhere"
    if not _has_seen_all(entry, counts, info):
        return "unseen"
    return "stale" if counts.total() else "unmatched"


def _has_seen_all(entry: Acceptance, counts: Counter[str], info: RunInfo) -> bool:
    """Tell whether the run has probed and judged all flows of the entry: then nobody needs it.

    What was not tested or could not be judged may fail as before. So may what a part of a plan, or
    a run of other matrices, has not, unless it had all of these flows.
    """
    if counts["inconclusive"] or counts["not-tested"]:
        return False
    is_part = info.selection is not None or info.sample is not None or not info.complete
    is_known = entry.matrix in {matrix.name for matrix in info.matrices}
    return (is_known and not is_part) or counts.total() >= _count_all(entry)


def _count_all(entry: Acceptance) -> int:
    """Count the flows of an entry, as if each destination had one address."""
    hosts, ends = set(entry.from_), set(entry.to)
    to_itself = 0 if len(hosts) == len(ends) == 1 else len(hosts & ends)
    return (len(hosts) * len(ends) - to_itself) * count(entry.ports or PORTLESS)
