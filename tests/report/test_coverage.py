"""What reports say of flows that were not probed: counted, named, and never called a pass."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.codec import info_from_json, info_to_json
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.exit import exit_status
from netprobe.model.result import AcceptedBy
from netprobe.model.struct_json import WrongValue
from netprobe.report.record.changes import compare, fates_of
from netprobe.report.record.collector import Report
from netprobe.report.record.redact import redact_run
from netprobe.report.run import REPORTS
from netprobe.report.run.coverage_text import coverage_line
from tests.report.samples import BLOCKED, INFO, PASSED, report_of

GROUP = Unprobed(
    matrix="deckhouse-nodes", requirement="etcd", protocol="tcp", ports=((2379, 2379),),
    from_zone="a", to_zone="b", sources=0, destinations=1, flows=9_999,
    because="not probed: master-0 → master-1 at 2379 stands for it",
    by=(("master-0", "master-1", 2379, 2379),), by_verdict="pass",
)  # fmt: skip
UNSEEN = replace(
    GROUP, verdict="not-tested", reason="host-not-covered", flows=100, by=(), by_verdict=None,
    because="nothing is known to get through to master-2, so that no other host stands for it",
)  # fmt: skip
ABOUT = Coverage(
    zones={"a": ("master-0",), "b": ("master-1", "master-2")}, pairs=10, all_pairs=1000,
    required=10_000, probed=1, hidden=(17, 17), single=0.01,
    host_sets=(("master-0",), ("master-1", "master-2")), unprobed=(GROUP,),
)  # fmt: skip


def covering(*groups: Unprobed, results: tuple[Any, ...] = (PASSED,), **known: Any) -> Report:
    about = replace(ABOUT, unprobed=groups or (GROUP,), **known)
    report = report_of(list(results))
    info = replace(INFO, coverage=about, planned_flows=1 + sum(one.flows for one in about.unprobed))
    return replace(report, info=info)


def written(report: Report, name: str) -> str:
    stream = io.StringIO()
    REPORTS[name](report, stream)
    return stream.getvalue()


def test_the_first_line_says_what_is_certain_what_follows_and_what_chance_says() -> None:
    """And no line calls a covered flow a pass."""
    first, second = written(covering(), "text").splitlines()[:2]
    assert first == (
        "COVERAGE: 1 of 10,000 flows were probed (0.01 %), each of 3 hosts to and from each of 2 "
        "zones, each port between each two zones, between 10 of 1,000 pairs of hosts (1 %); for "
        "zones that treat their hosts alike no rule between zones, nor between a host and a zone "
        "(for part of a range only by chance), was missed; inside two zones only chance finds a "
        "rule: for 17 x 17 hosts with 95 %, for a single pair with 1 % (seed 0)"
    )
    assert second == (
        "COVERED: the required and probed flow is as it should be; 9,999 more were not probed"
    )
    assert (
        written(covering(), "text")
        .splitlines()[-1]
        .startswith(
            "10,000 flows: 1 pass (0 on a refusal), 0 blocked, 0 exposed, 0 inconclusive, 0 not "
            "tested, 9,999 covered; "
        )
    )


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_every_report_says_it(name: str) -> None:
    """Text, wide, map, JSON, HTML, JUnit, Markdown and GitHub."""
    text = written(covering(), name)
    assert "COVERAGE: " in text or '"coverage": {' in text
    assert "9,999" in text or '"flows": 9999' in text or "1 of 10,000 flows were probed" in text


def test_what_nothing_stands_for_is_said_first() -> None:
    """The sentence names it, and it has a section of its own with the reason."""
    text = written(covering(GROUP, UNSEEN), "text")
    assert ", but for 100 flows that nothing stands for; " in text.splitlines()[0]
    assert "NOT COVERED: not probed, and nothing stands for it (100 flows)" in text
    assert "nothing is known to get through to master-2, so that no other host" in text
    assert text.splitlines()[1].startswith("UNKNOWN: nothing is blocked, but 100 of 10,100 ")


def test_flows_that_nothing_stands_for_fold_by_their_reason() -> None:
    """Each sentence stands in the group; two groups between the same zones are one pair."""
    other = replace(UNSEEN, flows=7, because="nothing is known to get through from master-0")
    later = replace(UNSEEN, to_zone="c")
    apart = replace(UNSEEN, reason="not-covered", flows=3, because="its stand-in is out")
    text = " ".join(written(covering(UNSEEN, other, later, apart), "text").split())
    assert (
        "tcp: 207 flows, a to b and 1 more pair of zones: nothing is known to get through to "
        "master-2, so that no other host stands for it; nothing is known to get through from "
        "master-0"
    ) in text
    assert "tcp: 3 flows, a to b: its stand-in is out" in text


def test_zones_that_are_not_what_they_are_said_to_be_are_named() -> None:
    """Where members are treated differently, all were probed."""
    text = written(covering(mixed=("a to b",), completed=400), "text")
    assert "for zones that treat their hosts alike (not so: a to b) no rule" in text.splitlines()[0]
    assert "MIXED: these zones do not treat their hosts alike" in text
    assert "(400 flows more)" in text


def test_what_a_failure_stands_for_is_told_apart_with_what_to_do() -> None:
    """The rule is wanted for all hosts of the zones, not only for those that were probed."""
    failing = replace(GROUP, by_verdict="blocked")
    text = written(covering(failing, results=(BLOCKED,)), "text")
    assert text.splitlines()[1].startswith(
        "BLOCKED: 1 blocked of 10,000 required flows (9,999 of them covered, not probed)"
    )
    assert "COVERED BY FLOWS THAT FAIL: not probed, where all hosts of two zones fail" in text
    assert "Allow it for all hosts of these zones, not only for those that were probed" in text


def test_a_run_that_was_stopped_says_nothing_of_the_rest() -> None:
    """Not even that each host was probed."""
    report = covering()
    stopped = replace(report, info=replace(report.info, complete=False, interrupted=True))
    lines = written(stopped, "text").splitlines()
    assert lines[1] == (
        "COVERAGE: the run did not come to its end; nothing is said of what was not probed"
    )


def test_junit_fails_nothing_that_is_covered_and_everything_that_is_not() -> None:
    """A covered case passes and says how much of it was probed."""
    suite = ET.fromstring(written(covering(), "junit"))
    assert suite.get("failures") == suite.get("errors") == "0"
    told = [node.text for node in suite.iter("system-out")]
    assert "0 of 9,999 flows were probed; the rest is covered" in told or any(
        "of 10,000 flows were probed" in str(text) for text in told
    )
    unseen = ET.fromstring(written(covering(GROUP, UNSEEN), "junit"))
    assert unseen.get("errors") == "1"


def test_json_holds_the_groups_and_is_read_again() -> None:
    """The keys are a contract; a group that names no hosts there are is refused."""
    report = covering(GROUP, UNSEEN)
    read = json.loads(written(report, "json"))
    assert read["summary"]["covered"] == 9_999
    assert read["summary"]["not_tested"] == 100
    assert info_from_json(info_to_json(report.info)).coverage == report.info.coverage
    for wrong in ({"sources": 7}, {"verdict": "pass"}, {"ports": [[5, 2]]}, {"flows": -1}):
        data = json.loads(json.dumps(info_to_json(report.info)))
        data["coverage"]["unprobed"][0] |= wrong
        with pytest.raises(WrongValue):
            info_from_json(data)


def test_strangers_learn_no_names() -> None:
    """Hosts and zones of the coverage are redacted like all others."""
    report = covering()
    info, hidden, _ = redact_run(report.info, report.collector, None)
    text = written(Report(info, hidden), "json")
    for name in ("master-0", "master-1"):
        assert name not in text
    assert info.coverage is not None
    assert set(info.coverage.zones) == {"zone-1", "zone-2"}


def test_what_is_covered_now_was_not_probed() -> None:
    """A flow that failed before and is covered now is not fixed: one run alone probed it."""
    changes = compare(fates_of([BLOCKED]), [])
    assert (changes.counts()["fixed"], changes.counts()["only_earlier_failed"]) == (0, 1)


def test_where_all_pairs_were_probed_chance_has_no_part() -> None:
    """Two hosts in two zones leave nothing to chance."""
    assert "every pair of hosts was probed" in coverage_line(replace(ABOUT, single=1.0))


def test_who_accepts_a_failure_accepts_no_flow_that_it_stands_for() -> None:
    """Exit status 3, until these flows are probed or the failure is mended."""
    failed = replace(BLOCKED, accepted=AcceptedBy("R-1", "why", "who", "2027-01-31"))
    group = replace(GROUP, by_verdict="blocked")
    report = covering(group, results=(PASSED, failed))

    assert exit_status(report.summary, interrupted=False) == 3
    assert report.summary.counts["covered"] == 9_999
    assert exit_status(covering(results=(PASSED, failed)).summary, interrupted=False) == 0
    line = written(report, "text").splitlines()[1]
    assert line.startswith("UNKNOWN: nothing else is blocked, but 9,999 of 10,000 required flows")
