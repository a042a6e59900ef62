"""The least agent that an engine needs, and listeners that answer nonces, all in one loop."""

from __future__ import annotations

import contextlib
import hashlib
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from netprobe.agent.core.agent import AgentCore
from netprobe.agent.core.loop import READ, Loop
from netprobe.agent.wire.answers import Done, EchoOutcomes, ProbeOutcomes, Walked
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import EchoRun, OutcomeKind, ProbeBlock
from netprobe.agent.wire.templates import Template
from tests.patience import PATIENCE_S

KEY = hashlib.sha256(b"tests").digest()
HOST = 7

# magic, nonce, MAC / magic, nonce, host, MAC: the plain shape that our own listeners speak.
PLAIN = Template(b"NPQ1" + bytes(24), 4, 12)
PLAIN.answer = b"NPA1" + bytes(26)
PLAIN.answer_nonce_at, PLAIN.answer_host_at, PLAIN.answer_mac_at = 4, 12, 14
BARE = Template(b"hello", None, None)


def cross_wire(message: Any) -> Any:
    """An answer as the coordinator reads it; a value of the wrong type fails here."""
    return decode_message(encode_message(message), ANSWERS)


class Found(NamedTuple):
    """The outcome of one port or destination."""

    kind: OutcomeKind
    rtt_us: int | None
    looks: int


class Agent(AgentCore):
    """What an engine sees of the agent, with the messages kept in a list."""

    def __init__(self) -> None:
        super().__init__(Loop())
        self.key = KEY
        self.host = 1
        self.templates = {1: PLAIN, 2: BARE}
        self.messages: list[Any] = []
        self.waiting_for: set[int] = set()
        self.stalled = False

    def send(self, message: Any) -> None:
        self.messages.append(cross_wire(message))
        if isinstance(message, Done | Walked):
            self.waiting_for.discard(message.id)
            if not self.waiting_for:
                self.loop.stop()

    def may_start(self) -> bool:
        return not self.stalled

    def wait(self, *ids: int, most_s: float = PATIENCE_S) -> None:
        """Run the loop until these orders are done."""
        done = {message.id for message in self.sent(Done, Walked)}
        self.waiting_for = set(ids) - done
        late = self.loop.call_later(most_s, self.loop.stop)
        if self.waiting_for:
            self.loop.run()
        late.cancel()
        assert not self.waiting_for, f"orders {self.waiting_for} did not end"

    def sent(self, *kinds: type[Any]) -> list[Any]:
        """The messages of these classes, in their order."""
        return [message for message in self.messages if isinstance(message, kinds)]

    def outcomes(self, order: int) -> dict[int, Found]:
        """What became of every port of an order, or of every destination by its place from 1."""
        found: dict[int, Found] = {}
        for message in self.sent(ProbeOutcomes, EchoOutcomes):
            for run in message.runs if message.id == order else ():
                for port in range(run.first, run.last + 1):
                    assert port not in found, f"port {port} was reported twice"
                    at = port - run.first if isinstance(run, EchoRun) else 0
                    rtt_us = run.rtts_us[at]
                    found[port] = Found(message.kinds[run.kind], rtt_us, run.looks)
        return found


def order(
    ident: int, proto: str, dst: str, ports: Sequence[tuple[int, int]], **more: Any
) -> ProbeOrder:
    """A probe order with the usual fields; ``mode`` and ``template`` go into its only block."""
    block = ProbeBlock(list(ports), more.pop("mode", "connect"), more.pop("template", 0))
    usual = ProbeOrder(
        ident, proto, None, dst, None, [block],
        first_ms=None, look_ms=4000, looks=1, pace=None, min_ttl=None, ttl=None, size=None,
        host=None,
        sport=None, more=[],
    )  # fmt: skip
    return usual._replace(**more)


def echo_order(ident: int, *addresses: str, **more: Any) -> EchoOrder:
    """An echo order with the usual fields."""
    usual = EchoOrder(
        ident, list(addresses), src=None, first_ms=None, look_ms=4000, looks=1, size=None,
        numbers=[],
    )  # fmt: skip
    return usual._replace(**more)


