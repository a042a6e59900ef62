"""Answers that are not what they seem: proxies, translations, full-size packets.

source - router-1 - router-2 - destination. Every case has a flow beside it that is as it seems.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab, Namespace, unprivileged

pytestmark = pytest.mark.lab

HERE = {4: "10.94.1.2", 6: "fd94:1::2"}
THERE = {4: "10.94.3.2", 6: "fd94:3::2"}
# A listener on every given port of the wildcard, both families; it accepts and says nothing.
ACCEPTOR = """
import select, socket, sys
sockets = []
for port in map(int, sys.argv[1:]):
    for family in (socket.AF_INET, socket.AF_INET6):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(("", port))
        sock.listen(64)
        sockets.append(sock)
kept = []
while True:
    for sock in select.select(sockets, [], [])[0]:
        kept.append(sock.accept())
"""


class Chain:
    """Four machines in a row, IPv4 and IPv6, with routes both ways."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        names = ("source", "router-1", "router-2", "destination")
        self.parts = [lab.namespace(name, router="router" in name) for name in names]
        self.source, self.router_1, self.router_2, self.destination = self.parts
        for number, (left, right) in enumerate(pairwise(self.parts), start=1):
            lab.cable(left, f"r{number}", right, f"l{number}")
            _address(left, f"r{number}", number, 2 if number == 1 else 1)
            _address(right, f"l{number}", number, 1 if number == 1 else 2)
        for part, via in (
            (self.source, "1::1"),
            (self.router_1, "2::2"),
            (self.destination, "3::1"),
        ):
            four = f"10.94.{via.replace('::', '.')}"
            part.ip(f"route add default via {four}", f"route add default via fd94:{via}")
        self.router_2.ip(
            "route add 10.94.1.0/24 via 10.94.2.1", "route add fd94:1::/64 via fd94:2::1"
        )
        lab.wait_until_ready()

    def accept(self, part: Namespace, *ports: int) -> None:
        """Something on this machine accepts connections to these ports and says nothing."""
        part.spawn(sys.executable, "-c", ACCEPTOR, *map(str, ports))
        part.wait_until_listening(*(f"tcp 0.0.0.0:{port}" for port in ports))

    def run(
        self,
        requirement: dict[str, Any],
        *,
        agent: bool,
        there: dict[int, str] = THERE,
        rights: bool = True,
        near: Sequence[str] = (),
        words: Sequence[str] = (),
    ) -> dict[tuple[str, Any], Any]:
        """What a run says, by address and port; path MTUs by address and their own name.

        ``rights``: whether the agents may capture; ``near``: a command that starts the source's
        agent; ``words`` are further ones of the command line.
        """
        matrix = {
            "schema": "netprobe.matrix/1", "name": "truth", "title": "Truth",
            "roles": {"src": {}, "dst": {}},
            "requirements": [
                {"id": "flow", "from": "src", "to": "dst", "purpose": "p", "row": "r",
                 **requirement}
            ],
        }  # fmt: skip
        drop = [] if rights else unprivileged()
        far: Any = {"command": [*self.destination.enter, *drop]} if agent else "none"
        from_here = {"command": [*self.source.enter, *drop, *near]}
        hosts = {
            "source": {"addresses": [*HERE.values()], "roles": ["src"], "vantage": from_here},
            "destination": {"addresses": [*there.values()], "roles": ["dst"], "vantage": far},
        }
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        done = netprobe(
            "run", "-o", "json",
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", yaml.safe_dump(inventory))),
            *words,
        )  # fmt: skip
        assert done.status in (0, 1, 3), done.stderr
        return {
            (
                one["address"],
                one["port"] if one["requirement"] == "flow" else one["requirement"],
            ): one
            for one in done.results
        }


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def _address(part: Namespace, device: str, net: int, last: int) -> None:
    part.ip(
        f"address add 10.94.{net}.{last}/24 dev {device}",
        f"address add fd94:{net}::{last}/64 dev {device} nodad",
    )


