"""What ``diff`` says of two runs, and what ``--baseline`` makes of the earlier one."""

from __future__ import annotations

import io
import json
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.plan import OF_HOSTS, PlannedMatrix
from netprobe.model.result import HostReport, Result
from netprobe.report.record.changes import compare, fates_of, list_checked
from netprobe.report.record.collector import collect
from netprobe.report.record.earlier import Baseline, word_changes
from netprobe.report.verbs.diff import DIFF_WRITERS, RunDiff
from tests.report.golden import check_golden
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, port

ROUTER: dict[str, Any] = {"reason": "admin-prohibited", "rejected_by": "10.0.0.1"}
OLD = [
    port(PASSED, 1, 9),
    port(BLOCKED, 10, 19),
    port(BLOCKED, 20, 29),
    port(BLOCKED, 30, 39),
    port(PASSED, 40, verdict="not-tested"),
    port(PASSED, 41, verdict="inconclusive"),
    port(PASSED, 42),
    port(PASSED, 43, verdict="inconclusive"),
    replace(PASSED, protocol="icmp", port=None, end_port=None),
    port(BLOCKED, 5, source="gone-0"),
]
NEW = [
    port(BLOCKED, 1, 2),
    port(PASSED, 3, 9),
    port(BLOCKED, 10, 14),
    port(PASSED, 15, 19),
    port(BLOCKED, 20, 24, where=("path",), **ROUTER),
    port(BLOCKED, 25, 29, reason="reset"),
    port(PASSED, 30, 39, verdict="not-tested"),
    port(BLOCKED, 40),
    port(PASSED, 41, 41),
    port(PASSED, 42, verdict="inconclusive"),
    port(BLOCKED, 43),
    replace(BLOCKED, protocol="icmp", port=None, end_port=None, source="new-0"),
]
COUNTS = {
    "worse": 2, "decided": 1, "unknown": 1, "fixed": 5, "otherwise": 5, "moved": 5, "still": 5,
    "known": 1, "unchanged": 7, "failed": 31, "only_later": 2, "only_later_failed": 2,
    "only_earlier": 12, "only_earlier_failed": 11,
}  # fmt: skip


def written(name: str, old: list[Result], new: list[Result]) -> str:
    """What a format makes of two runs."""
    stream = io.StringIO()
    changes = compare(fates_of(old), new)
    DIFF_WRITERS[name](RunDiff(("a.json", "b_*.json"), (INFO, INFO), changes), stream)
    return stream.getvalue()


def test_only_what_both_probed_is_compared() -> None:
    """A flow that nobody tested before is not newly blocked, and one that is gone is not fixed."""
    changes = compare(fates_of(OLD), NEW)

    assert changes.counts() == COUNTS
    assert [(one.port, one.end_port) for one in changes.worse] == [(1, 2)]
    assert [one.port for one in changes.unknown] == [42]
    # It was inconclusive: nobody knows whether it is new.
    assert [one.port for one in changes.decided] == [43]


def test_what_was_inconclusive_and_fails_is_now_decided() -> None:
    """A retry counts it so: nothing is newly blocked."""
    doubtful = replace(BLOCKED, verdict="inconclusive", state="open|filtered")
    with closing(collect([doubtful])) as before, closing(collect([BLOCKED])) as after:
        words = word_changes(compare(fates_of(before.results()), after.results()))

    assert "1 now decided: blocked or exposed" in words
    assert "newly" not in words


@pytest.mark.parametrize("requirement", OF_HOSTS)
def test_a_run_that_checked_a_host_and_tells_no_fault_found_none(requirement: str) -> None:
    """Results of hosts are written only where there is a fault."""
    source = PASSED.source
    fault = port(BLOCKED, 53, requirement=requirement, source=source, destination=source)
    both = ({requirement: {source}}, {requirement: {source}})

    new = compare(fates_of([PASSED]), [PASSED, fault], both)
    gone = compare(fates_of([PASSED, fault]), [PASSED], both)

    assert (new.worse, new.only_later.flows) == ([fault], 0)
    assert [(one.requirement, one.source, one.verdict) for one in gone.fixed] == [
        (requirement, source, "pass")
    ]
    assert (gone.failed, gone.only_earlier.flows) == (1, 0)
    assert compare(fates_of([PASSED, fault]), [PASSED, fault], both).counts()["still"] == 1


@pytest.mark.parametrize("checked", [{}, {"clock": {"other"}}, {"resolver": {PASSED.source}}])
def test_a_host_that_the_other_run_has_not_checked_is_compared_to_nothing(checked: Any) -> None:
    """Nobody knows whether the fault was there."""
    source = PASSED.source
    fault = port(BLOCKED, 53, requirement="clock", source=source, destination=source)
    both = (checked, checked)

    assert compare(fates_of([PASSED]), [PASSED, fault], both).only_later.failed == 1
    gone = compare(fates_of([PASSED, fault]), [PASSED], both)
    assert (gone.fixed, gone.only_earlier.failed) == ([], 1)


@pytest.mark.parametrize(
    ("change", "checked"),
    [
        ({}, {"clock": {"a"}, "resolver": {"a"}}),
        ({"names_set": 0}, {"clock": {"a"}, "resolver": set()}),
        # A run that was stopped, and a file of 0.1.0.
        ({"complete": False}, {}),
        ({"names_set": None}, {}),
    ],
)
def test_which_hosts_a_run_has_checked(change: dict[str, Any], checked: Any) -> None:
    """Those with an agent of its own; what a host carried out by itself checked no clock."""
    hosts = (
        HostReport(name="a", state="agent", start_s=0.3), HostReport(name="carried", state="agent"),
        HostReport(name="b", state="failed", start_s=3.0), HostReport(name="c", state="none"),
    )  # fmt: skip
    info = replace(INFO, complete=True, names_set=2, hosts=hosts)

    assert list_checked(replace(info, **change)) == checked


