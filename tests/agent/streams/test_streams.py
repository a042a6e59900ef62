"""Streams: what an agent relays and measures, against real sockets on both loopbacks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import pytest

from netprobe.agent.host.resolve import read_servers
from netprobe.agent.streams.stream import CREDIT_BYTES
from netprobe.agent.streams.streams import AgentStreams
from netprobe.agent.wire.stream_messages import (
    StreamAwaitOrder,
    StreamCredit,
    StreamDropOrder,
    StreamEvent,
    StreamInfo,
    StreamInfoOrder,
    StreamOpened,
    StreamOpenOrder,
    StreamReceived,
    StreamSendOrder,
)
from tests.agent.rig import Agent
from tests.patience import PATIENCE_S

LOOPBACKS = ["127.0.0.1", "::1"]
Message = TypeVar("Message")

RESET = b"\1\0\0\0\0\0\0\0"


class Rig(Agent):
    """The agent of the engines' tests, which runs until a message about a stream comes."""

    def __init__(self) -> None:
        super().__init__()
        self.streams = AgentStreams(self)
        self._until: Callable[[Any], bool] | None = None

    def send(self, message: Any) -> None:
        super().send(message)
        if self._until is not None and self._until(message):
            self.loop.stop()

    def open(self, address: str, port: int, **more: Any) -> None:
        order = StreamOpenOrder(1, address, port, None, mss=None, timeout_ms=4000)
        self.streams.open(order._replace(**more))

    def data(self, data: bytes) -> None:
        self.streams.send(StreamSendOrder(1, data))

    def info(self) -> StreamInfo:
        self.streams.tell_info(StreamInfoOrder(1))
        return self.last(StreamInfo)

    def last(self, kind: type[Message]) -> Message:
        """The last message, which is of this class."""
        found = self.messages[-1]
        assert isinstance(found, kind)
        return found

    def until(self, kind: type[Message]) -> Message:
        """Run until a message of this class that was not there before."""
        self._run(lambda message: isinstance(message, kind))
        return self.last(kind)

    def until_event(self, *kinds: str) -> StreamEvent:
        """Run until an event of one of these kinds that was not there before."""
        self._run(lambda message: isinstance(message, StreamEvent) and message.kind in kinds)
        return self.last(StreamEvent)

    def _run(self, until: Callable[[Any], bool]) -> None:
        self._until = until
        late = self.loop.call_later(PATIENCE_S, self.loop.stop)
        self.loop.run()
        late.cancel()
        assert until(self.messages[-1]), f"not in {PATIENCE_S:g} s: {self.messages[-3:]}"

    def received(self) -> bytes:
        return b"".join(message.data for message in self.sent(StreamReceived))


@pytest.fixture
def rig() -> Iterator[Rig]:
    """An agent whose streams are closed afterwards."""
    rig = Rig()
    yield rig
    rig.streams.close()


@pytest.fixture(params=LOOPBACKS)
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A listener on a loopback of either family."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with closing(socket.socket(family)) as sock:
        sock.bind((request.param, 0))
        sock.listen()
        sock.settimeout(PATIENCE_S)
        yield sock


def connected(rig: Rig, listener: socket.socket, **more: Any) -> socket.socket:
    """Open a stream to the listener; gives the listener's end."""
    address, port = listener.getsockname()[:2]
    rig.open(address, port, **more)
    opened = rig.last(StreamOpened) if rig.messages else rig.until(StreamOpened)
    assert opened.failure is None
    assert opened.local == address
    assert opened.rtt_us is not None
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    return accepted


def test_bytes_pass_both_ways(rig: Rig, listener: socket.socket) -> None:
    """What is sent arrives, what comes is relayed, and the answer has its time and numbers."""
    with connected(rig, listener) as peer:
        rig.data(b"question")
        assert peer.recv(100) == b"question"
        peer.sendall(b"answer")
        found = rig.until(StreamReceived)
        assert found.data == b"answer"
        assert (found.times.since_sent_ms or -1) >= 0
        assert (found.tcp or {})["snd_mss"] > 0
        assert StreamCredit(1, 8) in rig.messages


def test_an_end_is_told_apart(rig: Rig, listener: socket.socket) -> None:
    """A FIN is ``fin``, and half of the connection lives on: what we send still arrives."""
    with connected(rig, listener) as peer:
        peer.shutdown(socket.SHUT_WR)
        assert rig.until_event("fin").failure is None
        rig.data(b"late")
        assert peer.recv(100) == b"late"


def test_a_reset_is_a_reset(rig: Rig, listener: socket.socket) -> None:
    """A reset is ``reset``, with the numbers of the connection that it ended."""
    peer = connected(rig, listener)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.close()
    event = rig.until_event("reset", "fin")
    assert (event.kind, event.failure) == ("reset", "reset")
    assert event.times.elapsed_ms >= 0
    assert rig.info() == StreamInfo(1, None)


