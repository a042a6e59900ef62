"""Compares two runs: newly blocked, fixed and unchanged flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TextIO

from netprobe.model.ports import PortRange, Ports, intersect, normalise, subtract
from netprobe.model.result import Result
from netprobe.model.run import RunInfo
from netprobe.report.flow_groups import Addresses, addresses_of, flow_lines, need
from netprobe.report.page import Line, PagePart, Style
from netprobe.report.page import field as fields
from netprobe.report.record import ResultKey, key_of
from netprobe.report.text_run import write_parts
from netprobe.report.wording import number, plural, ports_of

Class = Literal["good", "bad", "open"]

_CLASSES: dict[str, Class] = {"pass": "good", "blocked": "bad", "exposed": "bad"}
_MOST_LINES = 40
# Stands for the one flow of a protocol that has no ports.
_PORTLESS: Ports = ((0, 0),)


@dataclass(slots=True)
class Changes:
    """Flows of the new run by what became of them.

    ``known`` counts flows that pass and were not known before, ``unchanged`` all others.
    """

    worse: list[Result] = field(default_factory=list)
    fixed: list[Result] = field(default_factory=list)
    still: list[Result] = field(default_factory=list)
    unknown: list[Result] = field(default_factory=list)
    known: int = 0
    unchanged: int = 0


def compare(old: Iterable[Result], new: Iterable[Result]) -> Changes:
    """Compare flow by flow, port by port; a flow is the same if its requirement and ends are."""
    before: dict[ResultKey, dict[Class, list[PortRange]]] = {}
    for result in old:
        ranges = before.setdefault(key_of(result), {}).setdefault(_class_of(result), [])
        ranges.extend(ports_of(result) or _PORTLESS)
    known = {
        key: {kind: normalise(ranges) for kind, ranges in classes.items()}
        for key, classes in before.items()
    }
    changes = Changes()
    for result in new:
        _sort_in(changes, result, known.get(key_of(result), {}))
    return changes


def _class_of(result: Result) -> Class:
    return _CLASSES.get(result.verdict, "open")


def _sort_in(changes: Changes, result: Result, before: dict[Class, Ports]) -> None:
    """Cut one result where the ports' former fates differ."""
    ports = ports_of(result) or _PORTLESS
    seen: Ports = ()
    for kind, former in before.items():
        common = intersect(ports, former)
        seen = normalise((*seen, *common))
        for part in common:
            _sort_into_changes(changes, _cut_to_range(result, part), kind)
    for part in subtract(ports, seen):
        _sort_into_changes(changes, _cut_to_range(result, part), None)


def _cut_to_range(result: Result, part: PortRange) -> Result:
    return result if (part,) == _PORTLESS else replace(result, port=part[0], end_port=part[1])


def _sort_into_changes(changes: Changes, result: Result, before: Class | None) -> None:
    now = _class_of(result)
    if now == "bad":
        (changes.still if before == "bad" else changes.worse).append(result)
    elif now == "good" and before == "bad":
        changes.fixed.append(result)
    elif now == "open" and before in ("good", "bad"):
        changes.unknown.append(result)
    elif now == "good" and before == "open":
        changes.known += result.port_count
    else:
        changes.unchanged += result.port_count


def write_diff(changes: Changes, runs: tuple[RunInfo, RunInfo], stream: TextIO) -> None:
    """Write what became worse first."""
    write_parts(_page_parts(changes, runs), stream)


def _page_parts(changes: Changes, runs: tuple[RunInfo, RunInfo]) -> Iterator[PagePart]:
    sections: tuple[tuple[str, Sequence[Result], Style], ...] = (
        ("NEWLY BLOCKED OR EXPOSED", changes.worse, "bad"),
        ("NO LONGER KNOWN", changes.unknown, "doubt"),
        ("FIXED", changes.fixed, "good"),
        ("STILL BLOCKED OR EXPOSED", changes.still, "plain"),
    )
    old, new = runs
    for title, results, style in sections:
        if results:
            yield Line(f"{title} ({plural(_count_flows(results), 'flow')})", style)
            yield from _list_results(results, addresses_of(old, new))
            yield Line()
    worse, unknown, fixed, still = (number(_count_flows(results)) for _, results, _ in sections)
    yield Line(
        f"{old.started_at} to {new.started_at}: {worse} newly blocked or exposed, "
        f"{unknown} no longer known, {fixed} fixed, {still} still blocked or exposed, "
        f"{number(changes.known)} newly known to pass, {number(changes.unchanged)} unchanged"
    )


def _count_flows(results: Sequence[Result]) -> int:
    return sum(result.port_count for result in results)


def _list_results(results: Sequence[Result], addresses: Addresses) -> Iterator[PagePart]:
    by_need: dict[str, list[Result]] = {}
    for result in results:
        by_need.setdefault(need(result), []).append(result)
    for text, members in by_need.items():
        yield from fields("flows", flow_lines(members, addresses, _MOST_LINES))
        yield from fields("purpose", [text])
        yield from fields("seen", [members[0].because])
