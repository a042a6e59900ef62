"""Rounds of listeners on real sockets: what is bound, left alone, answered and seen."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from netprobe.agent.host.port_owners import PortHolders
from netprobe.agent.listeners import opening
from netprobe.agent.listeners import tcp_server as accepting
from netprobe.agent.listeners.arrival_log import RoundLog
from netprobe.agent.net.binding import bind_tcp
from netprobe.agent.wire.answers import Closed, Listening, Seen
from netprobe.agent.wire.orders import CloseOrder, HeldOrder, ListenOrder, SeenOrder
from netprobe.agent.wire.parts import OrderArrivals
from netprobe.agent.wire.templates import pack_nonce
from tests.agent.desk import MACLESS, Desk, block, count_unsent, request
from tests.agent.rig import KEY, PLAIN
from tests.needs import skip
from tests.patience import PATIENCE_S, wait_until
from tests.ports import free_ports

V4, V6 = "127.0.0.1", "::1"
# An address of loopback that is not the one services bind: a "network address" without a namespace.
OTHER = "127.77.0.1"
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An agent that listens."""
    made = Desk()
    yield made
    made.listeners.close()


def dial(desk: Desk, address: str, port: int, data: bytes) -> socket.socket:
    """A client's connection that has sent something; the desk has had the time to see it."""
    sock = socket.create_connection((address, port))
    sock.sendall(data)
    desk.settle(sock)
    sock.settimeout(PATIENCE_S)
    return sock


@pytest.mark.parametrize("address", [V4, V6])
@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_round_is_bound_dialled_and_silent_about_it(desk: Desk, proto: str, address: str) -> None:
    """What nobody reaches the agent dials before it says what it saw; it does not count that."""
    first = free_ports(address, KINDS[proto], 300)
    (item,) = desk.listen(block(proto, address, (first, first + 299)))
    assert item.up == [(first, first + 299)]
    assert (item.held, item.failed, item.nat) == ([], [], False)
    seen = desk.seen(0, 1)
    assert (seen.orders, seen.strangers, seen.unreached) == ([], [], [])


@pytest.mark.parametrize("address", [V4, V6])
def test_a_tcp_nonce_is_answered_and_logged(desk: Desk, address: str) -> None:
    """The answer is a MAC that only this host can make; the log has order, port and source."""
    first = free_ports(address, socket.SOCK_STREAM, 2)
    desk.listen(block("tcp", address, (first, first + 1)))
    with dial(desk, address, first + 1, request(7, first + 1)) as client:
        answer = client.recv(100)
    nonce = pack_nonce(7, first + 1, 1)
    assert PLAIN.answering_host(KEY, nonce, answer) == desk.host
    assert desk.seen(7, 8).orders == [OrderArrivals(7, [(first + 1, first + 1)], [address], None)]


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_what_a_busy_agent_has_not_read_yet_has_come(desk: Desk, proto: str) -> None:
    """Its listeners catch up before it tells what they saw."""
    first = free_ports(V4, KINDS[proto], 40)
    desk.listen(block(proto, V4, (first, first + 39)))
    clients = []
    for port in range(first, first + 40):
        client = socket.socket(socket.AF_INET, KINDS[proto])
        client.connect((V4, port))
        client.send(request(7, port))
        clients.append(client)

    assert desk.seen(7).orders == [OrderArrivals(7, [(first, first + 39)], [V4], None)]
    for client in clients:
        client.close()


