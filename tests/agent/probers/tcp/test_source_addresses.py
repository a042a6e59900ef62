"""Connects of large orders leave from the address that the kernel or the inventory chooses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from netprobe.agent.probers.tcp.engine import TcpEngine
from tests.agent import netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R2, SOURCE, inside
from tests.agent.rig import Agent, order

pytestmark = pytest.mark.lab

DESTINATION_4 = ADDRESS[4]["destination"]
SECOND = "10.66.1.77"
NEXT_DOOR = "10.66.3.77"
PORTS = range(1001, 3001)
TO_ONE_PORT = f"""
table ip one {{
chain prerouting {{
type nat hook prerouting priority dstnat
ip daddr {DESTINATION_4} tcp dport 1001-3000 dnat to {DESTINATION_4}:9999
}}
}}
"""
Sent = set[tuple[str, int, int]]


@pytest.fixture
def lab() -> Iterator[None]:
    """The chain of namespaces, new for each test."""
    netlab.build()
    yield
    netlab.remove()


class Sniffer:
    """Every SYN that arrives at the destination: its kernel notes them and forgets none."""

    def __init__(self, family: int) -> None:
        version = "ip" if family == 4 else "ip6"
        rules = f"""
            table inet sniffer {{
                set syns {{
                    typeof {version} saddr . tcp sport . tcp dport
                    size 65535
                    flags dynamic
                }}
                chain arriving {{
                    type filter hook input priority 0
                    tcp flags & (syn | ack) == syn \\
                        add @syns {{ {version} saddr . tcp sport . tcp dport }}
                }}
            }}
        """
        self._nft("-f", "-", rules=rules)

    def syns(self) -> Sent:
        """Source address, source port and destination port of every SYN so far."""
        words = self._nft("-j", "list", "set", "inet", "sniffer", "syns")
        _, listed = json.loads(words)["nftables"]
        return {tuple(one["concat"]) for one in listed["set"].get("elem", ())}

    def _nft(self, *words: str, rules: str = "") -> str:
        command = ["ip", "netns", "exec", DESTINATION, "nft", *words]
        done = subprocess.run(command, input=rules, capture_output=True, text=True, check=True)
        return done.stdout


def scan(family: int = 4, ports: range = PORTS, **more: Any) -> Sent:
    """Probe closed ports, which all refuse; what was sent for it."""
    sniffer = Sniffer(family)
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        # Kernels under load lose some of thousands of packets: a look outlasts the second SYN.
        looks = {"first_ms": 4000, **more}
        ends = [(ports[0], ports[-1])]
        engine.submit(order(1, "tcp", ADDRESS[family]["destination"], ends, **looks))
        agent.wait(1)
        engine.close()
    found = agent.outcomes(1)
    assert set(found) == set(ports)
    others = {port: each for port, each in found.items() if each.kind.failure != "refused"}
    assert others == {}, f"{len(others)} of {len(found)}, {len(sniffer.syns())} SYNs arrived"
    assert {each.looks for each in found.values()} == {1}
    return sniffer.syns()


def command(*words: str, namespace: str = SOURCE) -> None:
    """Change a host's network settings."""
    subprocess.run(["ip", "-n", namespace, *words], check=True)


def second_address(*selector: str) -> None:
    """What the selector matches leaves from the source's second address."""
    command("address", "add", f"{SECOND}/24", "dev", "n1a")
    command("route", "add", "default", "via", ADDRESS[4]["r1"], "src", SECOND, "table", "100")
    command("rule", "add", *selector, "lookup", "100")


@pytest.mark.parametrize(("family", "address"), [(4, SECOND), (6, "fd66:1::77")])
def test_a_chosen_source_address_is_kept(lab: None, family: int, address: str) -> None:
    """What the inventory wants as source address is what every connect has."""
    plain = ("address", "add", f"{address}/{'24' if family == 4 else '64'}", "dev", "n1a")
    command(*plain, *(("nodad",) if family == 6 else ()))
    netlab.settle(family, address)
    sent = scan(family, src=address)

    assert {source for source, _, _ in sent} == {address}


def test_a_chosen_source_address_is_kept_beside_the_kernels_choice(lab: None) -> None:
    """Sockets that the kernel has given this address are not taken for those bound to it."""
    command("address", "add", f"{SECOND}/24", "dev", "n1a")
    command("route", "add", DESTINATION_4, "via", ADDRESS[4]["r1"], "src", SECOND)
    # The other one would leave from the first address.
    command("address", "add", f"{NEXT_DOOR}/24", "dev", "n3b", namespace=DESTINATION)
    netlab.rule(DESTINATION, "input", "tcp dport 1001-2000 drop")
    sniffer, agent = Sniffer(4), Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", DESTINATION_4, [(1001, 4000)], look_ms=2000))
        other = order(2, "tcp", NEXT_DOOR, [(5001, 5300)], src=SECOND)
        agent.loop.call_later(1.0, lambda: engine.submit(other))
        agent.wait(1, 2)
        engine.close()
    sent = sniffer.syns()
    assert {address for address, _, port in sent if port > 5000} == {SECOND}


def test_an_address_that_the_host_loses_is_not_kept(lab: None) -> None:
    """Connects go on from the next one that the kernel chooses, as those of any program."""
    gateway = ("default", "via", ADDRESS[4]["r1"])
    command("address", "add", f"{SECOND}/32", "dev", "n1a")
    command("route", "replace", *gateway, "src", SECOND)
    agent = Agent()
    agent.rate.limit(2000)

    def lose() -> None:
        command("route", "replace", *gateway)
        command("address", "del", f"{SECOND}/32", "dev", "n1a")

    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", DESTINATION_4, [(PORTS[0], PORTS[-1])], looks=2))
        agent.loop.call_later(0.5, lose)
        agent.wait(1)
        engine.close()

    assert {each.kind.failure for each in agent.outcomes(1).values()} == {"refused"}


def test_a_routing_rule_for_ports_still_chooses_the_source(lab: None) -> None:
    """Where the source address depends on the port, the kernel chooses it connect by connect."""
    second_address("ipproto", "tcp", "dport", "2000-2999")
    sent = scan()

    expected = {port: SECOND if 2000 <= port <= 2999 else ADDRESS[4]["source"] for port in PORTS}
    assert {port: address for address, _, port in sent} == expected


@pytest.mark.parametrize("place", [R2, DESTINATION])
def test_a_range_that_is_translated_to_one_port_answers_on_each(lab: None, place: str) -> None:
    """Connection tracking then sees source ports again towards one port, and must drop none."""
    command = ["ip", "netns", "exec", place, "nft", "-f", "-"]
    subprocess.run(command, input=TO_ONE_PORT.encode(), check=True)
    scan()
