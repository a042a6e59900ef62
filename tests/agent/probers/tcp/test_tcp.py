"""The TCP engine against real sockets on loopback and real firewalls in namespaces."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Callable, Iterator

import pytest

from netprobe.agent.core.loop import READ
from netprobe.agent.probers.orders import RunningOrder
from netprobe.agent.probers.tcp.engine import TcpEngine
from netprobe.agent.wire.answers import Done, ProbeOutcomes
from tests.agent import firewalls, netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R1, R2, SOURCE, inside
from tests.agent.rig import HOST, Agent, Found, TcpResponder, one, only, order
from tests.open_files import room_for_files
from tests.ports import free_port, free_ports

LOOPBACK = ["127.0.0.1", "::1"]
FIRST, MANY = 20_001, 1000


@pytest.fixture
def agent() -> Agent:
    """An agent with nothing on it."""
    return Agent()


@pytest.fixture
def engine(agent: Agent) -> Iterator[TcpEngine]:
    """A TCP engine in the present namespace, closed afterwards."""
    engine = TcpEngine(agent)
    yield engine
    engine.close()


@pytest.mark.parametrize("address", LOOPBACK)
def test_open_port_is_open(agent: Agent, engine: TcpEngine, address: str) -> None:
    """A bare connect to a listener is open and asks nothing."""
    responder = TcpResponder(agent, address, "mute")
    found = one(agent, engine, order(1, "tcp", address, only(responder.port)))
    responder.close()

    assert (found.kind.op, found.kind.failure, found.kind.answer) == ("connect", None, "unasked")
    assert found.looks == 1
    assert (found.rtt_us or 0) > 0
    assert responder.seen == []


@pytest.mark.parametrize("address", LOOPBACK)
def test_connects_leave_from_the_port_that_is_asked_for(
    agent: Agent, engine: TcpEngine, address: str
) -> None:
    """Again and again: a listener's answer to a nonce ends in a reset, which leaves nothing."""
    responder = TcpResponder(agent, address, "answer")
    wanted = free_port(address, socket.SOCK_STREAM)
    orders = [
        order(number, "tcp", address, only(responder.port), mode="nonce", template=1, host=HOST,
              sport=wanted)
        for number in (1, 2)
    ]  # fmt: skip
    found = [one(agent, engine, each) for each in orders]
    responder.close()

    assert [(each.kind.failure, each.kind.answer) for each in found] == [(None, "nonce")] * 2
    assert responder.own_ports == {wanted}


@pytest.mark.parametrize("address", LOOPBACK)
def test_a_used_socket_keeps_to_the_size_of_packets(
    agent: Agent, engine: TcpEngine, address: str
) -> None:
    """Linux forgets the limit of a socket that is disconnected."""
    responder = TcpResponder(agent, address, "hangup")
    message = order(1, "tcp", address, only(responder.port), mode="nonce", template=1, host=HOST,
                    size=1300, look_ms=300, looks=5)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert found.looks == len(responder.segments) == 5
    assert max(responder.segments) <= 1300 - 40


