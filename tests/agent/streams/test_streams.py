"""Streams: what an agent relays and measures, against real sockets on both loopbacks."""

from __future__ import annotations

import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from netprobe.agent.core.loop import Loop
from netprobe.agent.host.nameservers import read_servers
from netprobe.agent.streams.stream import CREDIT_BYTES
from netprobe.agent.streams.streams import Streams

LOOPBACKS = ["127.0.0.1", "::1"]
MOST_S = 20.0
RESET = b"\1\0\0\0\0\0\0\0"


class Rig:
    """The least agent that streams need; it collects frames and runs until one of a kind comes."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.frames: list[dict[str, Any]] = []
        self.streams = Streams(self)
        self._until: Callable[[dict[str, Any]], bool] | None = None

    def send(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        if self._until is not None and self._until(frame):
            self.loop.stop()

    def order(self, what: str, **keys: Any) -> None:
        self.streams.order({"t": what, "id": keys.pop("id", 1), **keys})

    def open(self, address: str, port: int, **keys: Any) -> None:
        self.order("open", dst=address, port=port, src=None, **keys)

    def data(self, data: bytes) -> None:
        self.order("data", data=b64encode(data).decode())

    def until(self, *kinds: str) -> dict[str, Any]:
        """Run until a frame of one of these kinds that was not there before."""
        self._until = lambda frame: frame["t"] in kinds
        late = self.loop.call_later(MOST_S, self.loop.stop)
        self.loop.run()
        late.cancel()
        assert self.frames[-1]["t"] in kinds, f"no {kinds} in {MOST_S:g} s: {self.frames[-3:]}"
        return self.frames[-1]

    def received(self) -> bytes:
        return b"".join(b64decode(each["data"]) for each in self.frames if each["t"] == "data")


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
        sock.settimeout(MOST_S)
        yield sock


def connected(rig: Rig, listener: socket.socket, **keys: Any) -> socket.socket:
    """Open a stream to the listener; gives the listener's end."""
    address, port = listener.getsockname()[:2]
    rig.open(address, port, **keys)
    opened = rig.frames[-1] if rig.frames and rig.frames[-1]["t"] == "opened" else None
    opened = opened or rig.until("opened")
    assert opened["failure"] is None
    assert opened["local"][0] == address
    assert opened["rtt_us"] >= 0
    accepted, _ = listener.accept()
    accepted.settimeout(MOST_S)
    return accepted


def test_bytes_pass_both_ways(rig: Rig, listener: socket.socket) -> None:
    """What is sent arrives, what comes is relayed, and the answer has its time and numbers."""
    with connected(rig, listener) as peer:
        rig.data(b"question")
        assert peer.recv(100) == b"question"
        peer.sendall(b"answer")
        frame = rig.until("data")
        assert b64decode(frame["data"]) == b"answer"
        assert frame["since_sent_ms"] >= 0
        assert frame["since_received_ms"] == pytest.approx(0, abs=50)
        assert frame["tcp"]["snd_mss"] > 0
        assert {"t": "credit", "id": 1, "bytes": 8} in rig.frames


def test_an_end_is_told_apart(rig: Rig, listener: socket.socket) -> None:
    """A FIN is ``fin``, and half of the connection lives on: what we send still arrives."""
    with connected(rig, listener) as peer:
        peer.shutdown(socket.SHUT_WR)
        frame = rig.until("fin")
        assert frame.get("failure") is None
        rig.data(b"late")
        assert peer.recv(100) == b"late"
        rig.order("shut")
        assert peer.recv(100) == b""


def test_a_reset_is_a_reset(rig: Rig, listener: socket.socket) -> None:
    """A reset is ``reset``, with the numbers of the connection that it ended."""
    peer = connected(rig, listener)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.close()
    frame = rig.until("reset", "fin")
    assert (frame["t"], frame["failure"]) == ("reset", "reset")
    assert frame["elapsed_ms"] >= 0
    rig.order("info")
    assert rig.frames[-1] == {"t": "info", "id": 1, "tcp": None}


