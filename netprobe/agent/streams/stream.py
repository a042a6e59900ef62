"""One stream: a connection with credit both ways and a clock of its own.

An ICMP error on an open connection does not end an ordinary program's connection, so it does not
end a stream either: it is kept as a fact. Only a FIN, a reset or the kernel's own timeout ends one.
"""

import socket
import struct
from collections import deque
from typing import Callable, Deque, Dict, Optional

from ..core.agent import AgentCore
from ..core.loop import READ, WRITE, Timer
from ..net.errqueue import QueuedError, about, drain
from ..net.sockets import close_with_reset, open_probe, syn_state, target_of
from ..wire.failures import BROKEN_PIPE, IN_PROGRESS, NO_ANSWER, RESET, TIMED_OUT, name_of
from ..wire.parts import IcmpFact, StreamTimes
from ..wire.stream_messages import (
    StreamCredit,
    StreamEvent,
    StreamOpened,
    StreamOpenOrder,
    StreamReceived,
)

# linux/tcp.h, struct tcp_info: eight bytes, then 32-bit words, later 64-bit ones. Kernels only ever
# add to its end, so the returned length says which fields there are.
INFO_BYTES = 256
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT = 1, 4, 5, 8
# States in which the connection is alive, whatever error the socket has just reported.
ALIVE = frozenset((ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT))

_FIELDS = (
    ("state", 0, "=B"), ("retransmits", 2, "=B"), ("snd_mss", 16, "=I"), ("rcv_mss", 20, "=I"),
    ("unacked", 24, "=I"), ("lost", 32, "=I"), ("retrans", 36, "=I"), ("pmtu", 60, "=I"),
    ("rtt_us", 68, "=I"), ("advmss", 84, "=I"), ("total_retrans", 100, "=I"),
    ("bytes_acked", 120, "=Q"), ("bytes_received", 128, "=Q"), ("segs_out", 136, "=I"),
    ("segs_in", 140, "=I"), ("rcv_ooopack", 224, "=I"),
)  # fmt: skip

CREDIT_BYTES = 64 * 1024
PIECE_BYTES = 16 * 1024

# How a stream ends, by the errno's name; every other one is ``failed``.
ENDS = {RESET: "reset", BROKEN_PIPE: "reset", TIMED_OUT: "timeout"}


def tcp_facts(sock: socket.socket) -> Dict[str, int]:
    """Give the facts that this kernel has; a field that it lacks is not there."""
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    except OSError:
        return {}
    return {
        name: struct.unpack_from(shape, raw, at)[0]
        for name, at, shape in _FIELDS
        if at + struct.calcsize(shape) <= len(raw)
    }


