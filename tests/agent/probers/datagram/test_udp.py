"""The UDP engine against real sockets on loopback and real firewalls in namespaces."""

from __future__ import annotations

import resource
import socket
import subprocess
from collections.abc import Iterator

import pytest

from netprobe.agent.core import pump
from netprobe.agent.probers.datagram import order_keeper
from netprobe.agent.probers.datagram.udp import UdpEngine
from netprobe.agent.wire.answers import Done, ProbeOutcomes
from netprobe.agent.wire.parts import IcmpFact, Pace
from tests.agent import firewalls, netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R1, SOURCE, inside
from tests.agent.rig import HOST, Agent, Found, UdpResponder, one, only, order
from tests.ports import free_port, free_ports

LOOPBACK = ["127.0.0.1", "::1"]


@pytest.fixture
def agent() -> Agent:
    """An agent with nothing on it."""
    return Agent()


@pytest.fixture
def engine(agent: Agent) -> Iterator[UdpEngine]:
    """A UDP engine in the present namespace, closed afterwards."""
    engine = UdpEngine(agent)
    yield engine
    engine.close()


@pytest.mark.parametrize("address", LOOPBACK)
@pytest.mark.parametrize(
    ("how", "answer", "by"),
    [("answer", "nonce", HOST), ("reflect", "reflected", None), ("noise", "garbled", None)],
)
def test_what_a_listener_says_is_told_apart(
    agent: Agent, engine: UdpEngine, address: str, how: str, answer: str, by: int | None
) -> None:
    """Only the right MAC is an answer, and only that has a TTL worth keeping."""
    responder = UdpResponder(agent, address, how)
    message = order(1, "udp", address, only(responder.port), mode="nonce", template=1, host=HOST)
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.op, found.kind.failure) == ("answer", None)
    assert (found.kind.answer, found.kind.by) == (answer, by)
    assert (found.kind.ttl == 64) is (answer == "nonce")


@pytest.mark.parametrize("address", LOOPBACK)
def test_packets_leave_from_the_port_that_is_asked_for(
    agent: Agent, engine: UdpEngine, address: str
) -> None:
    """And the answer says which that was."""
    responder = UdpResponder(agent, address, "answer")
    wanted = free_port(address, socket.SOCK_DGRAM)
    message = order(1, "udp", address, only(responder.port), mode="nonce", template=1, host=HOST,
                    sport=wanted)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert found.kind.answer == "nonce"
    assert [answer.own_ports for answer in agent.sent(ProbeOutcomes)] == [[wanted]]


def test_another_host_of_ours_is_foreign(agent: Agent, engine: UdpEngine) -> None:
    """A true MAC of another host says who answered instead."""
    responder = UdpResponder(agent, "127.0.0.1", "answer", host=3)
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="nonce", template=1,
                    host=HOST)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.kind.by) == ("foreign", 3)


@pytest.mark.parametrize("address", LOOPBACK)
def test_a_closed_port_refuses_with_its_icmp(agent: Agent, engine: UdpEngine, address: str) -> None:
    """Port-unreachable of the destination itself, with its TTL."""
    port = free_port(address, socket.SOCK_DGRAM)
    found = one(agent, engine, order(1, "udp", address, only(port), mode="nonce", template=1))

    unreachable = (3, 3) if address == "127.0.0.1" else (1, 4)
    assert (found.kind.op, found.kind.failure) == ("answer", "refused")
    assert found.kind.icmp == IcmpFact(*unreachable, address, 64)


def test_an_answer_to_a_repetition_counts(agent: Agent, engine: UdpEngine) -> None:
    """Two lost datagrams do no harm: every attempt of the flow is recognised."""
    responder = UdpResponder(agent, "127.0.0.1", "answer", ignore=2)
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="nonce", template=1,
                    look_ms=1000)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.kind.packets, found.looks) == ("nonce", 3, 1)
    assert len(set(responder.seen)) == 3, "each attempt has a nonce of its own"


