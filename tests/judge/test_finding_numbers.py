"""The order of findings, and their numbers, which belong to the file that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model import codec
from netprobe.model.codec import info_from_json, keep_findings
from netprobe.model.kept_finding import Member
from netprobe.model.result import AcceptedBy, Finding, Result
from netprobe.model.struct_json import WrongValue
from netprobe.report.record import record
from netprobe.report.record.record import read_earlier
from netprobe.report.run.json import write_json
from tests.report.samples import BLOCKED, report_of

ENTRY = AcceptedBy("e1", "later", "team-a", "2027-01-31")


def failure(place: int, source: str, end: str, port: int, **changes: Any) -> Result:
    """A drop at the destination: each destination is a cause of its own."""
    return replace(
        BLOCKED, order=(place, 0, 0), source=source, destination=end, address=end, port=port,
        end_port=port, requirement=f"row-{port}", where=("destination",), **changes,
    )  # fmt: skip


def ends(findings: tuple[Finding, ...]) -> list[tuple[int, str]]:
    """Number and destination of each finding."""
    return [(one.number, one.members[0].destination) for one in findings]


def test_what_stops_most_comes_first_then_what_concerns_most_hosts() -> None:
    """Rows that do not say what they stop come last, as they stand in their matrix."""
    found = fold([
        *(failure(0, f"w{n}", "plain-many", 1) for n in range(5)),
        failure(1, "w0", "plain-one", 2),
        failure(2, "w0", "metrics", 3, stops="monitoring"),
        failure(3, "w0", "few-nodes", 4, stops="nodes"),
        *(failure(4, f"w{n}", "many-nodes", 5, stops="nodes") for n in range(3)),
        failure(5, "w0", "etcd", 6, stops="installation"),
        failure(6, "w0", "excused", 7, stops="installation", optional=True),
    ])  # fmt: skip

    assert [one for _, one in ends(found)] == [
        "etcd", "many-nodes", "few-nodes", "metrics", "plain-many", "plain-one", "excused",
    ]  # fmt: skip
    assert [one.stops for one in found[:2]] == ["installation", "nodes"]


def test_a_finding_stops_what_the_heaviest_of_its_flows_stops() -> None:
    """One cause may stop rows of several weights."""
    (finding,) = fold([
        failure(0, "a", "b", 1, stops="monitoring"),
        failure(1, "a", "b", 2, stops="pods"),
        failure(2, "a", "b", 3),
    ])  # fmt: skip

    assert finding.stops == "pods"


def test_a_file_gives_its_numbers_again() -> None:
    """Whatever the order is now; what the file does not number has the numbers behind."""
    one, two, three = (failure(n, "a", end, n + 1) for n, end in enumerate(("x", "y", "z")))
    kept = keep_findings(fold([one, two]))
    assert kept is not None

    swapped = tuple(replace(each, number=3 - each.number) for each in kept)

    assert ends(fold([one, two, three], kept=swapped)) == [(1, "y"), (2, "x"), (3, "z")]


def test_what_is_accepted_leaves_its_number_to_the_rest() -> None:
    """A finding that is accepted in part keeps its number; no other finding takes one."""
    both = [failure(0, "a", "x", 1), failure(1, "b", "x", 1), failure(2, "a", "y", 2)]
    kept = keep_findings(fold(both))
    assert kept is not None
    assert [one.number for one in kept] == [1, 2]

    marked = [replace(both[0], accepted=ENTRY), *both[1:]]
    found = fold(marked, kept=kept)
    assert [(one.number, [each.source for each in one.members]) for one in found] == [
        (1, ["b"]), (2, ["a"]), (3, ["a"]),
    ]  # fmt: skip
    assert [one.number for one in fold(both[2:], kept=kept)] == [2]


def test_a_number_counts_for_the_ports_and_the_matrix_that_it_names() -> None:
    """Ports beside them are folded by themselves; files of 0.1.0 name no matrix."""
    wide = replace(failure(0, "a", "x", 1), end_port=4)
    (kept,) = keep_findings(fold([replace(wide, end_port=2)])) or ()
    (member,) = kept.members
    assert member == Member("row-1", "a", "x", "x", "tcp", 1, 2, "deckhouse-nodes")

    seven = replace(kept, number=7)
    first, rest = fold([wide], kept=[seven])
    other = fold([replace(wide, matrix="dce")], kept=[seven])
    old = fold(
        [replace(wide, matrix="dce")],
        kept=[replace(seven, members=(replace(member, matrix=None),))],
    )

    assert [(one.number, one.members[0].ports) for one in (first, rest)] == [
        (7, ((1, 2),)), (8, ((3, 4),)),
    ]  # fmt: skip
    assert [one.number for one in other] == [8]
    assert [one.number for one in old] == [7, 8]


def test_a_file_makes_no_finding_of_what_passes() -> None:
    """Numbers count for failures alone, and never join what is blocked with what is exposed."""
    shut, bare = (
        failure(0, "a", "x", 1),
        failure(1, "a", "x", 2, verdict="exposed", expect="denied"),
    )
    fine = failure(2, "a", "x", 3, verdict="pass")
    (kept,) = keep_findings(fold([shut])) or ()
    forged = replace(
        kept,
        members=tuple(
            replace(kept.members[0], requirement=f"row-{n}", port=n, end_port=n) for n in (1, 2, 3)
        ),
    )

    found = fold([shut, bare, fine], kept=[forged])

    assert [(one.number, one.verdict, len(one.members)) for one in found] == [
        (1, "blocked", 1), (2, "exposed", 1),
    ]  # fmt: skip


def test_what_is_too_large_keeps_no_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record with a line that nobody could read again would be lost; so would a JSON report."""
    found = fold([failure(0, "a", "x", 1), failure(1, "b", "x", 1)])
    path = tmp_path / "run.json"
    with path.open("w") as stream:
        write_json(report_of([BLOCKED], *found), stream)
    assert [one.number for one in read_earlier(str(path)).info.findings or ()] == [1]

    monkeypatch.setattr(record, "MAX_FINDINGS_CHARACTERS", 100)
    assert read_earlier(str(path)).info.findings is None
    monkeypatch.setattr(codec, "MOST_KEPT_MEMBERS", 1)
    assert keep_findings(found) is None


def test_a_finding_without_a_number_is_refused() -> None:
    """Files count from 1."""
    data = {"started_at": "", "matrices": [], "findings": [{"number": 0, "members": []}]}

    with pytest.raises(WrongValue, match="findings: the number 0, expected 1 or more"):
        info_from_json(data)
