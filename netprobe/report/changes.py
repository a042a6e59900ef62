"""Compares two runs: newly blocked, fixed and unchanged flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from netprobe.model.ports import PortRange, Ports, count, intersect, normalise, subtract
from netprobe.model.result import Result
from netprobe.report.flow_groups import Addresses, flow_lines, need
from netprobe.report.page import Line, PagePart, Style
from netprobe.report.page import field as fields
from netprobe.report.record import ResultKey, key_of
from netprobe.report.wording import plural, ports_of

Class = Literal["good", "bad", "open"]

_CLASSES: dict[str, Class] = {"pass": "good", "blocked": "bad", "exposed": "bad"}
_MOST_LINES = 40
# Stands for the one flow of a protocol that has no ports.
_PORTLESS: Ports = ((0, 0),)


class Fate(NamedTuple):
    """What became of a flow in one run, and for a failure what was seen of it."""

    kind: Class
    seen: str = ""


# Of every flow of a run the ports by their fate.
Fates = Mapping[ResultKey, Mapping[Fate, Ports]]


@dataclass(slots=True)
class Changes:
    """Flows of the new run by what became of them.

    ``otherwise`` are failures that fail in another way than before, by what was seen then.
    ``known`` counts flows that pass and were not known before, ``unchanged`` all others, and
    ``failed`` those that failed before, whether or not the new run has them. ``gone`` counts flows
    that the new run has not, ``gone_failed`` those among them that failed before.
    """

    worse: list[Result] = field(default_factory=list)
    fixed: list[Result] = field(default_factory=list)
    still: list[Result] = field(default_factory=list)
    otherwise: dict[str, list[Result]] = field(default_factory=dict)
    unknown: list[Result] = field(default_factory=list)
    known: int = 0
    unchanged: int = 0
    failed: int = 0
    gone: int = 0
    gone_failed: int = 0

    def counts(self) -> dict[str, int]:
        """Give the flows of every kind of change, worst first."""
        return {
            "worse": _count_flows(self.worse),
            "unknown": _count_flows(self.unknown),
            "fixed": _count_flows(self.fixed),
            "otherwise": sum(map(_count_flows, self.otherwise.values())),
            "still": _count_flows(self.still),
            "known": self.known,
            "unchanged": self.unchanged,
            "failed": self.failed,
        }


def fates_of(results: Iterable[Result]) -> Fates:
    """Give what became of every flow of a run; a flow is one requirement and its two ends."""
    found: dict[ResultKey, dict[Fate, list[PortRange]]] = {}
    for result in results:
        ranges = found.setdefault(key_of(result), {}).setdefault(_fate_of(result), [])
        ranges.extend(ports_of(result) or _PORTLESS)
    return {
        key: {fate: normalise(ranges) for fate, ranges in fates.items()}
        for key, fates in found.items()
    }


def compare(old: Fates, new: Iterable[Result]) -> Changes:
    """Compare flow by flow, port by port."""
    changes = Changes()
    for fates in old.values():
        for fate, ports in fates.items():
            changes.gone += count(ports)
            changes.failed += count(ports) if fate.kind == "bad" else 0
    changes.gone_failed = changes.failed
    for result in new:
        _sort_in(changes, result, old.get(key_of(result), {}))
    return changes


def _fate_of(result: Result) -> Fate:
    kind = _CLASSES.get(result.verdict, "open")
    if kind != "bad":
        return Fate(kind)
    by = f" by {result.rejected_by}" if result.rejected_by else ""
    return Fate(kind, f"{result.state}, {result.reason}{by}")


def _sort_in(changes: Changes, result: Result, before: Mapping[Fate, Ports]) -> None:
    """Cut one result where the ports' former fates differ."""
    ports = ports_of(result) or _PORTLESS
    seen: Ports = ()
    for fate, former in before.items():
        common = intersect(ports, former)
        seen = normalise((*seen, *common))
        changes.gone -= count(common)
        changes.gone_failed -= count(common) if fate.kind == "bad" else 0
        for part in common:
            _sort_into_changes(changes, _cut_to_range(result, part), fate)
    for part in subtract(ports, seen):
        _sort_into_changes(changes, _cut_to_range(result, part), None)


def _cut_to_range(result: Result, part: PortRange) -> Result:
    return result if (part,) == _PORTLESS else replace(result, port=part[0], end_port=part[1])


def _sort_into_changes(changes: Changes, result: Result, before: Fate | None) -> None:
    now = _fate_of(result)
    kind = before and before.kind
    if now.kind == "bad" and before is not None and kind == "bad":
        alike = now == before
        (changes.still if alike else changes.otherwise.setdefault(before.seen, [])).append(result)
    elif now.kind == "bad":
        changes.worse.append(result)
    elif now.kind == "good" and kind == "bad":
        changes.fixed.append(result)
    elif now.kind == "open" and kind in ("good", "bad"):
        changes.unknown.append(result)
    elif now.kind == "good" and kind == "open":
        changes.known += result.port_count
    else:
        changes.unchanged += result.port_count


def change_parts(changes: Changes, addresses: Addresses) -> Iterator[Sequence[PagePart]]:
    """Give a section for each kind of change that there is, what became worse first."""
    sections: tuple[tuple[str, Mapping[str, Sequence[Result]], Style], ...] = (
        ("NEWLY BLOCKED OR EXPOSED", {"": changes.worse}, "bad"),
        ("NO LONGER KNOWN", {"": changes.unknown}, "doubt"),
        ("FIXED", {"": changes.fixed}, "good"),
        ("STILL BLOCKED OR EXPOSED, IN ANOTHER WAY", changes.otherwise, "plain"),
        ("STILL BLOCKED OR EXPOSED", {"": changes.still}, "plain"),
    )
    for title, by_fate, style in sections:
        flows = sum(map(_count_flows, by_fate.values()))
        if flows:
            head = Line(f"{title} ({plural(flows, 'flow')})", style)
            rest = (_list_results(then, some, addresses) for then, some in by_fate.items())
            yield head, *(part for parts in rest for part in parts)


def _count_flows(results: Sequence[Result]) -> int:
    return sum(result.port_count for result in results)


def _list_results(then: str, results: Sequence[Result], addresses: Addresses) -> Iterator[PagePart]:
    by_need: dict[str, list[Result]] = {}
    for result in results:
        by_need.setdefault(need(result), []).append(result)
    for text, members in by_need.items():
        yield from fields("flows", flow_lines(members, addresses, _MOST_LINES))
        yield from fields("purpose", [text])
        yield from fields("before", [then] if then else [])
        yield from fields("seen", [members[0].because])
