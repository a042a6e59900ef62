"""Tunnels of the kernel between hosts whose port is open, and what ``--rehearse`` says of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab, unprivileged
from tests.lab.overlays import FAMILIES, OverlayPair, Truth, overlays

pytestmark = [pytest.mark.lab, pytest.mark.slow]

GOOD, DEAD = Truth(True, True, True), Truth(False, False, False)
NO_TCP, NO_LARGE = Truth(True, False, False), Truth(True, True, False)
# The inner TCP checksum of VXLAN over IPv4 and IPv6 becomes another one.
SPOIL = (
    "meta nfproto ipv4 udp dport 8472 @th,312,8 6 @th,528,16 set 0xdead",
    "meta nfproto ipv6 udp dport 8472 @th,288,8 6 @th,688,16 set 0xdead udp checksum set 0",
)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def told(pair: OverlayPair, *words: str) -> dict[tuple[str, int], tuple[object, ...]]:
    """Verdict, reason and places of each tunnel; the row itself passes everywhere."""
    done = pair.run("--rehearse", "-o", "json", *words)
    rows = [one["verdict"] for one in done.results if one["requirement"] == "vxlan"]
    assert rows
    assert {*rows} == {"pass"}, done.stdout
    return {
        key: (one["verdict"], one["reason"], tuple(one["where"]))
        for key, one in overlays(done).items()
    }


PASS = ("pass", "tunnel-transfer", ())
BROKEN = ("blocked", "overlay-broken", ("path",))
OFFLOAD = ("blocked", "overlay-offload", ("source",))


def everywhere(what: tuple[object, ...]) -> dict[tuple[str, int], tuple[object, ...]]:
    return {(host, family): what for host in "ab" for family in FAMILIES}


def test_a_card_that_forgets_inner_checksums(lab: Lab) -> None:
    """Its tunnels over IPv4 carry no TCP: the answer names it and the remedy; IPv6 passes."""
    pair = OverlayPair(lab, "bad")
    assert pair.look(4) == NO_TCP
    assert pair.look(4, by_cpu=True) == GOOD
    assert pair.look(6) == GOOD
    done = pair.run("--rehearse", "--from", "a", "-o", "json")
    found = overlays(done)
    verdicts = {family: one["verdict"] for (_, family), one in found.items()}
    assert verdicts == {4: "blocked", 6: "pass"}
    bad = found["a", 4]
    assert (bad["reason"], bad["where"]) == ("overlay-offload", ["source"])
    assert (bad["device"], bad["driver"]) == ("card", "tun")
    remedy = "ethtool -K card tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off"
    assert remedy in bad["because"]
    (finding,) = done.document["findings"]
    assert f"On a run {remedy} (netprobe has not done it)" in finding["advice"]
    assert done.status == 1


@pytest.mark.full
def test_a_card_at_the_other_end(lab: Lab) -> None:
    """Seen from the healthy host, the place is the destination: its card spoils the answers."""
    pair = OverlayPair(lab, "bad")
    found = told(pair)
    assert found == {
        ("a", 4): OFFLOAD, ("a", 6): PASS, ("b", 6): PASS,
        ("b", 4): ("blocked", "overlay-offload", ("destination",)),
    }  # fmt: skip


@pytest.mark.full
def test_a_card_that_makes_all_checksums(lab: Lab) -> None:
    """The twin of the bad card: all tunnels pass."""
    pair = OverlayPair(lab, "good")
    assert [pair.look(family) for family in FAMILIES] == [GOOD, GOOD]
    assert told(pair) == everywhere(PASS)


@pytest.mark.full
def test_a_router_that_lets_all_through(lab: Lab) -> None:
    """All tunnels pass, with a transfer as their proof."""
    pair = OverlayPair(lab)
    assert [pair.look(family) for family in FAMILIES] == [GOOD, GOOD]
    done = pair.run("--rehearse", "-o", "json")
    assert done.status == 0
    for one in overlays(done).values():
        assert (one["verdict"], one["proof"]) == ("pass", "nonce")
        assert one["because"].startswith("200,000 bytes of TCP went each way")


@pytest.mark.full
def test_a_router_that_spoils_inner_checksums(lab: Lab) -> None:
    """Echo requests pass and TCP does not, whoever makes the checksums: the path is broken."""
    pair = OverlayPair(lab)
    for host in (pair.a, pair.b):
        host.run("ethtool", "-K", "e0", "tx", "off")
    pair.forward(SPOIL[0])
    assert pair.look(4) == pair.look(4, by_cpu=True) == NO_TCP
    assert pair.look(6) == GOOD
    found = told(pair)
    assert {key: one for key, one in found.items() if key[1] == 4} == {
        ("a", 4): BROKEN, ("b", 4): BROKEN,
    }  # fmt: skip
    assert found["a", 6] == found["b", 6] == PASS


@pytest.mark.full
def test_a_router_that_drops_large_segments(lab: Lab) -> None:
    """Small segments pass and full ones do not: the answer says that."""
    pair = OverlayPair(lab)
    pair.forward("udp dport 8472 udp length > 1300 drop")
    assert [pair.look(family) for family in FAMILIES] == [NO_LARGE, NO_LARGE]
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"], one["where"]) == (*BROKEN[:2], ["path"])
        assert "small TCP segments pass" in one["because"]


@pytest.mark.full
def test_a_filter_of_network_ids(lab: Lab) -> None:
    """Nothing passes, and the row's own packets arrive: the filter is named as possible."""
    pair = OverlayPair(lab)
    pair.forward("udp dport 8472 @th,96,24 != { 0xfffffe, 0x000001 } drop")
    assert [pair.look(family, network=1) for family in FAMILIES] == [GOOD, GOOD]
    assert [pair.look(family) for family in FAMILIES] == [DEAD, DEAD]
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"]) == BROKEN[:2]
        assert "a filter for VXLAN network ids" in one["because"]


@pytest.mark.full
def test_an_agent_without_rights(lab: Lab) -> None:
    """Its tunnels are not tested, with the right that it lacks; the run ends with 3."""
    pair = OverlayPair(lab)
    done = pair.run("--rehearse", "-o", "json", enter={"b": unprivileged()})
    found = overlays(done)
    assert {(one["verdict"], one["reason"]) for one in found.values()} == {
        ("not-tested", "no-permission")
    }
    assert all("b: the agent lacks CAP_SYS_ADMIN" in one["because"] for one in found.values())
    assert done.status == 3


@pytest.mark.full
def test_a_port_that_a_tunnel_of_the_kernel_holds(lab: Lab) -> None:
    """The platform's own tunnel keeps its port: its host's tunnels are skipped, and say why."""
    pair = OverlayPair(lab)
    pair.b.ip(f"link add flannel.1 type vxlan id 1 dstport 8472 local {pair.b.address(4)}",
              "link set flannel.1 up")  # fmt: skip
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    skipped = [one for one in done.document["skipped"] if one["requirement"] == "vxlan/overlay"]
    assert {key for key in found if key[1] == 4} == set()
    assert {(one["source"], one["destination"]) for one in skipped} == {("a", "b"), ("b", "a")}
    words = "b: the kernel's tunnel flannel.1 holds UDP port 8472"
    assert {one["reason"] for one in skipped} == {words}
    assert done.document["complete"]