def test_a_datagram_is_answered_while_connections_come(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that is asked what came serves what waits first. On a busy machine connections came
    on and on meanwhile, for many seconds, and no datagram had an answer."""
    port = free_ports(V4, socket.SOCK_DGRAM, 1)
    desk.listen(block("udp", V4, (port, port)))
    calls = itertools.count(1)
    answers: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:

        def serve_connections(_server: accepting.TcpServer) -> int:
            call = next(calls)
            if call == 1:
                client.sendto(request(8, port), (V4, port))
                wait_until(lambda: not count_unsent(client), "the datagram to arrive")
            if call == 5:
                answers.append(client.recv(100, socket.MSG_DONTWAIT))
            return int(call < 10)

        monkeypatch.setattr(accepting.TcpServer, "serve_events", serve_connections)
        desk.listeners.tell_seen(SeenOrder(5, 1, [8], rest=False))

    assert desk.await_message(Seen).orders == [OrderArrivals(8, [(port, port)], [V4], None)]
    assert len(answers) == 1


@pytest.mark.parametrize("address", [V4, V6])
def test_a_udp_nonce_is_answered_from_the_asked_address(desk: Desk, address: str) -> None:
    """A connected socket takes answers from the asked address only, and it gets one."""
    first = free_ports(address, socket.SOCK_DGRAM, 1)
    desk.listen(block("udp", address, (first, first)))
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect((address, first))
        client.send(request(7, first))
        desk.settle(client)
        assert PLAIN.answering_host(KEY, pack_nonce(7, first, 1), client.recv(100)) == desk.host


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_nonce_for_another_port_gets_no_genuine_answer(desk: Desk, proto: str) -> None:
    """Something rewrote the port on the way: both have listeners, and the asked one saw nothing."""
    kind = KINDS[proto]
    first = free_ports(V4, kind, 2)
    desk.listen(block(proto, V4, (first, first + 1)))
    with socket.socket(socket.AF_INET, kind) as client:
        client.settimeout(PATIENCE_S)
        client.connect((V4, first + 1))
        client.send(request(7, first))
        desk.settle(client)
        answer = client.recv(100)
    assert answer
    assert PLAIN.answering_host(KEY, pack_nonce(7, first, 1), answer) is None
    assert desk.seen(7).orders == []


def test_an_address_that_the_host_lacks_is_heard_on_the_wildcard(desk: Desk) -> None:
    """Behind NAT the listener says so, and still answers from the address that was asked."""
    first = free_ports("0.0.0.0", socket.SOCK_DGRAM, 1)
    udp, tcp = desk.listen(
        block("udp", "192.0.2.77", (first, first)), block("tcp", "192.0.2.77", (first, first))
    )
    assert (udp.nat, tcp.nat) == (True, True)
    assert udp.up == tcp.up == [(first, first)]
    assert desk.seen().unreached == []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect((OTHER, first))
        client.send(request(7, first))
        desk.settle(client)
        assert client.recv(100)


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_held_port_is_never_touched(desk: Desk, proto: str) -> None:
    """The owner is told; the rest of the range is bound around it."""
    first = free_ports(V4, KINDS[proto], 3)
    with socket.socket(socket.AF_INET, KINDS[proto]) as service:
        service.bind((V4, first + 1))
        if proto == "tcp":
            service.listen()
        (item,) = desk.listen(block(proto, V4, (first, first + 2)))
    (held,) = item.held
    assert (held.first, held.last, held.pid) == (first + 1, first + 1, os.getpid())
    assert (held.bind, held.loopback) == (V4, False)
    assert item.up == [(first, first), (first + 2, first + 2)]


def test_a_dual_stack_service_holds_ipv4_too(desk: Desk) -> None:
    """A service on [::] takes IPv4 as well, which only binding can tell from IPv6 only."""
    first = free_ports("::", socket.SOCK_STREAM, 2)
    with (
        socket.create_server(("::", first), family=socket.AF_INET6, dualstack_ipv6=True),
        socket.create_server(("::", first + 1), family=socket.AF_INET6),
    ):
        (item,) = desk.listen(block("tcp", V4, (first, first + 1)))
    assert [(held.first, held.bind) for held in item.held] == [(first, "::")]
    assert item.up == [(first + 1, first + 1)]


@pytest.mark.parametrize("kubelet", [False, True])
def test_a_port_that_is_held_on_loopback_only(
    lan: str, desk: Desk, kubelet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the installation the address itself is free; where a platform runs, it stays so."""
    monkeypatch.setattr(opening, "runs_kubelet", lambda: kubelet)
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    # What the agent's own process holds is no holder.
    server = (
        f"import socket, sys; s = socket.create_server(('{V4}', {first})); print(flush=True); "
        "sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", server], stdin=pipe, stdout=pipe) as holding:
        assert holding.stdout is not None
        holding.stdout.readline()
        (item,) = desk.listen(block("tcp", lan, (first, first)))
        holding.kill()
    assert item.up == ([] if kubelet else [(first, first)])
    (holder,) = item.held if kubelet else item.beside
    assert (holder.bind, holder.loopback) == (V4, True)
    assert not (item.beside if kubelet else item.held)


