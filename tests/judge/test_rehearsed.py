"""What a tunnel that agents played means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.rehearsed import ROWS, find_fate, judge_rehearsal
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Outcome
from netprobe.model.rehearsed import Card, OverlayFacts, TunnelTrial
from netprobe.model.result import Result
from netprobe.request.rules import RequestWishes
from pages.combinations import OVERLAYS
from tests.judge.test_verdict import evidence
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

REMEDY = "ethtool -K ens192 tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off"


def test_each_fate_has_its_facts() -> None:
    """Every row of the table is reached by facts of its own."""
    assert {fate: find_fate(facts) for fate, facts in OVERLAYS.items()} == {
        fate: fate for fate in ROWS
    }


def make_result(source: str, destination: str, mended_at: str, driver: str = "vmxnet3") -> Result:
    """A tunnel that only the CPU's checksums let through."""
    cards = (Card(source, "ens192", driver), Card(destination, "ens224", driver))
    facts = OverlayFacts(7, 1450, TunnelTrial(True), *cards, mended_at=mended_at)  # type: ignore[arg-type]
    flow = replace(
        BLOCKED, requirement="vxlan/overlay", source=source, destination=destination,
        protocol="udp", port=8472, end_port=8472, rejected_by=None,
    )  # fmt: skip
    return judge_rehearsal(flow, facts)


def test_one_driver_is_one_finding() -> None:
    """Cards of one driver are one cause, wherever they are; each command names its hosts."""
    found = fold([
        make_result("a", "b", "both"), make_result("b", "a", "both"),
        make_result("a", "c", "source"), make_result("c", "a", "destination"),
        make_result("d", "e", "source", "ixgbe"),
    ])  # fmt: skip
    assert [len(one.members) for one in found] == [4, 1]
    first = found[0]
    assert first.title.startswith("network cards (driver vmxnet3) spoil TCP inside of VXLAN")
    assert f"On a, b run {REMEDY}" in first.advice
    assert "ens224" in first.advice  # that of a, which c sees as the other end
    assert first.where == ("source",)


@pytest.mark.parametrize("fate", sorted(set(ROWS) - {"carries"}))
def test_no_rule_helps(fate: str) -> None:
    """A port that is open needs no rule: the request says so of each."""
    flow = replace(BLOCKED, requirement="vxlan/overlay", protocol="udp", rejected_by=None)
    one = judge_rehearsal(flow, OVERLAYS[fate])  # type: ignore[index]
    request = ask([one], RequestWishes(), INFO)
    assert not request.rules
    assert request.unmended


def test_a_transfer_is_proof() -> None:
    """A pass names the bytes, the seconds, the network id and the MTU."""
    seen = evidence(Outcome("overlay", None), "udp", rehearsed=OVERLAYS["carries"])
    (one, *_) = judge(seen, (0, 0, 0), Rules(strict=True))
    assert (one.verdict, one.proof, one.reason) == ("pass", "nonce", "tunnel-transfer")
    assert one.because.startswith("200,000 bytes of TCP went each way through a tunnel")
    assert "in 0.001 s" in one.because
    assert "network id 1, MTU 1450" in one.because


def test_causes_are_named_by_what_is_known_of_the_way() -> None:
    """A filter of network ids only where the row's own packets arrive; the way back beside it where
    that was not probed."""
    words = {
        ways: judge_rehearsal(
            BLOCKED, OVERLAYS["nothing"]._replace(row_arrived=ways[0], back_arrived=ways[1])
        ).because
        for ways in ((True, True), (True, None), (None, None))
    }  # fmt: skip
    assert {ways: "network ids" in text for ways, text in words.items()} == {
        (True, True): True, (True, None): True, (None, None): False,
    }  # fmt: skip
    assert {ways: "way back" in text for ways, text in words.items()} == {
        (True, True): False, (True, None): True, (None, None): False,
    }  # fmt: skip


def test_what_a_card_does_not_explain_is_a_warning() -> None:
    """Where TCP gets further with the CPU's checksums and not through: the card is at fault, and
    what is lost either way stands in the warnings; where all passes then, there is none."""
    bare, further = TunnelTrial(False), TunnelTrial(None, opened=True)
    both = OVERLAYS["source-card"]._replace(trial=bare, mended=further)
    one = judge_rehearsal(BLOCKED, both)
    assert (one.reason, one.where) == ("overlay-offload", ("source",))
    assert "no echo request passes the tunnel and no TCP connection opens" in one.because
    assert "once the CPU makes the checksums, a connection opens" in one.because
    assert one.warnings == (
        "overlay-broken, too: no echo request passes and TCP segments of full size do not pass, "
        "also where the CPU makes the checksums",
    )
    assert judge_rehearsal(BLOCKED, OVERLAYS["source-card"]).warnings == ()


def test_a_tunnel_without_echo_is_described_as_it_is() -> None:
    """What passes is named, and nothing is named that does not."""
    one = judge_rehearsal(BLOCKED, OVERLAYS["no-full-segments"]._replace(
        trial=TunnelTrial(False, opened=True)
    ))  # fmt: skip
    assert one.because.startswith("small TCP segments pass a tunnel of both kernels, segments of")