def only(port: int) -> list[tuple[int, int]]:
    """The ranges of a single port."""
    return [(port, port)]


class TcpResponder:
    """Accepts and treats each request as told.

    ``answer``, ``reflect``, ``mute``, ``noise``, ``banner`` (speaks first), ``close`` (at once),
    ``hangup`` (reads, then closes), ``reset`` (reads, then resets).
    """

    def __init__(self, agent: Agent, address: str, how: str = "answer", host: int = HOST,
                 port: int = 0) -> None:  # fmt: skip
        self.agent, self.how, self.host = agent, how, host
        self.sock = socket.socket(_family(address), socket.SOCK_STREAM)
        self.sock.bind((address, port))
        self.sock.listen(128)
        self.sock.setblocking(False)
        self.port: int = self.sock.getsockname()[1]
        self.open: list[socket.socket] = []
        self.seen: list[bytes] = []
        self.own_ports: set[int] = set()
        # The largest segment that each peer takes.
        self.segments: list[int] = []
        agent.loop.watch(self.sock.fileno(), READ, lambda events: self._accept())

    def _accept(self) -> None:
        connection, peer = self.sock.accept()
        self.own_ports.add(peer[1])
        self.segments.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
        connection.setblocking(False)
        self.open.append(connection)
        if self.how == "close":
            self._close(connection)
        elif self.how == "banner":
            connection.send(b"220 ready\r\n")
        if connection.fileno() >= 0:
            self.agent.loop.watch(connection.fileno(), READ, lambda events: self._read(connection))

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._close(connection)
            return
        self.seen.append(data)
        nonce = PLAIN.recognise(KEY, data)
        if self.how == "answer" and nonce is not None:
            port = connection.getsockname()[1]
            connection.send(PLAIN.reply(KEY, nonce, self.host, port, data))
        elif self.how == "reflect":
            connection.send(data)
        elif self.how == "noise":
            connection.send(b"x" * 64)
        elif self.how == "hangup":
            self._close(connection)
        elif self.how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self.agent.loop.unwatch(connection.fileno())
        self.open.remove(connection)
        connection.close()

    def close(self) -> None:
        self.agent.loop.unwatch(self.sock.fileno())
        self.sock.close()
        for connection in list(self.open):
            self._close(connection)


class UdpResponder:
    """Answers datagrams as told: ``answer``, ``reflect``, ``mute``, ``noise``."""

    def __init__(self, agent: Agent, address: str, how: str = "answer", host: int = HOST,
                 ignore: int = 0, port: int = 0) -> None:  # fmt: skip
        self.agent, self.how, self.host, self.ignore = agent, how, host, ignore
        self.sock = socket.socket(_family(address), socket.SOCK_DGRAM)
        self.sock.bind((address, port))
        self.sock.setblocking(False)
        self.port: int = self.sock.getsockname()[1]
        self.seen: list[bytes] = []
        agent.loop.watch(self.sock.fileno(), READ, lambda events: self._read())

    def _read(self) -> None:
        data, sender = self.sock.recvfrom(4096)
        self.seen.append(data)
        if len(self.seen) <= self.ignore:
            return
        # The host's own firewall may refuse the answer; then there is none.
        with contextlib.suppress(PermissionError):
            self._answer(data, sender)

    def _answer(self, data: bytes, sender: tuple[str, int]) -> None:
        nonce = PLAIN.recognise(KEY, data)
        if self.how == "answer" and nonce is not None:
            port = self.sock.getsockname()[1]
            self.sock.sendto(PLAIN.reply(KEY, nonce, self.host, port, data), sender)
        elif self.how == "reflect":
            self.sock.sendto(data, sender)
        elif self.how == "noise":
            self.sock.sendto(b"x" * 64, sender)

    def close(self) -> None:
        self.agent.loop.unwatch(self.sock.fileno())
        self.sock.close()


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def one(agent: Agent, engine: Any, message: ProbeOrder) -> Found:
    """Run one order of one port."""
    engine.submit(message)
    agent.wait(message.id)
    (found,) = agent.outcomes(message.id).values()
    return found
