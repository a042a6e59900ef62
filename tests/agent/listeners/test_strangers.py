"""What strangers send to listeners, cut and garbled in every way: nothing ever comes back."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator

import pytest

from netprobe.agent.wire.parts import ListenBlock
from netprobe.agent.wire.templates import Template, pack_nonce
from netprobe.protocols import PROTOCOLS
from tests.agent.desk import Desk, block
from tests.agent.rig import KEY
from tests.ports import free_ports

V4, V6 = "127.0.0.1", "::1"
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
AT_ONCE = 100
# Of TCP also the reset that ends a stranger; an answer is bytes.
ENDED = (ConnectionResetError, BrokenPipeError)


class Town:
    """A desk whose ports speak every protocol over one transport, and strangers who talk to it."""

    def __init__(self, desk: Desk, transport: str, address: str) -> None:
        self.desk, self.transport, self.address = desk, transport, address
        found = [one for one in PROTOCOLS.values() if transport in one.transports]
        templates = {one.name: one.template(transport, 4) for one in found}
        self.first = free_ports(address, KINDS[transport], len(templates))
        blocks: list[ListenBlock] = []
        for number, template in enumerate(templates.values(), 100):
            desk.templates[number] = template
            port = self.first + len(blocks)
            blocks.append(block(transport, address, (port, port), template=number))
        self.templates = list(templates.values())
        assert all(item.up for item in desk.listen(*blocks))

    def attack(self, count: int, seed: int) -> bytes:
        """Send so many streams or packets; gives all bytes that came back."""
        chance = random.Random(seed)
        came = b""
        while count > 0:
            wave = min(AT_ONCE, count)
            asked = [chance.randrange(len(self.templates)) for _ in range(wave)]
            talks = [(self.first + at, invent(chance, self.templates[at])) for at in asked]
            came += self._stream(talks, chance) if self.transport == "tcp" else self._send(talks)
            count -= wave
        return came

    def heard(self) -> bool:
        """Whether every listener has read strangers."""
        ports = {one.port for one in self.desk.seen().strangers}
        return ports == set(range(self.first, self.first + len(self.templates)))

    def _socket(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        return socket.socket(family, KINDS[self.transport])

    def _send(self, talks: list[tuple[int, bytes]]) -> bytes:
        with self._socket() as sock:
            for port, data in talks:
                sock.sendto(data, (self.address, port))
            self.desk.settle(sock)
            return hear(sock)

    def _stream(self, talks: list[tuple[int, bytes]], chance: random.Random) -> bytes:
        """Every stream comes in two pieces; most end with a FIN, some wait."""
        socks = []
        for port, data in talks:
            sock = self._socket()
            sock.connect((self.address, port))
            cut = chance.randrange(len(data) + 1)
            say(sock, data[:cut])
            socks.append((sock, data[cut:]))
        self.desk.settle()
        for sock, rest in socks:
            say(sock, rest)
        self.desk.settle()
        for sock, _ in socks:
            if chance.random() < 0.8:
                end(sock)
        self.desk.settle()
        came = b"".join(hear(sock) for sock, _ in socks)
        for sock, _ in socks:
            sock.close()
        self.desk.settle()
        return came


def say(sock: socket.socket, data: bytes) -> None:
    """Send what the listener still takes."""
    try:
        sock.send(data, socket.MSG_DONTWAIT)
    except ENDED:
        return


def end(sock: socket.socket) -> None:
    """Send a FIN, unless a reset was faster."""
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return


def hear(sock: socket.socket) -> bytes:
    """All bytes that have come by now."""
    came = b""
    try:
        while data := sock.recv(65536, socket.MSG_DONTWAIT):
            came += data
    except (BlockingIOError, *ENDED):
        return came
    return came


def invent(chance: random.Random, template: Template) -> bytes:
    """What a stranger sends: he knows every byte of a request but the MAC of this run."""
    port, order = chance.randrange(65536), chance.randrange(1, 2**32)
    nonce = pack_nonce(order, port, chance.randrange(3))
    genuine = template.fill(KEY, nonce)
    assert template.mac_at is not None
    garbled = bytearray(genuine)
    garbled[template.mac_at + chance.randrange(16)] ^= 1 << chance.randrange(8)
    reply = template.answer or b""
    kinds = (
        b"x" * chance.randrange(500),
        chance.randbytes(chance.randrange(1500)),
        template.request,
        template.fill(chance.randbytes(32), nonce),
        bytes(garbled),
        genuine[: chance.randrange(len(genuine))],
        genuine[1:],
        chance.randbytes(1) + genuine,
        reply,
    )
    # A genuine request that is cut must not be followed by the byte that was cut off.
    tail = (
        b""
        if (picked := chance.choice(kinds)) == genuine[: len(picked)]
        else chance.choice(
            (b"", b"\0" * chance.randrange(2000), chance.randbytes(chance.randrange(600)), genuine)
        )
    )
    return picked + tail


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An agent that listens."""
    made = Desk()
    yield made
    made.listeners.close()


def test_a_stream_that_is_no_request_gets_no_byte_back(desk: Desk) -> None:
    """Bytes behind a request are given back for a genuine request only, whatever their number."""
    port = free_ports(V4, socket.SOCK_STREAM, 1)
    desk.listen(block("tcp", V4, (port, port)))
    for length in (0, 1, 27, 28, 29, 400, 70_000):
        with socket.create_connection((V4, port)) as sock:
            sock.sendall(b"x" * length)
            sock.shutdown(socket.SHUT_WR)
            desk.settle()
            assert hear(sock) == b"", length


@pytest.mark.slow
@pytest.mark.parametrize("address", [V4, V6])
@pytest.mark.parametrize(("transport", "count"), [("tcp", 1000), ("udp", 4000)])
def test_strangers_hear_nothing(desk: Desk, transport: str, address: str, count: int) -> None:
    """No cut, garbled or foreign request for any protocol gets a byte, over TCP and UDP."""
    town = Town(desk, transport, address)
    assert town.attack(count, seed=1) == b""
    assert town.heard()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize(("transport", "count"), [("tcp", 100_000), ("udp", 300_000)])
def test_many_strangers_hear_nothing(desk: Desk, transport: str, count: int) -> None:
    """0 bytes for 300,000 packets and 100,000 streams, or as many as ten seconds allow."""
    town, sent = Town(desk, transport, V4), 0
    until = time.monotonic() + 10
    while sent < count and time.monotonic() < until:
        assert town.attack(1000, seed=sent) == b""
        sent += 1000
    assert town.heard()
