"""Find the finding that an untested flow waits for: its row's own port is stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from netprobe.model.plan import find_row
from netprobe.model.reason import Team
from netprobe.model.reasons import find_reason, owner_of
from netprobe.model.result import Finding, Result
from netprobe.report.record.collector import Report

# Matrix, row, protocol, source, destination.
WayKey = tuple[str, str, str, str, str]


class Awaited:
    """The findings of a run, by the flows of rows that they hold."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._findings = findings

    def find(self, result: Result) -> Finding | None:
        """Give the finding that a flow waits for: that of its row's port there, or else back.

        None: it waits for none, or what it waits for is no finding.
        """
        if not find_reason(result.reason).waits:
            return None
        held = (*self._list_holding(result), *self._list_holding_back(result))
        return held[0] if held else None

    def _list_holding(self, result: Result) -> Iterator[Finding]:
        for member, finding in self._by_way.get(_key_way(result), ()):
            if member.address == result.address and _have_port(member, result):
                yield finding

    def _list_holding_back(self, result: Result) -> Iterator[Finding]:
        matrix, row, protocol, source, destination = _key_way(result)
        back = (matrix, row, protocol, destination, source)
        for member, finding in self._by_way.get(back, ()):
            same_family = (":" in member.address) == (":" in result.address)
            if same_family and _have_port(member, result):
                yield finding

    @cached_property
    def _by_way(self) -> dict[WayKey, list[tuple[Result, Finding]]]:
        found: dict[WayKey, list[tuple[Result, Finding]]] = {}
        for finding in self._findings:
            for member in finding.members:
                if member.requirement == find_row(member.requirement):
                    found.setdefault(_key_way(member), []).append((member, finding))
        return found


def count_untested(report: Report) -> Counter[Team]:
    """Count the required flows that nobody could look at for who must act: those that wait for a
    finding are its owner's."""
    untested = report.summary.deciding.get("not-tested", 0)
    counts: Counter[Team] = Counter()
    if report.collector.waiting:
        awaited = Awaited(report.findings)
        for result in report.collector.failures():
            finding = awaited.find(result) if result.decides else None
            if finding is not None:
                counts[owner_of(finding)] += result.port_count
    counts["ourselves"] += untested - counts.total()
    return counts


def _key_way(result: Result) -> WayKey:
    row = find_row(result.requirement)
    return (result.matrix, row, result.protocol, result.source, result.destination)


def _have_port(one: Result, other: Result) -> bool:
    """Tell whether two results have a port in common."""
    return any(
        first <= other_last and other_first <= last
        for first, last in one.ports
        for other_first, other_last in other.ports
    )
