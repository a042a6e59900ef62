"""One stream: a connection with credit both ways and a clock of its own.

An ICMP error on an open connection does not end it, because it does not end an ordinary program's:
it is kept as a fact. Only a FIN, a reset or the kernel giving up ends a stream.
"""

import socket
from base64 import b64encode
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, Dict, Optional

from ..core.loop import READ, WRITE, Timer
from ..net.errqueue import IcmpFact, QueuedError, about, drain
from ..net.sockets import close_with_reset, open_probe, syn_state, target_of
from ..net.tcpinfo import ALIVE, tcp_facts
from ..wire.failures import (
    BROKEN_PIPE,
    IN_PROGRESS,
    NO_ANSWER,
    RESET,
    TIMED_OUT,
    name_of,
)

CREDIT_BYTES = 64 * 1024
PIECE_BYTES = 16 * 1024
CONNECT_S = 4.0

# How a stream ends, by the errno's name; every other one is ``failed``.
ENDS = {RESET: "reset", BROKEN_PIPE: "reset", TIMED_OUT: "timeout"}


class Stream:
    """A TCP connection that an order opened. ``forget`` is called with its id when it is over."""

    def __init__(self, agent: Any, message: Dict[str, Any], forget: Callable[[int], None]) -> None:
        self.id: int = message["id"]
        self._agent = agent
        self._loop = agent.loop
        self._forget = forget
        self._target = target_of(message["dst"], message.get("src"))
        self._to = self._target.sockaddr(message["port"])
        self._options: Dict[str, Any] = message.get("sockopts") or {}
        self._limit_s = float(message.get("timeout_ms") or CONNECT_S * 1000) / 1000.0
        self._sock: Optional[socket.socket] = None
        self._watched = 0
        self._open = False
        self._credit = CREDIT_BYTES
        self._waiting: Deque[memoryview] = deque()
        self._queued = 0
        self._shutting = False
        self._hears = True
        # The first bytes after a send are an answer: what TCP knows then belongs to it.
        self._answered = False
        self._timer: Optional[Timer] = None
        self._icmp: Optional[IcmpFact] = None
        self._soft: Optional[str] = None
        self._started = self._loop.now()
        self._opened_at: Optional[float] = None
        self._sent_at: Optional[float] = None
        self._received_at: Optional[float] = None

    # Opening

    def connect(self) -> None:
        """Begin to connect; ``opened`` follows in any case."""
        try:
            self._sock = self._socket()
        except OSError as error:
            self._not_opened(name_of(error.errno), False)
            return
        code = self._sock.connect_ex(self._to)
        if code == 0:
            self._opened()
        elif code in IN_PROGRESS:
            self._timer = self._loop.call_later(self._limit_s, self._unanswered)
            self._watch(READ | WRITE)
        else:
            # Our own kernel refused: no packet left the host, unless an ICMP error says otherwise.
            self._refused(code, about(drain(self._sock), self._to[0], self._to[1]), False)

    def _socket(self) -> socket.socket:
        sock = open_probe(self._target, socket.SOCK_STREAM)
        try:
            # What is sent as one is to leave as one: the size of the first flight is a fact.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._options.get("mss"):
                # Before connect() it is both what we announce and the most that we send.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(self._options["mss"]))
        except OSError:
            sock.close()
            raise
        return sock

    def _connecting(self, sock: socket.socket) -> None:
        code = sock.connect_ex(self._to)
        if code == 0:
            self._opened()
        elif code in IN_PROGRESS:
            # An ICMP error may be in the queue before the errno is set.
            error = about(drain(sock), self._to[0], self._to[1])
            if error is not None:
                self._refused(error.errno, error)
        else:
            self._refused(code, about(drain(sock), self._to[0], self._to[1]))

    def _refused(
        self, code: int, error: Optional[QueuedError], left: Optional[bool] = None
    ) -> None:
        if error is not None:
            self._icmp = error.fact()
        self._not_opened(name_of(code), left if self._icmp is None else None)

    def _unanswered(self) -> None:
        sock = self._sock
        assert sock is not None
        code = sock.connect_ex(self._to)
        if code == 0:
            self._opened()
        elif code not in IN_PROGRESS:
            self._refused(code, about(drain(sock), self._to[0], self._to[1]))
        else:
            state = syn_state(sock)
            self._not_opened(NO_ANSWER, state.left, state.asked)

    def _not_opened(self, failure: str, left: Optional[bool], syns: Optional[int] = None) -> None:
        self._agent.send(self._facts("opened", failure=failure, left=left, syns=syns))
        self._end()

    def _opened(self) -> None:
        sock = self._sock
        assert sock is not None
        self._cancel()
        self._open = True
        self._opened_at = self._loop.now()
        local = sock.getsockname()
        self._agent.send(
            self._facts(
                "opened",
                failure=None,
                rtt_us=int((self._opened_at - self._started) * 1000000),
                local=[str(local[0]).partition("%")[0], local[1]],
            )
        )
        self._rewatch()
        self._flush()

    # Orders

    def send(self, data: bytes) -> None:
        """Send bytes; credit for them is returned once the kernel has taken them."""
        if self._queued + len(data) > CREDIT_BYTES:
            raise ValueError("stream %d: more than %d bytes wait" % (self.id, CREDIT_BYTES))
        if data and not self._shutting:
            self._waiting.append(memoryview(data))
            self._queued += len(data)
        if self._open:
            self._flush()

    def grant(self, count: int) -> None:
        """The coordinator has taken so many bytes: as many more may be read."""
        self._credit += count
        self._rewatch()

    def wait_for(self, limit_s: float) -> None:
        """Report ``timeout`` if no byte and no end comes within this time; the stream lives on."""
        self._cancel()
        self._timer = self._loop.call_later(limit_s, lambda: self.report("timeout"))

    def shut(self) -> None:
        """Send a FIN after what waits; the other direction stays open."""
        self._shutting = True
        if self._open:
            self._flush()

    def drop(self, reset: bool) -> None:
        """Close the connection now, by a FIN or by a reset; nothing more is reported."""
        sock = self._sock
        if reset and sock is not None:
            self._unwatch()
            close_with_reset(sock)
            self._sock = None
        self._end()

    def report(self, what: str) -> None:
        """Send the facts of this moment."""
        self._agent.send(self._facts(what))

    # The open connection

    def _ready(self, events: int) -> None:
        sock = self._sock
        if sock is None:
            return
        if not self._open:
            self._connecting(sock)
            return
        if events & WRITE:
            self._flush()
        if events & ~WRITE and self._sock is not None:
            self._read(sock)

    def _read(self, sock: socket.socket) -> None:
        self._note_errors(sock)
        while self._credit > 0 and self._hears and self._sock is not None:
            try:
                data = sock.recv(min(self._credit, PIECE_BYTES))
            except BlockingIOError:
                return
            except OSError as error:
                self._broken(sock, error.errno)
                return
            self._heard(data)

    def _heard(self, data: bytes) -> None:
        self._cancel()
        if not data:
            self._hears = False
            self._rewatch()
            self.report("fin")
            return
        self._received_at = self._loop.now()
        self._credit -= len(data)
        more = {} if self._answered or self._sock is None else {"tcp": tcp_facts(self._sock)}
        self._answered = True
        self._agent.send(self._facts("data", data=b64encode(data).decode("ascii"), **more))
        if self._credit <= 0:
            self._rewatch()

    def _flush(self) -> None:
        sock = self._sock
        while self._waiting and sock is not None:
            piece = self._waiting[0]
            try:
                count = sock.send(piece)
            except BlockingIOError:
                break
            except OSError as error:
                self._broken(sock, error.errno)
                return
            self._sent(piece, count)
        if self._shutting and not self._waiting and sock is not None:
            # Where the peer was faster, its end is reported by the read.
            with suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
        self._rewatch()

    def _sent(self, piece: memoryview, count: int) -> None:
        self._sent_at = self._loop.now()
        self._answered = False
        self._queued -= count
        self._agent.send({"t": "credit", "id": self.id, "bytes": count})
        if count == len(piece):
            self._waiting.popleft()
        else:
            self._waiting[0] = piece[count:]

    def _note_errors(self, sock: socket.socket) -> None:
        error = about(drain(sock), self._to[0], self._to[1])
        if error is not None and self._icmp is None:
            self._icmp = error.fact()

    def _broken(self, sock: socket.socket, number: Optional[int]) -> None:
        """An operation failed. With IP_RECVERR an ICMP error is an errno too, and ends nothing."""
        self._note_errors(sock)
        name = name_of(number)
        if tcp_facts(sock).get("state") in ALIVE:
            self._soft = name
            return
        self._agent.send(self._facts(ENDS.get(name, "failed"), failure=name))
        self._end()

    # Facts, watching, the end

    def _facts(self, what: str, **more: Any) -> Dict[str, Any]:
        now = self._loop.now()
        begin = self._started if self._opened_at is None else self._opened_at
        facts = {
            "t": what,
            "id": self.id,
            "elapsed_ms": _ms(now, begin),
            "since_sent_ms": _ms(now, self._sent_at),
            "since_received_ms": _ms(now, self._received_at),
        }
        if what != "data":
            facts["icmp"] = None if self._icmp is None else list(self._icmp)
            facts["soft"] = self._soft
            facts["tcp"] = {} if self._sock is None else tcp_facts(self._sock)
        facts.update(more)
        return facts

    def _rewatch(self) -> None:
        """Watch for what can be used now: epoll would report an end that nobody reads for ever."""
        if not self._open or self._sock is None:
            return
        reading = READ if self._hears and self._credit > 0 else 0
        self._watch(reading | (WRITE if self._waiting else 0))

    def _watch(self, events: int) -> None:
        if self._sock is None or events == self._watched:
            return
        if not events:
            self._unwatch()
            return
        if self._watched:
            self._loop.change(self._sock.fileno(), events)
        else:
            self._loop.watch(self._sock.fileno(), events, self._ready)
        self._watched = events

    def _unwatch(self) -> None:
        if self._watched and self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
        self._watched = 0

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._cancel()
        self._unwatch()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        self._open = False
        self._waiting.clear()
        self._forget(self.id)


def _ms(now: float, then: Optional[float]) -> Optional[float]:
    return None if then is None else round((now - then) * 1000, 3)