@pytest.mark.parametrize("address", LOOPBACK)
def test_closed_ports_refuse_in_one_run(
    agent: Agent, engine: TcpEngine, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resets are refusals without ICMP, and a range of them is one run."""
    # However long a busy machine takes for it.
    monkeypatch.setattr(RunningOrder, "flush_s", 1000.0)
    first = free_ports(address, socket.SOCK_STREAM, 400)
    ports = [(first, first + 8), (first + 19, first + 399)]
    engine.submit(order(1, "tcp", address, ports))
    agent.wait(1)

    (message,) = agent.sent(ProbeOutcomes)
    assert [(run.first, run.last) for run in message.runs] == ports
    (kind,) = message.kinds
    assert (kind.op, kind.failure, kind.icmp) == ("connect", "refused", None)


@pytest.mark.slow
@pytest.mark.parametrize("address", LOOPBACK)
@pytest.mark.parametrize(
    ("how", "answer", "by"),
    [
        ("answer", "nonce", HOST),
        ("reflect", "reflected", None),
        ("noise", "garbled", None),
        ("banner", "garbled", None),
        ("mute", "silent", None),
        ("hangup", "closed", None),
        ("reset", "reset", None),
    ],
)
def test_what_a_listener_says_is_told_apart(
    agent: Agent, engine: TcpEngine, address: str, how: str, answer: str, by: int | None
) -> None:
    """Only the right MAC is an answer; everything else has its own word."""
    responder = TcpResponder(agent, address, how)
    message = order(1, "tcp", address, only(responder.port), mode="nonce", template=1, host=HOST,
                    look_ms=1000)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.op, found.kind.failure) == ("answer", None)
    assert (found.kind.answer, found.kind.by) == (answer, by)


def test_another_host_of_ours_is_foreign(agent: Agent, engine: TcpEngine) -> None:
    """A true MAC of another host says who answered instead."""
    responder = TcpResponder(agent, "127.0.0.1", "answer", host=3)
    message = order(1, "tcp", "127.0.0.1", only(responder.port), mode="nonce", template=1,
                    host=HOST)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.kind.by) == ("foreign", 3)


def test_silence_after_opening_is_asked_again(agent: Agent, engine: TcpEngine) -> None:
    """A listener that says nothing gets every look."""
    responder = TcpResponder(agent, "127.0.0.1", "mute")
    message = order(1, "tcp", "127.0.0.1", only(responder.port), mode="nonce", template=1,
                    look_ms=200, looks=3)  # fmt: skip
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.looks) == ("silent", 3)
    assert len(set(responder.seen)) == 3, "each look has a nonce of its own"


def test_a_service_is_heard(agent: Agent, engine: TcpEngine) -> None:
    """Mode bytes returns what a real service says, whole."""
    responder = TcpResponder(agent, "127.0.0.1", "reflect")
    message = order(1, "tcp", "127.0.0.1", only(responder.port), mode="bytes", template=2)
    found = one(agent, engine, message)
    responder.close()

    assert (found.kind.answer, found.kind.data) == ("bytes", b"hello")


def test_nothing_stays_behind_on_the_listener(agent: Agent, engine: TcpEngine) -> None:
    """After a nonce the connection is reset: no TIME_WAIT and no open connection is left."""
    responder = TcpResponder(agent, "127.0.0.1", "answer")
    message = order(1, "tcp", "127.0.0.1", only(responder.port), mode="nonce", template=1)
    one(agent, engine, message)
    with open("/proc/net/tcp") as table:
        port = f" 0100007F:{responder.port:04X} "
        states = [line.split()[3] for line in table if port in line]
    responder.close()

    assert "06" not in states, "06 is TIME_WAIT"
    assert "01" not in states[1:], "nothing is established any more"


@pytest.mark.lab
def test_a_host_may_probe_its_own_ephemeral_ports(lab: None, agent: Agent) -> None:
    """A socket that happens to connect to itself is no open port."""
    with inside(SOURCE):
        engine = TcpEngine(agent)
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low = int(file.read().split()[0])
        # Bound to the very address and with every port of the range asked, self-connects do occur.
        engine.submit(order(1, "tcp", "127.0.0.77", [(low, low + 9999)], src="127.0.0.77"))
        agent.wait(1)
    engine.close()

    assert {found.kind.failure for found in agent.outcomes(1).values()} == {"refused"}


def test_a_missing_source_address_is_named(agent: Agent, engine: TcpEngine) -> None:
    """bind() failed, and nothing is said about the destination."""
    found = one(agent, engine, order(1, "tcp", "127.0.0.1", only(1), src="192.0.2.1"))

    assert (found.kind.op, found.kind.failure) == ("bind", "address-not-available")


def test_a_source_address_is_used(agent: Agent, engine: TcpEngine) -> None:
    """Probes start at the address that the order names."""
    responder = TcpResponder(agent, "127.0.0.1", "mute")
    message = order(1, "tcp", "127.0.0.1", only(responder.port), src="127.0.0.9", mode="nonce",
                    template=1, look_ms=200)  # fmt: skip
    engine.submit(message)
    while not responder.open:
        agent.loop.call_later(0.02, agent.loop.stop)
        agent.loop.run()
    peer = responder.open[0].getpeername()
    agent.wait(1)
    responder.close()

    assert peer[0] == "127.0.0.9"


def test_a_stalled_agent_starts_nothing(agent: Agent, engine: TcpEngine) -> None:
    """While output is queued no connect starts; ``resume`` goes on."""
    agent.stalled = True
    engine.submit(order(1, "tcp", "127.0.0.1", [(1, 50)]))
    agent.loop.call_later(0.1, agent.loop.stop)
    agent.loop.run()
    assert agent.messages == []

    agent.stalled = False
    engine.resume()
    agent.wait(1)
    assert len(agent.outcomes(1)) == 50


def test_the_rate_holds(agent: Agent, engine: TcpEngine) -> None:
    """50 probes at 200 a second take a quarter of a second at least."""
    agent.rate.limit(200)
    started = agent.loop.now()
    engine.submit(order(1, "tcp", "127.0.0.1", [(1, 50)]))
    agent.wait(1)

    assert agent.loop.now() - started > 0.15


def test_a_cancelled_order_is_done_at_once(agent: Agent, engine: TcpEngine) -> None:
    """Cancel closes what is out, says so, and the engine goes on working."""
    responder = TcpResponder(agent, "127.0.0.1", "mute")
    engine.submit(order(1, "tcp", "127.0.0.1", only(responder.port), mode="nonce", template=1))
    agent.loop.call_later(0.1, agent.loop.stop)
    agent.loop.run()
    assert engine.cancel(1)
    assert not engine.cancel(1)
    assert agent.messages[-1] == Done(1, True)

    assert one(agent, engine, order(2, "tcp", "127.0.0.1", only(1))).kind.failure == "refused"
    responder.close()


def test_few_descriptors_only_cost_time(agent: Agent, engine: TcpEngine) -> None:
    """With room for a handful of sockets every port still gets its true outcome."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(list(os.scandir("/proc/self/fd")))
    responder = TcpResponder(agent, "127.0.0.1", "mute")
    first = free_ports("127.0.0.1", socket.SOCK_STREAM, 300)
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 10, hard))
    try:
        engine.submit(order(1, "tcp", "127.0.0.1", [(first, first + 299)]))
        agent.wait(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        responder.close()

    assert {found.kind.failure for found in agent.outcomes(1).values()} == {"refused"}


def test_many_orders_end_and_leave_no_socket(agent: Agent, engine: TcpEngine) -> None:
    """Orders interleave, each port is reported once, and idle sockets are closed at the end."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 41):
        engine.submit(order(number, "tcp", f"127.0.1.{number}", [(1, 200)]))
    agent.wait(*range(1, 41))

    assert all(len(agent.outcomes(number)) == 200 for number in range(1, 41))
    assert len(os.listdir("/proc/self/fd")) <= before


# Firewalls


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[int, dict[int, Found]]]:
    """Every firewall case of both families, run at once: family -> port -> outcome."""
    netlab.build()
    firewalls.unlimited_icmp()
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
    responders = []
    for family in (4, 6):
        every = firewalls.cases(family)
        address = ADDRESS[family]["destination"]
        with inside(DESTINATION):
            responders += [TcpResponder(agent, address, port=case.port) for case in every]
    for family in (4, 6):
        netlab.clear()
        firewalls.install(firewalls.cases(family))
        ports = [(case.port, case.port) for case in firewalls.cases(family)]
        with inside(SOURCE):
            engine.submit(order(family, "tcp", ADDRESS[family]["destination"], ports, mode="nonce",
                                template=1, host=HOST, looks=2, look_ms=2500))  # fmt: skip
            agent.wait(family)
    engine.close()
    for responder in responders:
        responder.close()
    yield {family: agent.outcomes(family) for family in (4, 6)}
    netlab.remove()


def give_up_early() -> None:
    """Let the source's kernel end connects after 3 s, and connections after 0.6 s."""
    for key in ("tcp_syn_retries", "tcp_retries2"):
        netlab.sysctl(SOURCE, f"net/ipv4/{key}", "1")


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("family", [4, 6])
def test_a_connect_is_silent_also_where_the_kernel_gives_up_early(lab: None, family: int) -> None:
    """A look ends by itself, and says how many SYNs left."""
    give_up_early()
    netlab.rule(R1, "forward", "tcp dport 7000-7001 drop")
    agent = Agent()
    with inside(SOURCE), contextlib.closing(TcpEngine(agent)) as engine:
        address = ADDRESS[family]["destination"]
        engine.submit(order(1, "tcp", address, [(7000, 7001)], look_ms=3300, first_ms=3300))
        agent.wait(1)

    for found in agent.outcomes(1).values():
        assert (found.kind.failure, found.kind.left) == ("no-answer", True)
        assert (found.kind.packets or 0) >= 3


@pytest.mark.lab
@pytest.mark.parametrize("mode", ["connect", "nonce"])
def test_what_a_repeated_syn_opens_tells_how_many_there_were(lab: None, mode: str) -> None:
    """Its round trip is that of the one that was answered."""
    netlab.rule(R1, "forward", "tcp flags & (syn | ack) == syn numgen inc mod 2 0 drop")
    agent = Agent()
    address = ADDRESS[4]["destination"]
    with inside(DESTINATION):
        responder = TcpResponder(agent, address)
    with inside(SOURCE), contextlib.closing(TcpEngine(agent)) as engine:
        template = {"connect": 0, "nonce": 1}[mode]
        wanted = only(responder.port)
        found = one(
            agent, engine,
            order(1, "tcp", address, wanted, mode=mode, template=template, host=HOST),
        )  # fmt: skip
    responder.close()

    assert found.kind.answer == {"connect": "unasked", "nonce": "nonce"}[mode]
    assert (found.kind.packets, found.looks) == (2, 1)
    assert 0 < (found.rtt_us or 0) < 900_000


@pytest.mark.lab
def test_a_connection_is_silent_also_where_the_kernel_gives_up_early(lab: None) -> None:
    """Nobody acknowledges its data; no ICMP error has ended it."""
    give_up_early()
    netlab.rule(R1, "forward", "tcp flags & psh == psh drop")
    agent = Agent()
    with inside(DESTINATION):
        responder = TcpResponder(agent, ADDRESS[4]["destination"])
    with inside(SOURCE), contextlib.closing(TcpEngine(agent)) as engine:
        wanted = only(responder.port)
        address = ADDRESS[4]["destination"]
        found = one(
            agent, engine,
            order(1, "tcp", address, wanted, mode="nonce", template=1, host=HOST, look_ms=2000),
        )  # fmt: skip
    responder.close()

    assert (found.kind.failure, found.kind.answer) == (None, "silent")


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
        return
    assert (found.kind.op, found.kind.failure) == ("connect", case.failure)
    assert found.kind.icmp == case.icmp
    if case.action == "drop":
        assert found.kind.left is (case.hook != "output" or case.namespace != SOURCE)
        assert found.looks == 2
        assert (found.kind.packets or 0) >= 4
    else:
        assert found.looks == 1


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("family", [4, 6])
def test_a_dead_host_is_unreachable_and_asked_twice(lab: None, family: int) -> None:
    """A dead neighbour shows after 3.06 s, by the last router or by our own kernel."""
    agent = Agent()
    address = ADDRESS[family]
    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", address["dead"], [(1, 3)], looks=2))
        engine.submit(order(2, "tcp", address["dead_near"], [(1, 3)], looks=2))
        agent.wait(1, 2)
    engine.close()

    for number, offender in ((1, address["r2"]), (2, address["source"])):
        for found in agent.outcomes(number).values():
            assert found.kind.failure == "host-unreachable"
            assert found.kind.icmp is not None
            assert found.kind.icmp[:3] == ((3, 1) if family == 4 else (1, 3)) + (offender,)
            assert (found.kind.elapsed_ms or 0) >= 2000
            assert found.looks == 2


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
    """Our own routing table is no network: nothing left the host, and there is no ICMP."""
    net = "10.99.0.0/24" if family == 4 else "fd99::/64"
    netlab.route(SOURCE, "add", kind, net)
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        found = one(
            agent,
            engine,
            order(1, "tcp", net.split("/", maxsplit=1)[0].rstrip("0") + "1", only(80)),
        )
    engine.close()

    assert (found.kind.op, found.kind.failure) == ("connect", failure)
    assert (found.kind.icmp, found.kind.left) == (None, False)


@pytest.mark.lab
@pytest.mark.parametrize(
    ("namespace", "min_ttl", "failure"),
    [(R1, 63, "refused"), (R2, 63, "refused"), (R2, 64, "no-answer"), (None, 63, "no-answer")],
)
def test_a_minimum_ttl_hears_only_near_resets(
    lab: None, namespace: str | None, min_ttl: int, failure: str
) -> None:
    """IP_MINTTL ignores the reset of a host that is farther away than the threshold allows."""
    if namespace is not None:
        netlab.rule(namespace, "forward", "tcp dport 80 reject with tcp reset")
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        found = one(agent, engine, order(1, "tcp", ADDRESS[4]["destination"], only(80),
                                         min_ttl=min_ttl, look_ms=1500))  # fmt: skip
    engine.close()

    assert found.kind.failure == failure


@pytest.mark.lab
@pytest.mark.slow
def test_drops_do_not_hold_up_the_rest(lab: None) -> None:
    """3,000 ports of which every tenth is dropped take two looks; all others are known before the
    first of these ends, and none is misjudged."""
    netlab.rule(
        R1, "forward", "tcp dport { " + ", ".join(map(str, range(10, 3001, 10))) + " } drop"
    )
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", ADDRESS[4]["destination"], [(1, 3000)], looks=2))
        agent.wait(1)
    engine.close()

    # In the order in which they were told.
    found = agent.outcomes(1)
    silent = [port for port, outcome in found.items() if outcome.kind.failure == "no-answer"]
    assert sorted(silent) == list(range(10, 3001, 10))
    assert {found[port].looks for port in silent} == {2}
    assert list(found)[-len(silent) :] == silent


@pytest.mark.lab
@pytest.mark.parametrize(
    "processors", ["same", pytest.param("any", marks=pytest.mark.needs("packet steering"))]
)
@pytest.mark.parametrize("family", [4, 6])
def test_rejects_and_resets_that_come_together_stay_apart(
    lab: None, family: int, processors: str
) -> None:
    """Two routers reject, the destination resets, sockets are used again: who said what is exact.

    An answer that comes while connect() still runs is in the error queue only; one that another
    processor takes in ends the connect.
    """
    firewalls.unlimited_icmp()
    code = "icmp admin-prohibited" if family == 4 else "icmpv6 admin-prohibited"
    port = "icmp port-unreachable" if family == 4 else "icmpv6 port-unreachable"
    netlab.rule(R1, "forward", f"tcp dport 1000-1999 reject with {code}")
    netlab.rule(R2, "forward", f"tcp dport 1500-2999 reject with {port}")
    agent = Agent()
    with inside(SOURCE):
        if processors == "any":
            netlab.spread_over_processors(SOURCE, "n1a")
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", ADDRESS[family]["destination"], [(1, 4000)], looks=2))
        agent.wait(1)
    engine.close()

    said = {
        port: (it.kind.failure, it.kind.icmp and it.kind.icmp[:3])
        for port, it in agent.outcomes(1).items()
    }
    prohibited, unreachable = ((3, 13), (3, 3)) if family == 4 else ((1, 1), (1, 4))
    near, far = ADDRESS[family]["r1"], ADDRESS[family]["r2"]
    no_way = "host-unreachable" if family == 4 else "access-denied"
    expected = {
        **dict.fromkeys(range(1, 4001), ("refused", None)),
        **dict.fromkeys(range(1500, 3000), ("refused", (*unreachable, far))),
        **dict.fromkeys(range(1000, 2000), (no_way, (*prohibited, near))),
    }
    assert said == expected


class Doors:
    """Many listeners that say a word and close when the peer has; ``ends`` says how it did."""

    def __init__(self, agent: Agent, address: str, first: int, count: int) -> None:
        self.agent = agent
        self.ends: list[str] = []
        self.connections: set[socket.socket] = set()
        self.socks = []
        for port in range(first, first + count):
            sock = socket.create_server((address, port))
            sock.setblocking(False)
            self.socks.append(sock)
            agent.loop.watch(sock.fileno(), READ, self._accepting(sock))

    def _accepting(self, sock: socket.socket) -> Callable[[int], None]:
        return lambda _events: self._accept(sock)

    def _accept(self, sock: socket.socket) -> None:
        connection, _ = sock.accept()
        connection.send(b"220 ready\r\n")
        connection.setblocking(False)
        self.connections.add(connection)
        self.agent.loop.watch(connection.fileno(), READ, lambda _events: self._end(connection))

    def _end(self, connection: socket.socket) -> None:
        try:
            self.ends.append("fin" if connection.recv(1) == b"" else "data")
        except ConnectionResetError:
            self.ends.append("reset")
        self.agent.loop.unwatch(connection.fileno())
        self.connections.remove(connection)
        connection.close()

    def close(self) -> None:
        for sock in (*self.socks, *self.connections):
            self.agent.loop.unwatch(sock.fileno())
            sock.close()


@pytest.mark.lab
def test_many_open_ports_are_closed_politely(lab: None) -> None:
    """Services that speak first see a FIN, and few sockets serve many connections."""
    agent = Agent()
    address, ports = ADDRESS[4]["destination"], [(FIRST, FIRST + MANY - 1)]
    # A listener and both ends of a connection for each of them.
    with room_for_files(3 * MANY + 100), contextlib.ExitStack() as opened:
        with inside(DESTINATION):
            doors = opened.enter_context(contextlib.closing(Doors(agent, address, FIRST, MANY)))
        with inside(SOURCE), contextlib.closing(TcpEngine(agent)) as engine:
            engine.submit(order(1, "tcp", address, ports))
            agent.wait(1)
            engine.submit(order(2, "tcp", address, ports, mode="bytes"))
            agent.wait(2)
        found, heard = agent.outcomes(1), agent.outcomes(2)
        agent.loop.call_later(0.5, agent.loop.stop)
        agent.loop.run()

    assert {each.kind.answer for each in found.values()} == {"unasked"}
    assert {each.kind.answer for each in heard.values()} == {"bytes"}
    assert len(found) == MANY
    assert doors.ends.count("fin") == len(doors.ends) == 2 * MANY


def test_closed_port_helper_is_really_closed(agent: Agent, engine: TcpEngine) -> None:
    """A port that was free a moment ago refuses."""
    port = free_port("127.0.0.1", socket.SOCK_STREAM)

    assert one(agent, engine, order(1, "tcp", "127.0.0.1", only(port))).kind.failure == "refused"