@pytest.fixture
def lan() -> str:
    """An address of this machine that is not loopback."""
    words = ["ip", "-4", "-o", "addr", "show", "scope", "global"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    if "inet" not in shown:
        skip("this machine has no address but loopback", "a network device with an address")
    return shown[shown.index("inet") + 1].split("/")[0]


def test_a_port_that_somebody_connects_from_is_not_held(desk: Desk) -> None:
    """It cannot be bound, but nothing listens there: it failed, it is no service."""
    with socket.create_server((V4, 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        port = client.getsockname()[1]
        (item,) = desk.listen(block("tcp", V4, (port, port)))
    assert item.held == []
    assert item.failed == [(port, port, "address-in-use")]


def leave_time_wait() -> int:
    """The port of a service that ended a connection, and then itself."""
    with socket.create_server((V4, 0)) as server:
        port: int = server.getsockname()[1]
        with socket.create_connection((V4, port)) as client:
            accepted, _ = server.accept()
            accepted.close()
            assert client.recv(1) == b""
    return port


def test_time_wait_does_not_keep_a_port_from_us(desk: Desk) -> None:
    """What a service that ended a moment ago leaves behind is no holder."""
    port = leave_time_wait()
    (item,) = desk.listen(block("tcp", V4, (port, port)))
    assert item.up == [(port, port)]


def test_a_connection_that_ends_while_listeners_open_keeps_no_port(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look at the table is from before; the port is looked at again."""
    looks: list[PortHolders] = []

    class EarlyLook(PortHolders):
        def __init__(self, proto: str) -> None:
            super().__init__(proto)
            if not looks:
                self._closing.clear()
            looks.append(self)

    monkeypatch.setattr(opening, "PortHolders", EarlyLook)
    port = leave_time_wait()
    (item,) = desk.listen(block("tcp", V4, (port, port)))
    assert (item.up, len(looks)) == ([(port, port)], 2)


def test_a_bound_port_that_does_not_listen_yet_is_left_alone(desk: Desk) -> None:
    """A service between bind and listen, with SO_REUSEADDR, is not robbed of its port."""
    with socket.socket() as service:
        service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        service.bind((V4, 0))
        port = service.getsockname()[1]
        (item,) = desk.listen(block("tcp", V4, (port, port)))
        assert item.failed == [(port, port, "address-in-use")]
        service.listen()


def test_node_ports_are_skipped_where_a_kubelet_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NodePorts live in NAT rules: no socket shows them, so none is bound over them."""
    first = free_ports(V4, socket.SOCK_STREAM, 4)
    monkeypatch.setattr(opening, "runs_kubelet", lambda: True)
    monkeypatch.setattr(opening, "node_ports", lambda: (first + 1, first + 2))
    (item,) = desk.listen(block("tcp", V4, (first, first + 3)))
    assert item.skipped == [(first + 1, first + 2)]
    assert item.up == [(first, first), (first + 3, first + 3)]


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n" + bytes(40), request(7, 1, key=b"x" * 32), PLAIN.request],
    ids=["http", "other run", "empty nonce"],
)
def test_strangers_get_no_answer(desk: Desk, data: bytes) -> None:
    """Another run's key, a scanner or noise: nothing is sent, and the witness knows."""
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)), block("udp", V4, (first, first)))
    with (
        dial(desk, V4, first, data) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        other.sendto(data, (V4, first))
        desk.settle(client, other)
        for sock in (client, other):
            sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                sock.recv(1)
    assert desk.seen(7, 0).orders == []
    assert desk.seen().strangers == [(first, V4)]


def test_a_template_without_a_mac_takes_nothing_but_itself(desk: Desk) -> None:
    """Where there is no room for a MAC, at least the bytes around the nonce must be ours."""
    first = free_ports(V4, socket.SOCK_DGRAM, 1)
    desk.listen(block("udp", V4, (first, first), template=3))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(request(7, first, MACLESS), (V4, first))
        client.sendto(b"\x1b" + request(8, first, MACLESS)[1:], (V4, first))
        desk.settle(client)
    seen = desk.seen(7, 8)
    assert [item.order for item in seen.orders] == [7]
    assert seen.strangers == [(first, V4)]


def test_a_one_way_template_is_logged_and_not_answered(desk: Desk) -> None:
    """VXLAN and the like: receiving it is the proof."""
    first = free_ports(V4, socket.SOCK_DGRAM, 1)
    desk.listen(block("udp", V4, (first, first), template=2))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.05)
        client.sendto(request(7, first, desk.templates[2]), (V4, first))
        desk.settle(client)
        with pytest.raises(TimeoutError):
            client.recv(1)
    assert desk.seen(7).orders[0].ports == [(first, first)]


