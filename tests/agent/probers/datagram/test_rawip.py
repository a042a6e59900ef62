"""Raw IP protocols: one way, with the errors that come back, or no permission."""

from __future__ import annotations

import pytest

from netprobe.agent.probers.datagram.udp import RawEngine
from netprobe.agent.wire.parts import IcmpFact
from tests.agent import netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R1, SOURCE, inside
from tests.agent.rig import Agent, Found, order
from tests.rights import without_rights

# Numbers that RFC 3692 keeps for experiments: no kernel handles them.
NUMBER = 253


def probe(address: str, look_ms: int = 600, number: int = NUMBER) -> Found:
    """One raw packet order from the source and its only outcome."""
    agent = Agent()
    with inside(SOURCE):
        engine = RawEngine(agent)
        engine.submit(order(1, "ipproto", address, [], mode="send", template=1, number=number,
                            look_ms=look_ms))  # fmt: skip
        agent.wait(1)
    engine.close()
    (found,) = agent.outcomes(1).values()
    return found


@pytest.mark.lab
def test_a_host_without_a_handler_says_so(lab: None) -> None:
    """ICMP 3/2 from the destination: the way is open."""
    found = probe(ADDRESS[4]["destination"])

    assert (found.kind.op, found.kind.failure) == ("send", "protocol-unreachable")
    assert found.kind.icmp == IcmpFact(3, 2, ADDRESS[4]["destination"], 62)


@pytest.mark.lab
def test_ipv6_answers_with_a_parameter_problem(lab: None) -> None:
    """ICMPv6 4/1 is the same answer of IPv6."""
    found = probe(ADDRESS[6]["destination"])

    assert (found.kind.op, found.kind.failure) == ("send", "protocol-error")
    assert found.kind.icmp == IcmpFact(4, 1, ADDRESS[6]["destination"], 62)


@pytest.mark.lab
@pytest.mark.parametrize("family", [4, 6])
def test_a_drop_is_silent(lab: None, family: int) -> None:
    """One way and nothing heard: sent, and no failure."""
    netlab.rule(R1, "forward", f"meta l4proto {NUMBER} drop")
    found = probe(ADDRESS[family]["destination"])

    assert (found.kind.op, found.kind.failure, found.kind.icmp) == ("send", None, None)


@pytest.mark.lab
def test_a_reject_names_its_sender(lab: None) -> None:
    """A router's 3/13 is told from the destination's 3/2.

    nft rejects ESP, but not protocols that it does not know: it wants their checksum to be right.
    """
    netlab.rule(R1, "forward", "meta l4proto 50 reject with icmp type admin-prohibited")
    found = probe(ADDRESS[4]["destination"], number=50)

    assert found.kind.icmp == IcmpFact(3, 13, ADDRESS[4]["r1"], 64)


@pytest.mark.lab
def test_our_own_firewall_is_not_permitted(lab: None) -> None:
    """EPERM from send."""
    netlab.rule(SOURCE, "output", f"meta l4proto {NUMBER} drop")
    found = probe(ADDRESS[4]["destination"])

    assert (found.kind.op, found.kind.failure, found.kind.left) == ("send", "not-permitted", False)


@pytest.mark.lab
def test_errors_of_other_destinations_are_not_ours(lab: None) -> None:
    """A raw socket hears errors of every packet of its protocol; our destination's count."""
    netlab.rule(DESTINATION, "input", f"ip daddr 10.66.3.2 meta l4proto {NUMBER} drop")
    agent = Agent()
    with inside(SOURCE):
        engine = RawEngine(agent)
        for number, address in ((1, ADDRESS[4]["destination"]), (2, ADDRESS[4]["r2_far"])):
            engine.submit(order(number, "ipproto", address, [], mode="send", template=1,
                                number=NUMBER, look_ms=600))  # fmt: skip
        agent.wait(1, 2)
    engine.close()

    assert agent.outcomes(1)[0].kind.failure is None
    assert agent.outcomes(2)[0].kind.failure == "protocol-unreachable"


def test_no_right_to_raw_sockets_is_no_permission() -> None:
    """Without CAP_NET_RAW the outcome is no-permission, never silence."""
    agent = Agent()
    with without_rights():
        engine = RawEngine(agent)
        engine.submit(order(1, "ipproto", "127.0.0.1", [], mode="send", number=NUMBER))
    (found,) = agent.outcomes(1).values()
    engine.close()

    assert (found.kind.op, found.kind.failure) == ("bind", "no-permission")