def test_silence_is_reported_and_ends_nothing(rig: Rig, listener: socket.socket) -> None:
    """``await`` reports ``timeout`` by the agent's clock; the stream goes on."""
    with connected(rig, listener) as peer:
        rig.data(b"x")
        rig.order("await", ms=120)
        frame = rig.until("timeout")
        assert frame["since_sent_ms"] >= 115
        assert frame["since_received_ms"] is None
        assert "failure" not in frame
        peer.sendall(b"still here")
        assert b64decode(rig.until("data")["data"]) == b"still here"


def test_an_answer_cancels_the_silence(rig: Rig, listener: socket.socket) -> None:
    """Whatever comes in time, no ``timeout`` follows it."""
    with connected(rig, listener) as peer:
        rig.order("await", ms=200)
        peer.sendall(b"quick")
        rig.until("data")
        rig.loop.call_later(0.4, rig.loop.stop)
        rig.loop.run()
        assert "timeout" not in [frame["t"] for frame in rig.frames]


def test_no_more_than_the_credit_is_read(rig: Rig, listener: socket.socket) -> None:
    """64 KiB are relayed, the rest waits until the coordinator has taken some."""
    with connected(rig, listener) as peer:
        total = 3 * CREDIT_BYTES
        sender = threading.Thread(target=peer.sendall, args=(bytes(total),))
        sender.start()
        rig.loop.call_later(0.5, rig.loop.stop)
        rig.loop.run()
        assert len(rig.received()) == CREDIT_BYTES
        while len(rig.received()) < total:
            rig.order("credit", bytes=CREDIT_BYTES)
            rig.until("data")
        sender.join()
        assert len(rig.received()) == total


def test_more_than_the_credit_is_refused(rig: Rig, listener: socket.socket) -> None:
    """A coordinator that sends more than 64 KiB at once has a bug, and hears of it."""
    with connected(rig, listener), pytest.raises(ValueError, match="wait"):
        rig.data(bytes(CREDIT_BYTES + 1))


def test_drop_closes_with_a_reset_if_asked(rig: Rig, listener: socket.socket) -> None:
    """``drop`` ends the connection at once, and nothing more is said about it."""
    with connected(rig, listener) as peer:
        before = len(rig.frames)
        rig.order("drop", reset=True)
        with pytest.raises(ConnectionResetError):
            peer.recv(1)
        rig.data(b"too late")
        assert len(rig.frames) == before


def test_the_end_of_the_agent_closes_every_stream(rig: Rig, listener: socket.socket) -> None:
    """Nothing stays open when the agent ends."""
    with connected(rig, listener) as peer:
        rig.streams.close()
        assert peer.recv(1) == b""


@pytest.mark.parametrize("address", LOOPBACKS)
def test_a_refusal_is_an_outcome(rig: Rig, address: str) -> None:
    """A closed port gives ``opened`` with the failure's name, as TCP probes do."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
        sock.bind((address, 0))
        port = sock.getsockname()[1]
        rig.open(address, port)
        frame = rig.frames[-1] if rig.frames else rig.until("opened")
    assert (frame["t"], frame["failure"], frame["icmp"]) == ("opened", "refused", None)


def test_the_mss_is_capped_before_the_handshake(rig: Rig, listener: socket.socket) -> None:
    """TCP_MAXSEG holds for what we send: the kernel says so."""
    with connected(rig, listener, sockopts={"mss": 536}):
        rig.order("info")
        assert rig.frames[-1]["tcp"]["snd_mss"] <= 536


def test_the_source_address_is_used(rig: Rig) -> None:
    """``src`` is where the connection starts; one that the host lacks is an outcome."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        rig.order("open", dst="127.0.0.1", port=port, src="127.0.0.9")
        opened = rig.frames[-1] if rig.frames else rig.until("opened")
        assert opened["local"][0] == "127.0.0.9"
        rig.order("open", id=2, dst="127.0.0.1", port=port, src="192.0.2.77")
        assert rig.frames[-1]["failure"] == "address-not-available"
        assert rig.frames[-1]["left"] is False


def test_resolvers_are_read_in_order(tmp_path: Any) -> None:
    """The nameserver lines, each once, whatever else the file holds; no file: none."""
    path = tmp_path / "resolv.conf"
    path.write_text("# x\nsearch a\nnameserver 10.0.0.2\nnameserver fd00::2\nnameserver 10.0.0.2\n")
    assert read_servers(str(path)) == ["10.0.0.2", "fd00::2"]
    assert read_servers(str(tmp_path / "none")) == []