def test_a_request_in_pieces_is_answered(desk: Desk) -> None:
    """TCP keeps no message borders."""
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))
    data = request(7, first)
    with dial(desk, V4, first, data[:5]) as client:
        client.sendall(data[5:20])
        desk.settle(client)
        client.sendall(data[20:])
        desk.settle(client)
        assert client.recv(100)


def test_open_connections_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of silent connections pushes out its own oldest, and an honest probe is answered."""
    monkeypatch.setattr(accepting, "MAX_OPEN", 8)
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))
    flood = [dial(desk, V4, first, b"x") for _ in range(20)]
    with dial(desk, V4, first, request(7, first)) as client:
        assert client.recv(100)
    with pytest.raises(ConnectionResetError):
        flood[0].recv(1)
    for sock in flood:
        sock.close()


def test_who_has_an_answer_makes_room_for_who_has_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy host's listener loses no probe that has connected and not spoken yet."""
    monkeypatch.setattr(accepting, "MAX_OPEN", 4)
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))
    slow = dial(desk, V4, first, b"")
    answered = [dial(desk, V4, first, request(order, first)) for order in range(7, 17)]
    slow.sendall(request(6, first))
    desk.settle(slow)
    assert slow.recv(100)
    assert all(one.recv(100) for one in answered)
    for sock in (slow, *answered):
        sock.close()


def test_why_an_answer_did_not_leave_is_told_of_its_own_port() -> None:
    """A rule for one port of an order says nothing of the others."""
    log = RoundLog()
    for port in (7000, 7001):
        log.saw(7, port, "10.0.0.1")
    found = log.saw(7, 7005, "10.0.0.1")
    assert found is not None
    found.failures[7005] = "not-permitted"

    assert log.arrivals([7]) == [
        OrderArrivals(7, [(7000, 7001)], ["10.0.0.1"], None),
        OrderArrivals(7, [(7005, 7005)], ["10.0.0.1"], "not-permitted"),
    ]


