"""Flows that wait for a finding: they name it, and are its owner's."""

from __future__ import annotations

import io

from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.result import Result
from netprobe.report.record.collector import Report, collect
from netprobe.report.run import REPORTS
from netprobe.report.run.overview import make_overview, word_actor
from netprobe.report.run.waiting import Awaited
from tests.report.samples import BLOCKED, INFO, flow

ROW = replace(
    flow(BLOCKED, 1), requirement="vxlan", source="a", destination="b", address="10.0.0.2",
    protocol="udp", port=8472, end_port=8472, where=("path",),
)  # fmt: skip
TUNNEL = replace(
    ROW, requirement="vxlan/overlay", order=(2, 0, 0), verdict="not-tested", state="unknown",
    reason="row-stopped", where=(), because="UDP port 8472 is stopped",
)  # fmt: skip
TUNNEL_BACK = replace(
    TUNNEL, order=(2, 0, 1), source="b", destination="a", address="10.0.0.1"
)  # fmt: skip
OTHER_PORT = replace(TUNNEL, order=(2, 0, 2), port=8469, end_port=8469)
OTHER_ADDRESS = replace(TUNNEL, order=(2, 0, 3), address="10.0.0.9")
OTHER_FAMILY = replace(TUNNEL_BACK, order=(2, 0, 4), address="fd00::1")
NO_AGENT = replace(TUNNEL, order=(2, 0, 5), reason="no-agent")


def report(*results: Result) -> Report:
    """A whole run with these results, folded."""
    return Report(replace(INFO, planned_flows=len(results)), collect(results), fold(results))


def write(some: Report) -> str:
    stream = io.StringIO()
    REPORTS["text"](some, stream)
    return " ".join(stream.getvalue().split())


def test_a_flow_waits_for_what_stops_its_own_port() -> None:
    """There, or else back, as far as one tunnel needs both; no other port, address, family or
    reason is in its way."""
    findings = fold([ROW])
    awaited = Awaited(findings)
    for one in (TUNNEL, TUNNEL_BACK):
        assert awaited.find(one) is findings[0], one
    for one in (OTHER_PORT, OTHER_ADDRESS, OTHER_FAMILY, NO_AGENT, ROW):
        assert awaited.find(one) is None, one


def test_the_way_there_is_named_before_the_way_back() -> None:
    """Where both are stopped by different causes, and whichever comes first in the report."""
    back = replace(
        TUNNEL_BACK, requirement="vxlan", verdict="blocked", state="filtered",
        reason="no-response", where=("source",), order=(1, 0, 9),
    )  # fmt: skip
    findings = fold([ROW, back])
    assert len(findings) == 2
    for one in (TUNNEL, TUNNEL_BACK):
        found = Awaited(findings).find(one)
        assert found is not None
        assert found.members[0].source == one.source


def test_a_waiting_flow_is_the_matter_of_the_owner() -> None:
    """Its owner has to act, in the summary and in the words beside the flows; what waits for
    nothing stays our own."""
    some = report(ROW, TUNNEL, TUNNEL_BACK, NO_AGENT)
    assert list(map(word_actor, make_overview(some).who)) == [
        "network team: 1 cause (finding 1), 2 flows that wait for a finding",
        "ourselves: 1 flow that nobody could look at",
    ]
    assert "to do Finding 1 first (network team), then run again with --rehearse" in write(some)
    at_host = report(replace(ROW, where=("destination",)), TUNNEL)
    assert list(map(word_actor, make_overview(at_host).who)) == [
        "host owners: 1 cause (finding 1), 1 flow that waits for a finding"
    ]


def test_without_a_finding_nobody_is_named() -> None:
    """A row that is inconclusive is no finding: the flow is our own, and its row comes first."""
    doubtful = replace(ROW, verdict="inconclusive", state="open|filtered")
    some = report(doubtful, TUNNEL)
    assert [word_actor(one) for one in make_overview(some).who] == [
        "ourselves: 1 flow that nobody could look at"
    ]
    words = "First what stops the row's own port, as its result says; then run again with"
    assert words in write(some)


def test_each_finding_has_the_flows_that_wait_for_it() -> None:
    """Two causes are two lines: no flow waits for the finding of another."""
    second = replace(ROW, order=(1, 0, 7), port=8469, end_port=8469, where=("destination",))
    text = write(report(ROW, second, TUNNEL, OTHER_PORT))
    for number in (1, 2):
        assert f"Finding {number} first" in text
