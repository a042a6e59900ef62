"""The map in the terminal: right without colour, as wide as there is room, small for many hosts."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.result import AcceptedBy
from netprobe.report.page.page import write_plain
from netprobe.report.page.terminal import write_terminal
from netprobe.report.record.collector import Report
from netprobe.report.run import map as map_run
from netprobe.report.run import write_map
from netprobe.report.run.map import SIGNS, map_parts
from netprobe.report.run.pair_map import group_alike, map_pairs, sort_hosts
from tests.report.estate import make_estate
from tests.report.golden import check_golden
from tests.report.samples import BLOCKED, INFO, PASSED, everything, flow, port, report_of


def lines_of(report: Report, width: int) -> list[str]:
    stream = io.StringIO()
    write_plain(map_parts(report, width), stream)
    return stream.getvalue().splitlines()


@pytest.mark.slow
def test_map() -> None:
    """Letters in a pipe; a zone that another cannot reach is one line and one column."""
    stream = io.StringIO()
    write_map(make_estate(24), stream)

    check_golden("map.txt", stream.getvalue())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_and_maps_keep_to_the_width(width: int) -> None:
    """Columns without room follow below; only sentences are longer, and those are wrapped."""
    lines = lines_of(everything(), width)
    tables = [line for line in lines if not re.search("→|:|^and |^from ", line)]

    assert [line for line in tables if len(line) > width] == []


def test_all_pass_is_a_table_and_no_map() -> None:
    """One sentence, one table."""
    lines = lines_of(report_of([PASSED]), 80)

    assert lines[0] == "PASS: the required flow is as it should be"
    assert "        master" in lines
    assert "master  . 1" in lines
    assert not [line for line in lines if "→" in line]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"waived": "until Monday"}, "waived"),
        ({"optional": True}, "optional"),
        ({"known": "base.json"}, "known"),
        ({"accepted": AcceptedBy("a1", "new firewall", "team", "2027-01-31")}, "accepted"),
    ],
)
def test_what_is_excused_is_neither_bad_nor_a_pass(change: dict[str, Any], word: str) -> None:
    """It has a sign of its own between them, and is counted by why it decides nothing."""
    report = report_of([PASSED, flow(replace(BLOCKED, **change), 1)])
    bad = report_of([PASSED, flow(replace(BLOCKED, **change), 1), flow(BLOCKED, 2)])
    (cell,) = map_pairs(report, report.collector.results()).cells.values()
    lines = lines_of(report, 80)

    assert (cell.worst, cell.flows, cell.counts["pass"]) == ("excused", 2, 1)
    assert "master  ~ 1/2" in lines
    assert f"master → master: 1 {word}, 1 pass of 2 flows" in lines
    assert "   master-0  ~" in lines
    assert any("; . pass   ~ excused   - not tested" in line for line in lines)
    assert f"master → master: 1 blocked, 1 {word}, 1 pass of 3 flows" in lines_of(bad, 80)


def test_a_cell_is_its_worst_verdict() -> None:
    """And its figure counts that one."""
    verdicts = ("inconclusive", "blocked", "blocked", "not-tested", "pass")
    flows = [port(BLOCKED, place + 1, verdict=one) for place, one in enumerate(verdicts)]
    lines = lines_of(report_of(flows), 80)

    assert "master  X 2/5" in lines
    assert "master → master: 2 blocked, 1 inconclusive, 1 not-tested, 1 pass of 5 flows" in lines


def test_hosts_of_one_fate_share_a_line() -> None:
    """A host has no flow to itself, and that tells it from nobody; what contradicts does."""
    rows = [("a", {"b": "pass", "c": "pass"}), ("b", {"a": "pass", "c": "pass"}),
            ("c", {"a": "blocked", "b": "pass"})]  # fmt: skip

    groups = group_alike(rows, 9)  # type: ignore[arg-type]

    assert groups is not None
    assert [one.names for one in groups] == [["a", "b"], ["c"]]
    more = [("a", {"b": "pass"}), ("c", {"b": "pass", "d": "pass"})]
    assert len(group_alike(more, 9) or ()) == 2  # type: ignore[arg-type]
    assert group_alike(rows, 1) is None  # type: ignore[arg-type]


@pytest.mark.slow
def test_many_different_hosts_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of them would show nothing; the list is cut."""
    monkeypatch.setattr(map_run, "MOST_ROWS", 4)
    monkeypatch.setattr(map_run, "MOST_PAIRS", 3)
    lines = lines_of(make_estate(20, 0.05), 80)

    assert [line for line in lines if line.startswith("   X node-")]
    assert [line for line in lines if line.startswith("   and ") and line.endswith("more sources")]


def test_a_terminal_gets_the_signs_of_the_page_and_no_wrapped_line() -> None:
    """Where it can show them; a table as wide as the terminal stays a table."""
    report, width = everything(), 60
    plain, shown = io.StringIO(), io.StringIO()
    write_plain(map_parts(report, width, SIGNS), plain)
    write_terminal(map_parts(report, width, SIGNS), shown, width)

    grid = [
        line for line in plain.getvalue().splitlines() if re.match(" *[a-z-0-9 ]+ [✓✗!?·]", line)
    ]
    assert len(grid) > 5
    assert set(grid) <= {line.rstrip() for line in shown.getvalue().splitlines()}


def test_hosts_are_sorted_as_people_count() -> None:
    """By role and zone, and worker-9 before worker-10."""
    report = report_of([PASSED])
    first = report.info.hosts[0]
    names = ("worker-10", "worker-9", "w", "10", "worker-9b")
    hosts = tuple(replace(first, name=name) for name in names)

    order = sort_hosts(replace(report, info=replace(INFO, hosts=hosts)))

    assert order == ["10", "w", "worker-9", "worker-9b", "worker-10"]