def _says(results: dict[tuple[str, Any], Any], what: Any, *keys: str) -> set[tuple[Any, ...]]:
    """What both families say of one port: equal things are one."""
    found = [results[address, what] for address in THERE.values()]
    return {
        tuple(tuple(v) if isinstance(v := one[key], list) else v for key in keys) for one in found
    }


def table(kind: str, hook: str, *rules: str) -> str:
    """An nft table with one chain."""
    lines = "\n".join((f"type {kind};", *rules))
    return f"table inet {hook} {{\nchain {hook} {{\n{lines}\n}}\n}}"


DNAT = "nat hook prerouting priority -100"
SNAT = "nat hook postrouting priority 100"
INPUT = "filter hook input priority 0"
FORWARD = "filter hook forward priority 0"


def test_a_transparent_proxy_is_no_open_port(chain: Chain) -> None:
    """A router that takes port 80 for itself answers nearer than the destination; 443 is real."""
    chain.accept(chain.destination, 443)
    chain.accept(chain.router_1, 80)
    chain.router_1.nft(table(DNAT, "nat", "tcp dport 80 redirect to :80"))

    results = chain.run({"tcp": [80, 443]}, agent=False)

    assert _says(results, 443, "verdict", "reason", "where") == {
        ("inconclusive", "unknown-holder", ("service",))
    }
    assert _says(results, 80, "verdict", "reason", "where") == {
        ("inconclusive", "false-open", ("path",))
    }


def test_a_firewall_that_answers_for_everybody_proves_nothing(chain: Chain) -> None:
    """Ports that nobody uses accept too: then no handshake counts."""
    chain.accept(chain.router_2, 81)
    chain.router_2.nft(table(DNAT, "nat", "meta l4proto tcp iifname l2 redirect to :81"))

    results = chain.run({"tcp": [8443]}, agent=False)

    assert _says(results, 8443, "verdict", "reason") == {("inconclusive", "false-open")}


@pytest.mark.full
def test_a_proxy_before_our_listener_is_noticed(chain: Chain) -> None:
    """With an agent there the nonce is not echoed, and its recorder never saw the connection."""
    chain.accept(chain.router_1, 80)
    chain.router_1.nft(table(DNAT, "nat", "tcp dport 80 redirect to :80"))

    results = chain.run({"tcp": [80, 443]}, agent=True)

    assert _says(results, 443, "verdict", "proof") == {("pass", "nonce")}
    assert _says(results, 80, "verdict", "reason", "where") == {
        ("blocked", "false-open", ("path",))
    }