def test_a_changed_place_is_moved() -> None:
    """Another place or another router is moved; another reason at the same place is not."""
    changes = compare(fates_of(OLD), NEW)

    assert [*map(str, changes.moved)] == ["filtered, no-response [destination, path]"]
    assert [(one.port, one.end_port) for one in changes.moved.popitem()[1]] == [(20, 24)]
    assert [(one.port, one.end_port) for one in changes.otherwise.popitem()[1]] == [(25, 29)]


def test_both_ways_round() -> None:
    """What only one run probed is the other's when they change places."""
    there, back = compare(fates_of(OLD), NEW), compare(fates_of(NEW), OLD)

    assert back.only_earlier == there.only_later
    assert back.only_later.kinds == there.only_earlier.kinds
    assert (there.lost, back.lost) == (10, 1)


def test_text() -> None:
    """Sections from worse to still, then what one run alone probed, and the totals."""
    check_golden("diff-unshared.txt", written("text", OLD, NEW))


def test_markdown() -> None:
    """Totals first, then the sections; names and files are only text."""
    text = written("markdown", OLD, NEW)

    assert text.splitlines()[0] == "# a.json to b\\_\\*.json"
    assert "\n### NEWLY BLOCKED OR EXPOSED (2 flows)\n" in text
    assert "\n### ONLY THE LATER RUN PROBED (2 flows, 2 of them blocked or exposed)\n" in text
    assert (
        "\n- etcd (deckhouse-nodes): master-0 (10.0.0.10), gone-0 → master-1 (10.0.0.11)  tcp "
        in text
    )


def test_json() -> None:
    """Every change is there with its results, and what one run alone probed by requirement."""
    document = json.loads(written("json", OLD, NEW))

    assert document["schema"] == "netprobe.diff/1"
    assert document["counts"] == COUNTS
    assert document["earlier"]["file"] == "a.json"
    assert [one["port"] for one in document["worse"]] == [1]
    assert [one["port"] for one in document["decided"]] == [43]
    assert document["moved"][0]["before"] == "filtered, no-response [destination, path]"
    assert document["only_earlier"] == [
        {
            "matrix": "deckhouse-nodes",
            "requirement": "etcd",
            "sources": ["master-0", "gone-0"],
            "destinations": [{"host": "master-1", "address": "10.0.0.11"}],
            "ports": "tcp 5, 30-39; icmp",
            "flows": 12,
        }
    ]


def test_runs_that_share_no_flow() -> None:
    """Nothing is compared, which is not that nothing became worse."""
    other = [replace(one, matrix="okd-hcp") for one in NEW]

    assert compare(fates_of(OLD), other).compared == 0
    assert compare(fates_of(OLD), NEW).compared == 32
    totals = written("text", OLD, other).splitlines()[-1]
    assert "Z: nothing is compared: 34 probed by the later run only (20 failed there), " in totals
    assert "newly blocked" not in totals


def baseline(*results: Result, only_new: bool = True) -> Baseline:
    """A baseline of these results."""
    return Baseline("base.json", INFO, fates_of(results), only_new)


def test_baseline_of_other_matrices() -> None:
    """All would seem new; other settings of the same matrix can be compared."""
    other = replace(PLAN, matrices=(PlannedMatrix("okd-hcp", {"cni": "ovn"}),))
    both = replace(PLAN, matrices=(*other.matrices, replace(PLAN.matrices[0], settings={})))
    baseline().refuse_other_matrices(both)

    with pytest.raises(RequestError) as caught:
        baseline().refuse_other_matrices(other)
    told = str(caught.value)
    assert told.startswith("--baseline base.json: that run is of deckhouse-nodes, this")
    assert told.endswith("one is of okd-hcp; give a run of the same matrix")


def test_known_failures_do_not_decide() -> None:
    """Of a failing range the ports that failed in the baseline too are known, moved or not."""
    found = baseline(*OLD).mark(port(BLOCKED, 5, 45, **ROUTER))

    assert sorted((one.port, one.end_port, one.decides) for one in found) == [
        (5, 9, True),
        (10, 39, False),
        (40, 40, True),
        (41, 41, True),
        (42, 42, True),
        (43, 43, True),
        (44, 45, True),
    ]


def test_what_is_not_known_decides() -> None:
    """A doubt may hide what is new, and without --fail-on new nothing is excused."""
    doubt = port(PASSED, 10, verdict="inconclusive")

    assert list(baseline(*OLD).mark(doubt)) == [doubt]
    assert list(baseline(*OLD, only_new=False).mark(port(BLOCKED, 10))) == [port(BLOCKED, 10)]


def test_the_sentence() -> None:
    """One line says what is new since the baseline."""
    words = baseline(*OLD).word_changes(compare(fates_of(OLD), NEW))

    assert words == (
        "BASELINE: base.json (begun 2026-11-20T10:00:00Z): 5 newly blocked or exposed, "
        "15 still (5 moved), 5 fixed, 1 no longer known, 12 not probed by this run, "
        "2 not probed by the baseline"
    )