def test_a_slow_stranger_is_put_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who says nothing for READ_S is reset."""
    monkeypatch.setattr(accepting, "READ_S", 0.05)
    monkeypatch.setattr(accepting, "SWEEP_S", 0.05)
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))
    with dial(desk, V4, first, b"") as client:
        desk.run(0.3)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_closed_round_frees_its_ports_and_keeps_its_log(desk: Desk) -> None:
    """After close nothing listens and nothing is in TIME_WAIT; what was seen can still be asked."""
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))
    with dial(desk, V4, first, request(7, first)) as client:
        assert client.recv(100)
        desk.listeners.close_round(CloseOrder(1))
        desk.await_message(Closed)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with socket.socket() as service:
        service.bind((V4, first))
        service.listen()
    assert desk.seen(7).orders[0].order == 7


def test_who_asks_is_answered_though_the_round_is_closed_meanwhile(desk: Desk) -> None:
    """Its listeners are not dialled to the end then."""
    first = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (first, first)))

    desk.listeners.tell_seen(SeenOrder(5, 1, [], rest=True))
    assert desk.messages == []
    desk.listeners.close_round(CloseOrder(1))

    assert desk.messages == [Seen(5, [], [], [], []), Closed(1)]


def test_a_round_that_is_closed_while_it_opens_leaves_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of thousands of binds."""
    monkeypatch.setattr(opening, "SLICE_PORTS", 10)
    first = free_ports(V4, socket.SOCK_STREAM, 600)
    order = ListenOrder(1, [block("tcp", V4, (first, first + 599))])
    desk.listeners.listen(order)
    desk.settle()
    desk.listeners.close_round(CloseOrder(1))
    desk.run(0.1)
    assert desk.messages == [Closed(1)]
    socket.create_server((V4, first)).close()


def test_held_binds_nothing(desk: Desk) -> None:
    """A look at who holds what."""
    with socket.create_server((V4, 0)) as service:
        port = service.getsockname()[1]
        blocks = [block("tcp", V4, (port, port)), block("udp", V4, (port, port))]
        desk.listeners.tell_held(HeldOrder(5, blocks))
    tcp, udp = desk.await_message(Listening).blocks
    assert tcp.held[0].pid == os.getpid()
    assert (tcp.up, udp.up, udp.held) == ([], [], [])


@pytest.mark.needs("raw sockets")
@pytest.mark.parametrize("address", [V4, V6])
def test_an_ip_protocol_is_witnessed(desk: Desk, address: str) -> None:
    """A raw socket receives the protocol; the IPv4 header in front is taken off."""
    (item,) = desk.listen(block("ipproto", address, template=2, number=253))
    assert (item.up, desk.seen().unreached) == ([(0, 0)], [])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_RAW, 253) as client:
        client.sendto(request(7, 0, desk.templates[2]), (address, 0))
        desk.settle(client)
    assert desk.seen(7).orders == [OrderArrivals(7, [(0, 0)], [address], None)]


def test_more_than_the_descriptors_allow_is_reported(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A low hard limit costs listeners, not the agent."""
    # Half of so few files is kept for connections.
    monkeypatch.setattr("netprobe.agent.listeners.listeners.file_limit", lambda: 20)
    first = free_ports(V4, socket.SOCK_STREAM, 12)
    (item,) = desk.listen(block("tcp", V4, (first, first + 11)))
    assert item.up == [(first, first + 9)]
    assert item.failed == [(first + 10, first + 11, "too-many-files")]


@pytest.mark.parametrize("shortages", [3, 1000])
def test_a_round_waits_for_files_that_are_in_use_for_a_moment(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, shortages: int
) -> None:
    """Its own probes may have the last ones; a shortage that stays is told of what is left."""
    left = itertools.count(shortages, -1)

    def bind(address: str, number: int, reuse: bool) -> socket.socket:
        if number == first + 1 and next(left) > 0:
            raise OSError(errno.EMFILE, "none left")
        return bind_tcp(address, number, reuse)

    monkeypatch.setattr("netprobe.agent.listeners.opening.bind_tcp", bind)
    monkeypatch.setattr("netprobe.agent.listeners.opening.PAUSE_S", 0.001)
    first = free_ports(V4, socket.SOCK_STREAM, 3)
    (item,) = desk.listen(block("tcp", V4, (first, first + 2)))
    if shortages == 3:
        assert (item.up, item.failed) == ([(first, first + 2)], [])
    else:
        assert item.up == [(first, first), (first + 2, first + 2)]
        assert item.failed == [(first + 1, first + 1, "too-many-files")]