@pytest.mark.parametrize("rights", [True, False], ids=["capture", "no-capture"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_another_port_of_ours_does_not_answer_for_the_asked_one(
    chain: Chain, protocol: str, rights: bool
) -> None:
    """A translation on the way takes the one port to the other; both have listeners of ours."""
    rules = [
        f"ip daddr {THERE[4]} {protocol} dport 7000 dnat ip to {THERE[4]}:7001",
        f"ip6 daddr {THERE[6]} {protocol} dport 7000 dnat ip6 to [{THERE[6]}]:7001",
    ]
    chain.router_2.nft(table(DNAT, "nat", *rules))

    results = chain.run({protocol: [7000, 7001]}, agent=True, rights=rights)

    assert _says(results, 7001, "verdict", "proof") == {("pass", "nonce")}
    verdict = "blocked" if rights else "inconclusive"
    assert _says(results, 7000, "verdict", "reason", "proof") == {(verdict, "false-open", "none")}


def test_translation_of_the_source_is_reported(chain: Chain) -> None:
    """Masquerading between the hosts lets everything through, and the report says so."""
    chain.router_2.nft(table(SNAT, "nat", "oifname r3 masquerade"))

    results = chain.run({"tcp": [6443], "udp": [8285]}, agent=True)

    for port in (6443, 8285):
        assert _says(results, port, "verdict") == {("pass",)}
    assert all("source address is translated" in one["warnings"][0] for one in results.values())


@pytest.mark.parametrize("hidden", [False, True], ids=["limiting hop named", "black hole"])
def test_a_path_too_narrow_for_the_overlay(chain: Chain, hidden: bool) -> None:
    """The link between the routers carries 1,400 bytes; ICMP tells so, or is dropped."""
    for part, device in ((chain.router_1, "r2"), (chain.router_2, "l2")):
        part.ip(f"link set {device} mtu 1400")
    if hidden:
        four = "icmp type destination-unreachable icmp code 4 drop"
        chain.source.nft(table(INPUT, "quiet", four, "icmpv6 type packet-too-big drop"))

    results = chain.run({"udp": [8472], "probe": "vxlan"}, agent=True)

    assert _says(results, 8472, "verdict", "proof") == {("pass", "witness")}
    keys = ("verdict", "reason", "path_mtu_bytes", "rejected_by")
    if hidden:
        assert _says(results, "path-mtu", *keys) == {("blocked", "mtu-black-hole", 1400, None)}
    else:
        assert _says(results, "path-mtu", *keys) == {
            ("blocked", "mtu-too-small", 1400, "10.94.1.1"),
            ("blocked", "mtu-too-small", 1400, "fd94:1::1"),
        }


def test_a_wide_path_carries_the_overlay(chain: Chain) -> None:
    """Full-size packets arrive: the result passes and says how large they were."""
    results = chain.run({"udp": [8472], "probe": "vxlan"}, agent=True)

    assert _says(results, "path-mtu", "verdict", "path_mtu_bytes", "proof") == {
        ("pass", 1500, "witness")
    }


def test_a_dead_host_that_others_ask_for_is_not_called_rejected(chain: Chain) -> None:
    """While somebody else's packets wait for a dead neighbour, the router's word comes early."""
    chain.router_1.spawn("ping", "-q", "-i", "0.7", "10.94.3.99")

    # WireGuard's port, so that the path MTU is asked for, too.
    found = chain.run({"udp": [51820], "tcp": [6443]}, agent=False, there={4: "10.94.3.99"})

    assert ("10.94.3.99", "path-mtu") in found
    verdicts = {(one["verdict"], one["reason"], tuple(one["where"])) for one in found.values()}
    # Nobody asks on its own network: the router's next hop may be another router.
    assert verdicts == {("blocked", "host-down", ("host", "path"))}


def test_a_router_that_says_host_unreachable_for_one_port_rejects_it(chain: Chain) -> None:
    """The host is up, as other ports show: then the router's word is a rule."""
    rule = "tcp dport 6443 reject with icmpx host-unreachable"
    chain.router_2.nft(table(FORWARD, "wall", rule))

    found = chain.run({"tcp": [6443]}, agent=False)

    assert _says(found, 6443, "verdict", "reason", "where") == {
        ("blocked", "host-unreach", ("path",))
    }
    assert {one["rejected_by"] for one in found.values()} == {"10.94.2.2", "fd94:2::2"}


def test_a_rejecting_router_that_was_slow_is_not_called_a_dead_host(chain: Chain) -> None:
    """Its answers are rationed; one that comes with a repetition is as late as a dead host's."""
    drops = ", ".join(f"{number} : drop" for number in (0, 1, 3, 4))
    chain.router_2.nft(
        table(
            FORWARD, "wall",
            f"tcp dport 6443 numgen inc mod 1000 vmap {{ {drops} }}",
            "tcp dport 6443 reject with icmpx host-unreachable",
        )
    )  # fmt: skip

    found = chain.run({"tcp": [6443]}, agent=False, there={4: THERE[4]})

    said = found[THERE[4], 6443]
    assert (said["reason"], said["where"], said["rejected_by"]) == (
        "host-unreach", ["path"], "10.94.2.2",
    )  # fmt: skip


@pytest.mark.parametrize("agent", [True, False], ids=["agent", "no-agent"])
def test_silence_is_blocked_also_where_the_kernel_gives_up_early(chain: Chain, agent: bool) -> None:
    """The source's kernel sends two SYNs, and ends a connect before a first look does."""
    chain.source.run("sysctl", "-qw", "net.ipv4.tcp_syn_retries=1")
    chain.router_2.nft(table(FORWARD, "wall", "tcp dport 7000 drop"))

    found = chain.run({"tcp": [7000]}, agent=agent, there={4: THERE[4]})

    said = found[THERE[4], 7000]
    assert (said["verdict"], said["reason"]) == ("blocked", "no-response")


# Of each connection (by its own port) the first SYN is dropped.
FIRST_SYNS = """
table ip starts {{
 set known {{ type inet_service . inet_service; flags dynamic,timeout; timeout 3s; size 65535; }}
 chain forward {{
  type filter hook forward priority 0
  {loss}
  tcp flags & (syn | ack) != syn accept
  tcp dport != 7000-7001 accept
  tcp sport . tcp dport @known accept
  add @known {{ tcp sport . tcp dport }} drop
 }}
}}
"""
LOSS = "ip protocol tcp numgen random mod 16 0 drop"


@pytest.mark.parametrize("loss", ["", LOSS], ids=["alone", "beside loss"])
def test_a_slow_start_passes_with_a_warning(chain: Chain, loss: str) -> None:
    """Where the first SYN of each connection is dropped, the kernel's second one gets through."""
    chain.source.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=30000 60999")
    chain.router_2.nft(FIRST_SYNS.format(loss=loss))

    found = chain.run({"tcp": [7000, 7001, 7002, 7003]}, agent=True, there={4: THERE[4]})

    assert {one["verdict"] for one in found.values()} == {"pass"}
    slow = {port for (_, port), one in found.items() if "a slow start" in str(one["warnings"])}
    assert slow == {7000, 7001}


def test_loss_is_no_slow_start(chain: Chain) -> None:
    """Some first SYNs get lost, and others do not."""
    chain.router_2.nft(table(FORWARD, "loss", "ip protocol tcp numgen random mod 8 0 drop"))

    found = chain.run({"tcp": ["7000-7015"]}, agent=True, there={4: THERE[4]})

    assert {(one["verdict"], str(one["warnings"])) for one in found.values()} == {("pass", "[]")}


# Hands on what it gets at its first argument to the second one, by connections of its own.
PROXY = """
import asyncio, sys
async def hand_on(reader, writer):
    while data := await reader.read(4096):
        writer.write(data)
    writer.close()
async def serve(reader, writer):
    far_reader, far_writer = await asyncio.open_connection(sys.argv[2], int(sys.argv[1]))
    await asyncio.gather(hand_on(reader, far_writer), hand_on(far_reader, writer))
async def main():
    await (await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]))).serve_forever()
asyncio.run(main())
"""


def test_a_proxy_that_may_hand_it_on_to_a_holder_is_no_false_block(chain: Chain) -> None:
    """Its connections are its own: nobody sees whether data gets through to who holds the port."""
    chain.accept(chain.destination, 7000)
    chain.router_1.spawn(sys.executable, "-c", PROXY, "7000", THERE[4])
    chain.router_1.wait_until_listening("tcp 0.0.0.0:7000")
    chain.router_1.nft(table(DNAT, "nat", "tcp dport 7000 redirect to :7000"))

    wanted = {"tcp": [7000], "existing": True}
    found = chain.run(wanted, agent=True, there={4: THERE[4]})

    said = found[THERE[4], 7000]
    assert (said["verdict"], said["reason"], said["where"]) == (
        "inconclusive", "false-open", ["path"],
    )  # fmt: skip
    assert "whether it hands it on to " in said["because"]