@pytest.mark.slow
def test_silence_is_asked_in_every_look(agent: Agent, engine: UdpEngine) -> None:
    """A mute listener gets three packets a look, all with other nonces."""
    responder = UdpResponder(agent, "127.0.0.1", "mute")
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="nonce", template=1,
                    look_ms=1000, looks=2)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.op, found.kind.failure, found.kind.answer) == ("answer", "no-answer", None)
    assert found.looks == 2
    assert len(responder.seen) == len(set(responder.seen)) == 6


def test_one_way_silence_is_no_failure(agent: Agent, engine: UdpEngine) -> None:
    """Mode send only waits for errors."""
    responder = UdpResponder(agent, "127.0.0.1", "mute")
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="send", look_ms=200)
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.op, found.kind.failure, found.kind.answer) == ("send", None, None)
    assert responder.seen[0] == b"", "template 0 is an empty datagram"


def test_a_service_is_heard(agent: Agent, engine: UdpEngine) -> None:
    """Mode bytes returns the first datagram."""
    responder = UdpResponder(agent, "127.0.0.1", "reflect")
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="bytes", template=2)
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.kind.data) == ("bytes", b"hello")
    assert found.kind.elapsed_ms is None, "it answers the only packet"


def test_after_several_packets_a_service_may_answer_the_first(
    agent: Agent, engine: UdpEngine
) -> None:
    """They are alike: the time since the first is told beside that since the last."""
    responder = UdpResponder(agent, "127.0.0.1", "reflect", ignore=1)
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="bytes", template=2,
                    look_ms=2000)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, len(responder.seen)) == ("bytes", 2)
    assert found.kind.elapsed_ms is not None
    assert found.kind.elapsed_ms >= 300, "the second packet goes after 15 % of the look"


def test_ports_of_one_order_are_not_mixed_up(agent: Agent, engine: UdpEngine) -> None:
    """Open, mute and closed ports in one order each get their own outcome."""
    open_, mute = UdpResponder(agent, "127.0.0.1"), UdpResponder(agent, "127.0.0.1", "mute")
    first = free_ports("127.0.0.1", socket.SOCK_DGRAM, 200)
    ports = [*only(open_.port), *only(mute.port), (first, first + 199)]
    engine.submit(order(1, "udp", "127.0.0.1", ports, mode="nonce", template=1, look_ms=500))
    agent.wait(1)
    open_.close()
    mute.close()

    found = agent.outcomes(1)
    assert found[open_.port].kind.answer == "nonce"
    assert found[mute.port].kind.failure == "no-answer"
    assert {found[port].kind.failure for port in range(first, first + 200)} == {"refused"}


@pytest.mark.lab
def test_a_host_may_probe_its_own_ephemeral_ports(lab: None, agent: Agent) -> None:
    """The engine's own socket does not answer for the port that it happens to have."""
    with inside(SOURCE):
        engine = UdpEngine(agent)
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low, high = map(int, file.read().split())
        engine.submit(order(1, "udp", "127.0.0.1", [(low, high)], mode="nonce", template=1,
                            looks=2, look_ms=600))  # fmt: skip
        agent.wait(1)
    engine.close()

    assert "reflected" not in {found.kind.answer for found in agent.outcomes(1).values()}


def test_a_missing_source_address_is_named(agent: Agent, engine: UdpEngine) -> None:
    """bind() failed, for all ports of the order."""
    engine.submit(order(1, "udp", "127.0.0.1", [(1, 3)], src="192.0.2.1", mode="send"))
    agent.wait(1)

    found = agent.outcomes(1)
    assert len(found) == 3
    assert {(each.kind.op, each.kind.failure) for each in found.values()} == {
        ("bind", "address-not-available")
    }


def test_a_pace_is_kept(agent: Agent, engine: UdpEngine) -> None:
    """Six at once, then one per interval, over all orders to the destination."""
    first = free_ports("127.0.0.1", socket.SOCK_DGRAM, 6)
    started = agent.loop.now()
    for number in (1, 2):
        engine.submit(order(number, "udp", "127.0.0.1", [(first, first + 5)], mode="nonce",
                            template=1, pace=Pace(6, 100)))  # fmt: skip
    agent.wait(1, 2)

    assert agent.loop.now() - started > 0.55
    for number in (1, 2):
        assert {found.kind.failure for found in agent.outcomes(number).values()} == {"refused"}


