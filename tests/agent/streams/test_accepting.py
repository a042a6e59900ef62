"""Ports whose connections an agent hands over as streams, against real sockets."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from netprobe.agent.streams.stream import CREDIT_BYTES
from netprobe.agent.wire.stream_messages import (
    FIRST_ACCEPTED_ID,
    StreamAccepted,
    StreamCredit,
    StreamDropOrder,
    StreamListening,
    StreamListenOrder,
    StreamReceived,
    StreamSendOrder,
)
from tests.agent.streams.test_streams import LOOPBACKS, Rig
from tests.patience import PATIENCE_S
from tests.ports import free_port

PORT_ID = 5
HOUR_MS = 3_600_000


@pytest.fixture
def rig() -> Iterator[Rig]:
    """An agent whose streams are closed afterwards."""
    rig = Rig()
    yield rig
    rig.streams.close()


def listen(rig: Rig, address: str, *, most: int = 8, ms: int = HOUR_MS) -> int:
    """Let the agent listen at a free port of a loopback."""
    port = free_port(address)
    rig.streams.listen(StreamListenOrder(PORT_ID, address, port, most, ms))
    assert rig.last(StreamListening).failure is None
    return port


def dial(address: str, port: int) -> socket.socket:
    """Connect as an ordinary program does."""
    return socket.create_connection((address, port), timeout=PATIENCE_S)


@pytest.mark.parametrize("address", LOOPBACKS)
def test_a_connection_becomes_a_stream(rig: Rig, address: str) -> None:
    """The peer's address and port are told; bytes go both ways once credit was given, and none
    before."""
    port = listen(rig, address)
    with dial(address, port) as peer:
        peer.sendall(b"hello")
        accepted = rig.until(StreamAccepted)
        assert (accepted.id, accepted.stream) == (PORT_ID, FIRST_ACCEPTED_ID)
        assert (accepted.remote, accepted.remote_port) == peer.getsockname()[:2]
        assert rig.received() == b""
        rig.streams.grant(StreamCredit(accepted.stream, CREDIT_BYTES))
        assert rig.until(StreamReceived).data == b"hello"
        rig.streams.send(StreamSendOrder(accepted.stream, b"welcome"))
        assert peer.recv(100) == b"welcome"
        peer.shutdown(socket.SHUT_WR)
        rig.until_event("fin")
        rig.streams.drop(StreamDropOrder(accepted.stream, False))
        assert peer.recv(1) == b""


def test_no_more_than_so_many_at_once(rig: Rig) -> None:
    """One beyond that waits, and is accepted when one of the others is over."""
    port = listen(rig, "127.0.0.1", most=2)
    with contextlib.ExitStack() as peers:
        for _ in range(3):
            peers.enter_context(dial("127.0.0.1", port))
        while len(rig.sent(StreamAccepted)) < 2:
            rig.until(StreamAccepted)
        rig.loop.call_later(0.05, rig.loop.stop)
        rig.loop.run()
        assert len(rig.sent(StreamAccepted)) == 2
        rig.streams.drop(StreamDropOrder(FIRST_ACCEPTED_ID, False))
        assert rig.until(StreamAccepted).stream == FIRST_ACCEPTED_ID + 2


@pytest.mark.parametrize("by", ["time", "order", "end"])
def test_the_end_of_a_port(rig: Rig, by: str) -> None:
    """Its time, an order or the agent's end closes it and what came in."""
    port = listen(rig, "127.0.0.1", ms=50 if by == "time" else HOUR_MS)
    with dial("127.0.0.1", port) as peer:
        if by == "order":
            rig.until(StreamAccepted)
            rig.streams.drop(StreamDropOrder(PORT_ID, False))
        elif by == "end":
            rig.streams.close()
        else:
            rig.loop.call_later(0.1, rig.loop.stop)
            rig.loop.run()
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        dial("127.0.0.1", port)


def test_a_port_that_is_taken(rig: Rig) -> None:
    """It is told that somebody holds it, and that an address is not of this host."""
    port = free_port()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", port))
        holder.listen()
        rig.streams.listen(StreamListenOrder(PORT_ID, "0.0.0.0", port, 8, HOUR_MS))
        assert rig.last(StreamListening).failure == "address-in-use"
    rig.streams.listen(StreamListenOrder(PORT_ID, "192.0.2.77", port, 8, HOUR_MS))
    assert rig.last(StreamListening).failure == "address-not-available"
