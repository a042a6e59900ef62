"""What changed between two runs, in sections: what became worse first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netprobe.model.result import Result
from netprobe.report.page.flow_groups import Addresses, NeedKey, flow_lines, need, need_key
from netprobe.report.page.page import (
    Field,
    Line,
    PageSection,
    Style,
    field,
    section,
)
from netprobe.report.page.wording import number, plural
from netprobe.report.record.changes import Changes, Fate, Unshared, count_flows

# Results by what became of their flows before, where that says something.
Changed = Mapping[Fate, Sequence[Result]] | Mapping[None, Sequence[Result]]

_MOST_LINES = 40
_MOST_REQUIREMENTS = 20


def change_sections(changes: Changes, addresses: Addresses) -> Iterator[PageSection]:
    """Give a section for each kind of change that there is, and for what each run alone probed."""
    kinds: tuple[tuple[str, str, Changed, Style], ...] = (
        ("worse", "NEWLY BLOCKED OR EXPOSED", {None: changes.worse}, "bad"),
        ("decided", "NOW DECIDED: BLOCKED OR EXPOSED", {None: changes.decided}, "bad"),
        ("unknown", "NO LONGER KNOWN", {None: changes.unknown}, "doubt"),
        ("fixed", "FIXED", {None: changes.fixed}, "good"),
        ("moved", "MOVED: STILL BLOCKED OR EXPOSED, AT ANOTHER PLACE", changes.moved, "plain"),
        ("otherwise", "STILL BLOCKED OR EXPOSED, IN ANOTHER WAY", changes.otherwise, "plain"),
        ("still", "STILL BLOCKED OR EXPOSED", {None: changes.still}, "plain"),
    )
    for name, title, by_fate, style in kinds:
        flows = sum(map(count_flows, by_fate.values()))
        fields = (_list_results(then, some, addresses) for then, some in by_fate.items())
        head = Line(f"{title} ({plural(flows, 'flow')})", style)
        yield from section(name, head, (one for some in fields for one in some))
    yield from _list_unshared("only-later", "LATER", changes.only_later, addresses)
    yield from _list_unshared("only-earlier", "EARLIER", changes.only_earlier, addresses)


def _list_unshared(
    name: str, which: str, some: Unshared, addresses: Addresses
) -> Iterator[PageSection]:
    failed = f", {number(some.failed)} of them blocked or exposed" if some.failed else ""
    title = f"ONLY THE {which} RUN PROBED ({plural(some.flows, 'flow')}{failed})"
    lines = [
        Line(f"{requirement} ({matrix}): {names.text(addresses)}")
        for (matrix, requirement), names in some.names.items()
    ]
    rest = len(lines) - _MOST_REQUIREMENTS
    if rest > 0:
        lines[_MOST_REQUIREMENTS:] = [Line(f"and {plural(rest, 'more requirement')}", "quiet")]
    yield from section(name, Line(title, "doubt"), lines)


def _list_results(
    then: Fate | None, results: Sequence[Result], addresses: Addresses
) -> Iterator[Field]:
    by_need: dict[NeedKey, list[Result]] = {}
    for result in results:
        by_need.setdefault(need_key(result), []).append(result)
    for members in by_need.values():
        yield from field("flows", flow_lines(members, addresses, _MOST_LINES))
        yield from field("purpose", [need(members[0])])
        yield from field("before", [str(then)] if then else [])
        yield from field("seen", [members[0].because])