class AgentStream:
    """A TCP connection that an order opened. ``forget`` is called with its id when it is over."""

    def __init__(
        self, agent: AgentCore, order: StreamOpenOrder, forget: Callable[[int], None]
    ) -> None:
        self.id = order.id
        self._agent = agent
        self._loop = agent.loop
        self._forget = forget
        self._target = target_of(order.dst, order.src)
        self._to = self._target.sockaddr(order.port)
        self._mss = order.mss
        self._limit_s = order.timeout_ms / 1000.0
        self._sock: Optional[socket.socket] = None
        self._watched = 0
        self._open = False
        self._credit = CREDIT_BYTES
        self._waiting: Deque[memoryview] = deque()
        self._queued = 0
        self._hears = True
        # The first bytes after a send are its answer: TCP_INFO is read with them.
        self._answered = False
        self._timer: Optional[Timer] = None
        self._awaits = 0
        self._icmp: Optional[IcmpFact] = None
        self._soft: Optional[str] = None
        self._started = self._loop.now()
        self._opened_at: Optional[float] = None
        self._sent_at: Optional[float] = None

    # Opening

    def connect(self) -> None:
        """Begin to connect; ``StreamOpened`` follows in any case."""
        try:
            self._sock = self._open_socket()
        except OSError as error:
            self._report_not_opened(name_of(error.errno), False)
            return
        # Where our own kernel refuses, no packet left the host, unless an ICMP error came.
        if self._is_connecting(self._sock, False):
            self._timer = self._loop.call_later(self._limit_s, self._end_unanswered)
            self._watch_for(READ | WRITE)

    def _open_socket(self) -> socket.socket:
        sock = open_probe(self._target, socket.SOCK_STREAM)
        try:
            # Bytes that are sent as one leave as one: the size of the first flight is a fact.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._mss is not None:
                # Before connect() it is both the MSS that we announce and the most that we send.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self._mss)
        except OSError:
            sock.close()
            raise
        return sock

    def _is_connecting(self, sock: socket.socket, left: Optional[bool] = None) -> bool:
        """Tell whether the connect is still out; else how it ended is reported."""
        code = sock.connect_ex(self._to)
        if code in IN_PROGRESS:
            return True
        if code == 0:
            self._report_opened()
        else:
            self._report_refused(code, self._read_error(sock), left)
        return False

    def _report_refused(
        self, code: int, error: Optional[QueuedError], left: Optional[bool] = None
    ) -> None:
        if error is not None:
            self._icmp = error.fact()
        self._report_not_opened(name_of(code), left if self._icmp is None else None)

    def _end_unanswered(self) -> None:
        sock = self._sock
        assert sock is not None
        if self._is_connecting(sock):
            state = syn_state(sock)
            self._report_not_opened(NO_ANSWER, state.left, state.asked)

    def _report_not_opened(
        self, failure: str, left: Optional[bool], syns: Optional[int] = None
    ) -> None:
        self._report_opening(failure, left=left, syns=syns)
        self._end_stream()

    def _report_opened(self) -> None:
        sock = self._sock
        assert sock is not None
        self._cancel_timer()
        self._open = True
        self._opened_at = self._loop.now()
        rtt_us = int((self._opened_at - self._started) * 1000000)
        local = str(sock.getsockname()[0]).partition("%")[0]
        self._report_opening(None, rtt_us=rtt_us, local=local)
        self._watch_again()
        self._send_waiting()

    def _report_opening(
        self,
        failure: Optional[str],
        left: Optional[bool] = None,
        syns: Optional[int] = None,
        rtt_us: Optional[int] = None,
        local: Optional[str] = None,
    ) -> None:
        times, icmp, soft = self._measure_times(), self._icmp, self._soft
        self._agent.send(
            StreamOpened(
                self.id, times, failure, left, syns, rtt_us, local, icmp, soft, self.facts()
            )
        )

    # Orders

    def send(self, data: bytes) -> None:
        """Send bytes; credit for them is returned once the kernel has taken them."""
        if self._queued + len(data) > CREDIT_BYTES:
            raise ValueError("stream %d: more than %d bytes wait" % (self.id, CREDIT_BYTES))
        if data:
            self._waiting.append(memoryview(data))
            self._queued += len(data)
        if self._open:
            self._send_waiting()

    def grant(self, count: int) -> None:
        """Let as many more bytes be read as the coordinator has taken."""
        self._credit += count
        self._watch_again()

    def wait_for(self, limit_s: float) -> None:
        """Report ``timeout`` if no byte and no end comes within this time; the stream lives on."""
        self._cancel_timer()
        self._awaits += 1
        self._timer = self._loop.call_later(limit_s, lambda: self._report_event("timeout", None))

    def drop(self, reset: bool) -> None:
        """Close the connection now, by a FIN or by a reset; nothing more is reported."""
        sock = self._sock
        if reset and sock is not None:
            self._unwatch_socket()
            close_with_reset(sock)
            self._sock = None
        self._end_stream()

    def facts(self) -> Dict[str, int]:
        """TCP_INFO as it is now."""
        return {} if self._sock is None else tcp_facts(self._sock)

    # The open connection

    def _serve_socket(self, events: int) -> None:
        sock = self._sock
        if sock is None:
            return
        if not self._open:
            # An ICMP error may be in the queue before the errno is set.
            error = self._read_error(sock) if self._is_connecting(sock) else None
            if error is not None:
                self._report_refused(error.errno, error)
            return
        if events & WRITE:
            self._send_waiting()
        if events & ~WRITE and self._sock is not None:
            self._read_socket(sock)

    def _read_socket(self, sock: socket.socket) -> None:
        self._note_error(sock)
        while self._credit > 0 and self._hears and self._sock is not None:
            try:
                data = sock.recv(min(self._credit, PIECE_BYTES))
            except BlockingIOError:
                return
            except OSError as error:
                self._report_broken(sock, error.errno)
                return
            self._report_received(data)

    def _report_received(self, data: bytes) -> None:
        self._cancel_timer()
        if not data:
            self._hears = False
            self._watch_again()
            self._report_event("fin", None)
            return
        self._credit -= len(data)
        tcp = None if self._answered or self._sock is None else tcp_facts(self._sock)
        self._answered = True
        self._agent.send(StreamReceived(self.id, self._measure_times(), data, tcp))
        if self._credit <= 0:
            self._watch_again()

    def _send_waiting(self) -> None:
        sock = self._sock
        while self._waiting and sock is not None:
            piece = self._waiting[0]
            try:
                count = sock.send(piece)
            except BlockingIOError:
                break
            except OSError as error:
                self._report_broken(sock, error.errno)
                return
            self._note_sent(piece, count)
        self._watch_again()

    def _note_sent(self, piece: memoryview, count: int) -> None:
        self._sent_at = self._loop.now()
        self._answered = False
        self._queued -= count
        self._agent.send(StreamCredit(self.id, count))
        if count == len(piece):
            self._waiting.popleft()
        else:
            self._waiting[0] = piece[count:]

    def _read_error(self, sock: socket.socket) -> Optional[QueuedError]:
        return about(drain(sock), self._to[0], self._to[1])

    def _note_error(self, sock: socket.socket) -> None:
        error = self._read_error(sock)
        if error is not None and self._icmp is None:
            self._icmp = error.fact()

    def _report_broken(self, sock: socket.socket, number: Optional[int]) -> None:
        """Report that an operation failed, if that ended the connection.

        With IP_RECVERR an ICMP error is an errno too, and the connection lives on.
        """
        self._note_error(sock)
        name = name_of(number)
        if tcp_facts(sock).get("state") in ALIVE:
            self._soft = name
            return
        self._report_event(ENDS.get(name, "failed"), name)
        self._end_stream()

    # Facts, watching, the end

    def _report_event(self, kind: str, failure: Optional[str]) -> None:
        times = self._measure_times()
        self._agent.send(
            StreamEvent(
                self.id, kind, times, failure, self._icmp, self._soft, self.facts(), self._awaits
            )
        )

    def _measure_times(self) -> StreamTimes:
        now = self._loop.now()
        begin = self._started if self._opened_at is None else self._opened_at
        return StreamTimes(
            _to_ms(now - begin),
            None if self._sent_at is None else _to_ms(now - self._sent_at),
        )

    def _watch_again(self) -> None:
        """Watch only for what can be used now: epoll would report an end that nobody reads again
        and again."""
        if not self._open or self._sock is None:
            return
        reading = READ if self._hears and self._credit > 0 else 0
        self._watch_for(reading | (WRITE if self._waiting else 0))

    def _watch_for(self, events: int) -> None:
        if self._sock is None or events == self._watched:
            return
        if not events:
            self._unwatch_socket()
            return
        if self._watched:
            self._loop.change(self._sock.fileno(), events)
        else:
            self._loop.watch(self._sock.fileno(), events, self._serve_socket)
        self._watched = events

    def _unwatch_socket(self) -> None:
        if self._watched and self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
        self._watched = 0

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_stream(self) -> None:
        self._cancel_timer()
        self._unwatch_socket()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        self._open = False
        self._waiting.clear()
        self._forget(self.id)


def _to_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
