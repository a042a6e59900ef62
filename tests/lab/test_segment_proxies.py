"""Machines that answer for addresses of others, for some or for all, and frames that get lost.

What another machine of the switch has in its neighbour table says whether it is true.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab, Namespace
from tests.lab.segments import VIP, Switch, segments, told

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.full]

FREE, ALONE = ("pass", "address-free"), ("pass", "one-machine")
IN_USE, OTHER = ("blocked", "address-in-use"), ("blocked", "other-machine")
HEALTHY = {("vip", family): FREE for family in (4, 6)} | {
    (host, family): ALONE for host in "ab" for family in (4, 6)
}  # fmt: skip
FOR_ALL = "a router that answers for all"


@pytest.fixture
def switch() -> Iterator[Switch]:
    with Lab() as lab:
        yield Switch(lab)


def link_for(host: Namespace, address: str) -> str | None:
    """The link-layer address that a machine's kernel finds for an address, None without one."""
    host.run("ping", "-c", "1", "-W", "1", address, check=False)
    words = host.run("ip", "neigh", "show", address).split()
    return words[words.index("lladdr") + 1] if "lladdr" in words else None


def silence(host: Namespace) -> None:
    """Let a machine answer no ARP."""
    host.run("sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=8")


def test_a_stranger_alone_is_no_router(switch: Switch) -> None:
    """A host answers no ARP, and a stranger has its address, and the free one: both are blocked,
    with its MAC. It answers for no address that nobody has."""
    b, stranger, third = switch.hosts[1], switch.plug("stranger", 9), switch.plug("third", 7)
    silence(b)
    for text in (b.address(4), VIP[4]):
        stranger.ip(f"address add {text}/24 dev e0")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == HEALTHY | {("b", 4): OTHER, ("vip", 4): IN_USE}
    link = switch.link(stranger)
    for key in (("b", 4), ("vip", 4)):
        assert f"{link} answers ARP requests for " in segments(done)[key]["because"]
    assert [link_for(third, one) for one in (VIP[4], "10.96.0.50")] == [link, None]


def test_a_router_that_answers_for_all(switch: Switch) -> None:
    """Its answers for addresses of hosts, which hear each other no more, and for the free one say
    nothing: skipped with the reason, no finding."""
    proxy, third = switch.plug("proxy", 9), switch.plug("third", 7)
    for host in switch.hosts:
        silence(host)
    _answer_for_all(proxy)
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == {key: one for key, one in HEALTHY.items() if key[1] == 6}
    assert sum(FOR_ALL in one["reason"] for one in done.document["skipped"]) == 3
    assert link_for(third, "10.96.0.50") == switch.link(proxy)


def test_a_router_that_answers_for_all_beside_a_host(switch: Switch) -> None:
    """Nobody answers alone, and no stranger is found: skipped. Without a host that is silent the
    router is known all the same."""
    _answer_for_all(switch.plug("proxy", 9))
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == {key: one for key, one in HEALTHY.items() if key[1] == 6}
    assert sum(FOR_ALL in one["reason"] for one in done.document["skipped"]) == 3
    switch.give(switch.plug("stranger", 8), VIP[4])
    assert told(switch.run("--rehearse=segment", "-o", "json"))["vip", 4] == IN_USE


def _answer_for_all(host: Namespace) -> None:
    """Let a machine answer for all addresses that it would send back to the switch."""
    host.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.e0.proxy_arp_pvlan=1")


def test_a_machine_that_answers_for_others(switch: Switch) -> None:
    """By entries for the free addresses and for a host's, with `ip neigh add proxy`: Linux answers
    no ARP probe then, and every other machine learns its MAC."""
    proxy, third = switch.plug("proxy", 9), switch.plug("third", 7)
    behind = switch.lab.namespace("behind")
    switch.lab.cable(proxy, "d0", behind, "d0")
    proxy.ip("link set d0 up")
    proxy.run(
        "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
        "net.ipv6.conf.all.proxy_ndp=1",
    )  # fmt: skip
    for text in (*VIP.values(), "10.96.0.2"):
        proxy.ip(f"route add {text} dev d0", f"neigh add proxy {text} dev e0")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == HEALTHY | {
        ("vip", 4): IN_USE, ("vip", 6): IN_USE, ("b", 4): OTHER
    }  # fmt: skip
    link = switch.link(proxy)
    assert (
        f"{link} answers ARP requests for the address, beside b"
        in (segments(done)["b", 4]["because"])
    )
    assert [link_for(third, one) for one in VIP.values()] == [link, link]


def test_a_machine_that_answers_probes_alone(switch: Switch) -> None:
    """It has no way back to who asks, and checks that (`rp_filter`): it answers no request, and has
    the free address all the same."""
    stranger = switch.lab.namespace("stranger")
    switch.lab.cable(stranger, "e0", switch.switch, "p-stranger")
    switch.switch.ip("link set p-stranger master br0")
    stranger.ip("link set e0 up", f"address add {VIP[4]}/32 dev e0")
    stranger.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1")
    third = switch.plug("third", 7)
    switch.lab.wait_until_ready()
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == HEALTHY | {("vip", 4): IN_USE}
    assert link_for(third, VIP[4]) is None


def test_frames_that_get_lost(switch: Switch) -> None:
    """A stranger has the free addresses, and gets neither of the first two rounds of questions:
    it is found all the same."""
    stranger = switch.plug("stranger", 9)
    switch.give(stranger, *VIP.values())
    stranger.nft("""
table arp f {
  counter lost {}
  chain i {
    type filter hook input priority 0;
    arp operation request arp daddr ip 10.96.0.100 limit rate over 1/hour burst 4 packets accept
    arp operation request arp daddr ip 10.96.0.100 counter name lost drop
  }
}
table ip6 f {
  counter lost {}
  chain i {
    type filter hook input priority 0;
    icmpv6 type nd-neighbor-solicit ip6 saddr :: limit rate over 1/hour burst 2 packets accept
    icmpv6 type nd-neighbor-solicit ip6 saddr :: counter name lost drop
  }
}
""")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == HEALTHY | {("vip", family): IN_USE for family in (4, 6)}
    for family in ("arp", "ip6"):
        assert "packets 0" not in stranger.run("nft", "list", "counter", family, "f", "lost")
