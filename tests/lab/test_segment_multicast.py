"""VRRP's multicast between hosts: switches that filter it, and those that do not."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.lab.cli import Finished
from tests.lab.netlab import Lab, wait_for
from tests.lab.segments import Switch, Watching

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("tcpdump")]

ARRIVES, FILTERED = ("pass", "multicast-arrives"), ("blocked", "multicast-filtered")
LINKS = {4: "01:00:5e:00:00:12", 6: "33:33:00:00:00:12"}
Ways = dict[tuple[str, str, int], tuple[str, str]]


@pytest.fixture
def switch() -> Iterator[Switch]:
    """Hosts with a row of VRRP."""
    with Lab() as lab:
        made = Switch(lab)
        made.rows = [{"id": "vrrp", "ipproto": [112]}]
        yield made


def told(done: Finished, requirement: str = "vrrp/segment") -> Ways:
    """Verdict and reason of each way."""
    return {
        (one["source"], one["destination"], 6 if ":" in one["address"] else 4):
        (one["verdict"], one["reason"])
        for one in done.results if one["requirement"] == requirement
    }  # fmt: skip


def ways(fate: tuple[str, str]) -> Ways:
    """All ways have this fate."""
    return {(a, b, family): fate for a, b in ("ab", "ba") for family in (4, 6)}


def drop_on(switch: Switch, words: str) -> None:
    """Let the switch drop such frames."""
    switch.switch.run("nft", "add", "table", "bridge", "f")
    chain = "{ type filter hook forward priority 0; }"
    switch.switch.run("nft", "add", "chain", "bridge", "f", "c", chain)
    switch.switch.run("nft", "add", "rule", "bridge", "f", "c", *words.split(), "drop")


@pytest.mark.full
def test_a_switch_that_drops_the_group(switch: Switch) -> None:
    """It drops IPv4's: each way is blocked there, in one finding, although packets of the protocol
    pass from host to host; IPv6's passes. tcpdump saw three packets of each family leave a, of the
    id 0, and none of IPv4 arrive at b."""
    drop_on(switch, f"ether daddr {LINKS[4]}")
    words = "ip proto 112 or ip6 proto 112"
    seen = [Watching(switch.lab, host, words=words) for host in switch.hosts]
    done = switch.run("--rehearse=segment", "-o", "json")
    at_a, at_b = ([line for line in one.end() if "vrid 0" in line] for one in seen)
    wanted = {key: FILTERED if key[2] == 4 else ARRIVES for key in ways(ARRIVES)}
    assert (told(done), done.status) == (wanted, 1)
    assert {verdict for verdict, _ in told(done, "vrrp").values()} == {"pass"}
    assert len(done.document["findings"]) == 1
    for family in (4, 6):
        way = " 10.96.0.1 > 224.0.0.18" if family == 4 else " fd96::1 > ff02::12"
        sent = [line for line in at_a if way in line]
        came = [line for line in at_b if way in line]
        assert (len(sent), len(came)) == (3, 3 if family == 6 else 0)


@pytest.mark.full
def test_switches_that_do_not_filter(switch: Switch) -> None:
    """One that floods, and one with snooping, which hands IPv6's group on to hosts that have joined
    it: all ways pass."""
    assert told(switch.run("--rehearse=segment", "-o", "json")) == ways(ARRIVES)
    _snoop(switch)
    done = switch.run("--rehearse=segment", "-o", "json")
    assert (told(done), done.status) == (ways(ARRIVES), 0)


def _snoop(switch: Switch) -> None:
    """Let the switch ask who has joined which group, and hand groups on to these alone."""
    switch.switch.ip(
        "link set br0 type bridge mcast_query_response_interval 50 mcast_startup_query_interval 50"
        " mcast_snooping 1 mcast_querier 1",
        "address add 10.96.0.254/24 dev br0",
        "address add fd96::254/64 dev br0 nodad",
    )

    watching = Watching(switch.lab, switch.hosts[1], words="ip6 and udp")
    ports = iter(range(10000, 60000, 2))

    def filters() -> bool:
        port = next(ports)
        switch.hosts[0].inside(lambda: _send_to(("ff02::12", port), ("fd96::2", port + 1)))
        watching.wait_for(f"fd96::2.{port + 1}:")
        return not any(f"ff02::12.{port}:" in line for line in watching.lines())

    wait_for(filters, "a switch that keeps the group from who has not joined it")


def _send_to(*targets: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        for text, port in targets:
            sock.sendto(b"x", (text, port, 0, socket.if_nametoindex("e0")))


@pytest.mark.full
def test_one_port_that_filters(switch: Switch) -> None:
    """Of three hosts one hears nobody: its ways are blocked, and say that the third heard."""
    switch.hosts.append(switch.plug("c", 3))
    drop_on(switch, f"oifname p-b ether daddr {{ {LINKS[4]}, {LINKS[6]} }}")
    done = switch.run("--rehearse=segment", "-o", "json")
    found = told(done)
    assert len(found) == 12
    assert {key for key, fate in found.items() if fate == FILTERED} == {
        (source, "b", family) for source in "ac" for family in (4, 6)
    }
    (one, *_) = [one for one in done.results if one["reason"] == "multicast-filtered"]
    assert one["because"].endswith("; c heard them")


@pytest.mark.full
def test_the_protocol_itself_is_stopped(switch: Switch) -> None:
    """Then the row says so, and nothing more is said of the group."""
    drop_on(switch, "ether type { ip, ip6 } meta l4proto 112")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert {verdict for verdict, _ in told(done, "vrrp").values()} == {"blocked"}
    assert told(done) == ways(("not-tested", "row-stopped"))
