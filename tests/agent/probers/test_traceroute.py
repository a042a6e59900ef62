"""TTL walks over two real routers: who still answers, and whether the destination does."""

from __future__ import annotations

import socket

import pytest

from netprobe.agent.probers.traceroute import Walker
from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.orders import WalkOrder
from netprobe.agent.wire.parts import IcmpFact
from tests.agent import netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R1, R2, SOURCE, inside
from tests.agent.rig import Agent

PROTOCOLS = ["tcp", "udp", "icmp"]


def walk(agent: Agent, *orders: WalkOrder) -> list[Walked]:
    """Run walks at once; their answers in the same order."""
    with inside(SOURCE):
        walker = Walker(agent)
        for number, order in enumerate(orders, 1):
            walker.submit(order._replace(id=number))
        agent.wait(*range(1, len(orders) + 1))
    walker.close()
    found = {message.id: message for message in agent.sent(Walked)}
    return [found[number] for number in range(1, len(orders) + 1)]


def to(family: int, proto: str, port: int = 33) -> WalkOrder:
    """A walk to the destination."""
    return WalkOrder(0, proto, ADDRESS[family]["destination"], port, None, 20, 0)


@pytest.mark.lab
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("proto", PROTOCOLS)
def test_an_open_way_shows_every_hop(lab: None, family: int, proto: str) -> None:
    """Both routers and the destination answer, at once."""
    agent = Agent()
    (found,) = walk(agent, to(family, proto))
    address = ADDRESS[family]

    assert found.hops == [(1, address["r1"]), (2, address["r2"]), (3, address["destination"])]
    assert (found.reached, found.failure) == (True, None)


@pytest.mark.lab
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(
    ("namespace", "hook", "heard"),
    [
        (SOURCE, "output", []),
        (R1, "forward", ["r1"]),
        (R2, "forward", ["r1", "r2"]),
        (DESTINATION, "input", ["r1", "r2"]),
    ],
)
def test_a_drop_is_behind_the_last_hop(
    lab: None, family: int, namespace: str, hook: str, heard: list[str]
) -> None:
    """The walk uses the real protocol and port, so the hops end where the rule is."""
    echo = "icmp type echo-request drop\nicmpv6 type echo-request drop"
    netlab.rule(namespace, hook, f"meta l4proto {{tcp, udp}} th dport 33 drop\n{echo}")
    agent = Agent()
    answers = walk(agent, *(to(family, proto) for proto in PROTOCOLS))
    others = walk(Agent(), to(family, "tcp", 34))

    expected = [(ttl, ADDRESS[family][name]) for ttl, name in enumerate(heard, 1)]
    for found in answers:
        assert [hop for hop in found.hops if hop.address is not None] == expected
        assert not found.reached
    if namespace == SOURCE:
        assert [found.failure for found in answers] == [None, "not-permitted", "not-permitted"]
    assert others[0].reached, "another port is not touched by the rule"


@pytest.mark.lab
def test_a_refusing_router_ends_the_walk(lab: None) -> None:
    """What rejects is the last hop, with its words; the destination was not reached."""
    netlab.rule(R2, "forward", "tcp dport 33 reject with icmp type admin-prohibited")
    (found,) = walk(Agent(), to(4, "tcp"))

    assert found.hops == [(1, ADDRESS[4]["r1"]), (2, ADDRESS[4]["r2"]), (3, ADDRESS[4]["r2"])]
    assert (found.reached, found.refusal) == (False, IcmpFact(3, 13, ADDRESS[4]["r2"], 63))


@pytest.mark.lab
def test_packets_of_a_walk_are_nobodys_evidence(lab: None) -> None:
    """A walk may leave from a port that a probe used: its packets, with few hops to live, say
    nothing about the flow."""
    agent = Agent()
    target = socket.inet_aton(ADDRESS[4]["destination"])
    probed = {(target, 33, port) for port in range(1, 1 << 16)}
    agent.own_ports = set(probed)
    (found,) = walk(agent, to(4, "tcp"))

    assert found.reached
    assert len(probed - agent.own_ports) >= len(found.hops)


@pytest.mark.lab
def test_no_route_is_a_failure_of_our_own(lab: None) -> None:
    """Where nothing can be sent, the failure has its name and no hop is invented."""
    netlab.route(SOURCE, "add", "prohibit", "10.99.0.0/24")
    for proto in PROTOCOLS:
        (found,) = walk(Agent(), to(4, proto)._replace(dst="10.99.0.1"))

        assert (found.failure, found.reached) == ("access-denied", False)
        assert all(address is None for _, address in found.hops)


@pytest.mark.lab
@pytest.mark.slow
def test_many_walks_keep_the_routers_pace(lab: None) -> None:
    """Eight walks at once with default ICMP limits: none loses a hop to a rate limit."""
    netlab.rule(R2, "forward", "tcp dport 33-50 drop")
    answers = walk(Agent(), *(to(4, "tcp", port) for port in range(33, 41)))

    for found in answers:
        assert found.hops[:2] == [(1, ADDRESS[4]["r1"]), (2, ADDRESS[4]["r2"])]


@pytest.mark.lab
def test_walks_that_are_alike_share_their_only_hop(lab: None) -> None:
    """Twelve walks at once: its router says "time exceeded" six times, and all of them know it."""
    netlab.rule(R1, "forward", "tcp dport 33 drop")
    answers = walk(Agent(), *(to(4, "tcp") for _ in range(12)))

    assert {tuple(found.hops[:2]) for found in answers} == {((1, ADDRESS[4]["r1"]), (2, None))}