def test_a_cancelled_order_is_done_at_once(agent: Agent, engine: UdpEngine) -> None:
    """Cancel closes the socket and says so."""
    responder = UdpResponder(agent, "127.0.0.1", "mute")
    engine.submit(order(1, "udp", "127.0.0.1", only(responder.port), mode="nonce", template=1))
    agent.loop.call_later(0.1, agent.loop.stop)
    agent.loop.run()

    assert engine.cancel(1)
    assert agent.messages[-1] == Done(1, True)
    assert not engine.cancel(1)
    responder.close()


def test_more_orders_than_sockets_take_turns(
    agent: Agent, engine: UdpEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders that must wait for a socket start when others are done; one that waits can be
    cancelled."""
    monkeypatch.setattr(order_keeper, "most_orders", lambda: 2)
    port = free_port("127.0.0.1", socket.SOCK_DGRAM)
    for number in range(1, 9):
        engine.submit(order(number, "udp", "127.0.0.1", only(port), mode="send"))
    assert engine.cancel(5)
    agent.wait(*range(1, 9))

    done = agent.sent(Done)
    assert sorted(message.id for message in done) == list(range(1, 9))
    assert [message.id for message in done if message.cancelled] == [5]
    told = {
        number: [one.kind.failure for one in agent.outcomes(number).values()]
        for number in range(1, 9)
    }
    assert told == {number: [] if number == 5 else ["refused"] for number in range(1, 9)}


def test_an_order_waits_for_a_descriptor_but_not_for_ever(
    agent: Agent, engine: UdpEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a descriptor for too long, all flows of the order fail for that reason."""
    monkeypatch.setattr(pump, "SHORT_FOR_S", 0.3)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        engine.submit(order(1, "udp", "127.0.0.1", [(1, 3)], mode="send"))
        assert not agent.outcomes(1)
        agent.wait(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [one.kind.failure for one in agent.outcomes(1).values()] == ["too-many-files"] * 3


@pytest.mark.lab
def test_a_packet_that_a_device_drops_for_its_size_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair of virtual devices whose far end carries less says that there is no room: a sized
    order ends with its look, and what has room is answered."""
    monkeypatch.setattr(pump, "SHORT_FOR_S", 0.3)
    netlab.build()
    subprocess.run(["ip", "-n", R1, "link", "set", "n1b", "mtu", "1400"], check=True)
    near = ADDRESS[4]["r1"]
    agent = Agent()
    with inside(R1):
        responder = UdpResponder(agent, near, "answer")
    with inside(SOURCE):
        engine = UdpEngine(agent)
        for number, size in enumerate((1300, 1450), 1):
            engine.submit(order(number, "udp", near, only(responder.port), mode="nonce", template=1,
                                host=HOST, look_ms=600, size=size))  # fmt: skip
        agent.wait(1, 2)
    engine.close()
    responder.close()
    netlab.remove()

    small, large = (agent.outcomes(number)[responder.port].kind for number in (1, 2))
    assert (small.failure, small.answer) == (None, "nonce")
    assert large.failure == "no-answer"


# Firewalls


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[int, dict[int, Found]]]:
    """Every firewall case of both families, run at once: family -> port -> outcome."""
    netlab.build()
    firewalls.unlimited_icmp()
    agent = Agent()
    with inside(SOURCE):
        engine = UdpEngine(agent)
    responders = []
    for family in (4, 6):
        address = ADDRESS[family]["destination"]
        with inside(DESTINATION):
            responders += [
                UdpResponder(agent, address, port=case.port) for case in firewalls.cases(family)
            ]
    for family in (4, 6):
        netlab.clear()
        firewalls.install(firewalls.cases(family))
        ports = [(case.port, case.port) for case in firewalls.cases(family)]
        with inside(SOURCE):
            engine.submit(order(family, "udp", ADDRESS[family]["destination"], ports, mode="nonce",
                                template=1, host=HOST, looks=2, look_ms=2000))  # fmt: skip
            agent.wait(family)
    engine.close()
    for responder in responders:
        responder.close()
    yield {family: agent.outcomes(family) for family in (4, 6)}
    netlab.remove()


@pytest.mark.lab
@pytest.mark.parametrize(
    ("family", "case"),
    [
        pytest.param(family, case, id=f"v{family} {case.name}")
        for family in (4, 6)
        for case in firewalls.cases(family)
    ],
)
def test_firewall_case(
    verdicts: dict[int, dict[int, Found]], family: int, case: firewalls.Case
) -> None:
    """Every action at every place gives exactly the facts that the kernel has."""
    found = verdicts[family][case.port]

    if case.action == "accept":
        assert (found.kind.op, found.kind.answer, found.kind.by) == ("answer", "nonce", HOST)
        assert found.kind.ttl == 62
    elif case.action == "drop" and (case.namespace, case.hook) == (SOURCE, "output"):
        assert (found.kind.op, found.kind.failure, found.kind.left) == (
            "send",
            "not-permitted",
            False,
        )
    else:
        assert (found.kind.op, found.kind.failure) == ("answer", case.failure)
        assert found.kind.icmp == case.icmp
        assert found.looks == (2 if case.action == "drop" else 1)


@pytest.mark.lab
@pytest.mark.slow
def test_the_kernels_own_rate_limit_is_kept(lab: None) -> None:
    """Twelve closed ports at the measured pace are all seen closed, with default ICMP limits."""
    agent = Agent()
    with inside(SOURCE):
        engine = UdpEngine(agent)
        engine.submit(order(1, "udp", ADDRESS[4]["destination"], [(1, 12)], mode="send",
                            pace=Pace(6, 1020)))  # fmt: skip
        agent.wait(1)
    engine.close()

    found = agent.outcomes(1)
    assert [found[port].kind.failure for port in range(1, 13)] == ["refused"] * 12


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("family", [4, 6])
def test_a_dead_host_is_unreachable(lab: None, family: int) -> None:
    """A dead neighbour shows after 3.06 s, by the last router or by our own kernel."""
    agent = Agent()
    address = ADDRESS[family]
    with inside(SOURCE):
        engine = UdpEngine(agent)
        engine.submit(order(1, "udp", address["dead"], only(1), mode="send"))
        engine.submit(order(2, "udp", address["dead_near"], only(1), mode="send"))
        agent.wait(1, 2)
    engine.close()

    for number, offender in ((1, address["r2"]), (2, address["source"])):
        (found,) = agent.outcomes(number).values()
        assert (found.kind.op, found.kind.failure) == ("send", "host-unreachable")
        assert found.kind.icmp is not None
        assert found.kind.icmp.offender == offender
        assert (found.kind.elapsed_ms or 0) >= 2500


@pytest.mark.lab
@pytest.mark.parametrize(
    ("family", "kind", "failure"),
    [
        (4, "throw", "network-unreachable"),
        (4, "unreachable", "host-unreachable"),
        (4, "prohibit", "access-denied"),
        (4, "blackhole", "invalid-route"),
        (6, "unreachable", "host-unreachable"),
        (6, "prohibit", "access-denied"),
        (6, "blackhole", "invalid-route"),
    ],
)
def test_a_route_of_our_own_fails_at_once(lab: None, family: int, kind: str, failure: str) -> None:
    """send() fails in our own kernel, and nothing left the host."""
    net = "10.99.0.0/24" if family == 4 else "fd99::/64"
    netlab.route(SOURCE, "add", kind, net)
    agent = Agent()
    with inside(SOURCE):
        engine = UdpEngine(agent)
        message = order(
            1, "udp", net.split("/", maxsplit=1)[0].rstrip("0") + "1", only(80), mode="send"
        )
        found = one(agent, engine, message)
    engine.close()

    assert (found.kind.op, found.kind.failure) == ("send", failure)
    assert (found.kind.icmp, found.kind.left) == (None, False)