def test_silence_is_reported_and_ends_nothing(rig: Rig, listener: socket.socket) -> None:
    """``timeout`` comes by the agent's clock; the stream goes on."""
    with connected(rig, listener) as peer:
        rig.data(b"x")
        rig.streams.wait_for(StreamAwaitOrder(1, 120))
        event = rig.until_event("timeout")
        assert (event.times.since_sent_ms or 0) >= 115
        assert event.failure is None
        peer.sendall(b"still here")
        assert rig.until(StreamReceived).data == b"still here"


def test_an_answer_cancels_the_silence(rig: Rig, listener: socket.socket) -> None:
    """Whatever comes in time, no ``timeout`` follows it."""
    with connected(rig, listener) as peer:
        rig.streams.wait_for(StreamAwaitOrder(1, 200))
        peer.sendall(b"quick")
        rig.until(StreamReceived)
        rig.loop.call_later(0.4, rig.loop.stop)
        rig.loop.run()
        assert rig.sent(StreamEvent) == []


def test_no_more_than_the_credit_is_read(rig: Rig, listener: socket.socket) -> None:
    """64 KiB are relayed, the rest waits until the coordinator has taken some."""
    with connected(rig, listener) as peer:
        total = 3 * CREDIT_BYTES
        sender = threading.Thread(target=peer.sendall, args=(bytes(total),))
        sender.start()
        while len(rig.received()) < CREDIT_BYTES:
            rig.until(StreamReceived)
        rig.loop.call_later(0.2, rig.loop.stop)
        rig.loop.run()
        assert len(rig.received()) == CREDIT_BYTES
        while len(rig.received()) < total:
            rig.streams.grant(StreamCredit(1, CREDIT_BYTES))
            rig.until(StreamReceived)
        sender.join()
        assert len(rig.received()) == total


def test_more_than_the_credit_is_refused(rig: Rig, listener: socket.socket) -> None:
    """A coordinator that sends more than 64 KiB at once has a bug, and hears of it."""
    with connected(rig, listener), pytest.raises(ValueError, match="wait"):
        rig.data(bytes(CREDIT_BYTES + 1))


def test_drop_closes_with_a_reset_if_asked(rig: Rig, listener: socket.socket) -> None:
    """A drop ends the connection at once, and nothing more is said about it."""
    with connected(rig, listener) as peer:
        before = len(rig.messages)
        rig.streams.drop(StreamDropOrder(1, True))
        with pytest.raises(ConnectionResetError):
            peer.recv(1)
        rig.data(b"too late")
        assert len(rig.messages) == before


def test_the_end_of_the_agent_closes_every_stream(rig: Rig, listener: socket.socket) -> None:
    """Nothing stays open when the agent ends."""
    with connected(rig, listener) as peer:
        rig.streams.close()
        assert peer.recv(1) == b""


@pytest.mark.parametrize("address", LOOPBACKS)
def test_a_refusal_is_an_outcome(rig: Rig, address: str) -> None:
    """A closed port gives ``StreamOpened`` with the failure's name, as TCP probes do."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
        sock.bind((address, 0))
        port = sock.getsockname()[1]
        rig.open(address, port)
        opened = rig.last(StreamOpened) if rig.messages else rig.until(StreamOpened)
    assert (opened.failure, opened.icmp) == ("refused", None)


def test_the_mss_is_capped_before_the_handshake(rig: Rig, listener: socket.socket) -> None:
    """TCP_MAXSEG holds for what we send: the kernel says so."""
    with connected(rig, listener, mss=536):
        assert (rig.info().tcp or {})["snd_mss"] <= 536


def test_the_source_address_is_used(rig: Rig) -> None:
    """``src`` is where the connection starts; one that the host lacks is an outcome."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        rig.open("127.0.0.1", port, src="127.0.0.9")
        opened = rig.last(StreamOpened) if rig.messages else rig.until(StreamOpened)
        assert opened.local == "127.0.0.9"
        rig.open("127.0.0.1", port, id=2, src="192.0.2.77")
        assert rig.last(StreamOpened).failure == "address-not-available"
        assert rig.last(StreamOpened).left is False


def test_resolvers_are_read_in_order(tmp_path: Any) -> None:
    """The nameserver lines, each once, whatever else the file holds; no file: none."""
    path = tmp_path / "resolv.conf"
    path.write_text("# x\nsearch a\nnameserver 10.0.0.2\nnameserver fd00::2\nnameserver 10.0.0.2\n")
    assert read_servers(str(path)) == ["10.0.0.2", "fd00::2"]
    assert read_servers(str(tmp_path / "none")) == []
