"""What VRRP's multicast between two hosts means."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.multicast import judge_multicast
from netprobe.request.rules import RequestWishes
from pages.combinations import MULTICASTS
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

FLOW = replace(
    BLOCKED, requirement="vrrp/segment", source="a", destination="b", address="10.0.0.2",
    protocol="ipproto/112", port=None, end_port=None, rejected_by=None, warnings=(),
)  # fmt: skip


def test_a_switch_that_filters() -> None:
    """Blocked on the path, with who heard it and whom the destination hears; no rule helps."""
    one = judge_multicast(FLOW, MULTICASTS["filtered"])
    assert (one.verdict, one.reason, one.where) == ("blocked", "multicast-filtered", ("path",))
    assert "to the group 224.0.0.18 left 10.0.0.1 (eth0), and none arrived" in one.because
    assert one.because.endswith("; c heard them and b heard those of others")
    request = ask([one], RequestWishes(), INFO)
    assert not request.rules
    assert request.unmended


def test_one_finding_for_all_ways() -> None:
    """A switch that filters is one cause."""
    alone = MULTICASTS["filtered"]._replace(heard_by=(), hears=False, source="fd00::1")
    ways = [judge_multicast(FLOW, MULTICASTS["filtered"]), judge_multicast(FLOW, alone)]
    ways[1] = replace(ways[1], source="b", destination="a", address="fd00::1")
    (finding,) = fold(ways)
    assert finding.title.startswith("VRRP's multicast does not pass between")
    assert ways[1].because.endswith("none arrived")
    assert "ff02::12" in ways[1].because


def test_what_arrives_passes() -> None:
    """A witness: the destination's agent saw the packet."""
    one = judge_multicast(FLOW, MULTICASTS["arrives"])
    assert (one.verdict, one.reason, one.proof) == ("pass", "multicast-arrives", "witness")
