"""What the segment of an address showed means."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.segments import ROWS, find_segment_fate, judge_segment
from netprobe.model.segment import RouterSeen
from netprobe.request.rules import RequestWishes
from pages.combinations import SEGMENTS
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

FLOW = replace(
    BLOCKED, requirement="segment", source="vip", destination="vip", address="10.0.0.100",
    protocol="icmp", port=None, end_port=None, rejected_by=None, warnings=(),
)  # fmt: skip
ROUTER = RouterSeen("VRRPv2", 51, 100, "10.0.0.9", "02:00:00:00:00:09", ("a",))


def test_each_fate_has_its_facts() -> None:
    """Every row of the table is reached by facts of its own."""
    assert {fate: find_segment_fate(facts) for fate, facts in SEGMENTS.items()} == {
        fate: fate for fate in ROWS
    }


def test_no_rule_helps() -> None:
    """What somebody else has needs no rule of a firewall: the request says so of each."""
    for fate in ("in-use", "id-taken", "two-machines", "dhcp"):
        request = ask([judge_segment(FLOW, SEGMENTS[fate])], RequestWishes(), INFO)
        assert not request.rules
        assert request.unmended


def test_only_the_same_id_of_the_same_protocol_clashes() -> None:
    """VRRP and CARP make one link-layer address of one id, HSRP makes others: a warning then."""
    free = SEGMENTS["free"]
    told = {}
    for router in (ROUTER, ROUTER._replace(speaks="CARP"), ROUTER._replace(speaks="HSRP"),
                   ROUTER._replace(group=52)):  # fmt: skip
        one = judge_segment(FLOW, free._replace(routers=(router,)))
        told[router.speaks, router.group] = (one.verdict, one.reason, len(one.warnings))
    assert told == {
        ("VRRPv2", 51): ("blocked", "vrid-taken", 0), ("CARP", 51): ("blocked", "vrid-taken", 0),
        ("HSRP", 51): ("pass", "address-free", 1), ("VRRPv2", 52): ("pass", "address-free", 1),
    }  # fmt: skip


def test_the_graver_fault_is_the_reason() -> None:
    """An address that is in use, with an id that is taken, too: the second is a warning."""
    one = judge_segment(FLOW, SEGMENTS["in-use"]._replace(routers=(ROUTER,)))
    assert one.reason == "address-in-use"
    assert one.warnings[0].startswith("vrid-taken, too: VRRPv2 id 51, priority 100, from 10.0.0.9")


def test_dhcp_servers() -> None:
    """Where there should be none they are a fault of the network, beside a graver one a warning;
    elsewhere they are told of. That nobody could ask is told where there should be none."""
    dhcp = SEGMENTS["dhcp"].dhcp
    assert dhcp is not None
    one = judge_segment(FLOW, SEGMENTS["dhcp"])
    assert (one.verdict, one.reason, one.where) == ("blocked", "dhcp-foreign", ("service",))
    assert "10.0.0.9 (02:00:00:00:00:09) offers 10.0.0.50" in one.because
    assert one.warnings == ()
    (finding,) = fold([one])
    assert finding.title.startswith("a DHCP server answers on the network of vip (10.0.0.100)")
    graver = judge_segment(FLOW, SEGMENTS["two-machines"]._replace(dhcp=dhcp))
    assert graver.reason == "other-machine"
    assert graver.warnings[0].startswith("dhcp-foreign, too: 10.0.0.9")
    told = judge_segment(FLOW, SEGMENTS["dhcp"]._replace(dhcp=dhcp._replace(is_barred=False)))
    assert (told.reason, len(told.warnings)) == ("one-machine", 1)
    failed = dhcp._replace(servers=(), failure="no-permission")
    for barred in (True, False):
        facts = SEGMENTS["alone"]._replace(dhcp=failed._replace(is_barred=barred))
        assert bool(judge_segment(FLOW, facts).warnings) == barred


def test_one_address_is_one_finding() -> None:
    """Its title names the address, and the place is the host that is not there yet."""
    (finding,) = fold([judge_segment(FLOW, SEGMENTS["in-use"])])
    assert finding.title.startswith("somebody has the address of vip (10.0.0.100) already")
    assert finding.where == ("host",)


def test_silence_of_routers_says_nothing_where_nobody_listened() -> None:
    """The pass says so."""
    (warning,) = judge_segment(FLOW, SEGMENTS["free"]._replace(is_deaf=True)).warnings
    assert "no host there could listen" in warning
