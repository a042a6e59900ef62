"""Exchanges on TCP connections that opened: one request, and the bytes that come back.

Full-sized segments both ways, on a connection whose request was answered.

The listener gives as many bytes back as it got behind the request, once the stream has ended there.
The first segment of each way is as large as both kernels agreed: where it never arrives, while
small ones do, the path is too narrow for it and nobody told the sender.
"""

import errno
import fcntl
import socket
import struct
import termios
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, List, Optional, Tuple

from ...core.agent import AgentCore
from ...net.errqueue import about, drain
from ...wire import replies
from ...wire.failures import ENDED_AFTER_OPEN, STOOD_STILL, is_transient, name_of
from ...wire.parts import OutcomeKind
from ...wire.templates import pack_nonce
from ..orders import ProbePart
from ..outcomes import kind
from .scheduler import ConnectScheduler
from .socket_pool import TcpOrder

if TYPE_CHECKING:
    from .engine import TcpEngine

# Three: one that is lost is sent again at once, because the later ones are acknowledged.
SEGMENTS = 3

# After the first bytes of a real service, wait so long for the rest.
SETTLE_S = 0.15
# Ends without an answer: those that may be chance in every mode, and all of them.
UNHEARD = (replies.SILENT, replies.NARROW, replies.NARROW_BACK)
SAID_NOTHING = {
    how: kind("answer", answer=how) for how in (*UNHEARD, replies.CLOSED, replies.RESET)
}
# Nothing was heard of one, and it could not have been.
MISSED = kind("answer", STOOD_STILL)

# Its round trip in seconds, and how many SYNs it took where that were several.
SynAnswer = Tuple[float, Optional[int]]


class FullSegments:
    """The bytes that are on their way. ``answered_by``: the host that answered the request."""

    def __init__(self, sock: socket.socket, answered_by: int) -> None:
        self._sock = sock
        self.answered_by = answered_by
        self.size = SEGMENTS * sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        self._received = 0
        self._before: Optional[Tuple[int, int]] = None

    def take(self, count: int) -> bool:
        """Count bytes that came back; tell whether these were the last."""
        self._received += count
        return self._received >= self.size

    def moves(self) -> bool:
        """Tell whether anything was acknowledged or came back since this was last asked; yes, where
        it was never asked."""
        before, self._before = self._before, self._count_bytes()
        return self._before != before

    def conclude(self) -> str:
        """Give the answer's word: it is the nonce's where any full-sized segment came both ways."""
        unacknowledged, received = self._count_bytes()
        if received:
            return replies.NONCE
        return replies.NARROW if unacknowledged >= self.size else replies.NARROW_BACK

    def _count_bytes(self) -> Tuple[int, int]:
        """Give the bytes that nobody has acknowledged (the FIN counts as one), and those back."""
        (queued,) = struct.unpack("i", fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, bytes(4)))
        return min(self.size, queued), self._received


class TcpExchange:
    """An open connection on which a request was sent."""

    __slots__ = (
        "data", "full", "look", "opening", "part", "port", "question", "since", "sock", "unsent",
    )  # fmt: skip

    def __init__(
        self, part: ProbePart, port: int, look: int, sock: socket.socket, since: float,
        opening: SynAnswer,
    ) -> None:  # fmt: skip
        self.part, self.port, self.look = part, port, look
        self.sock, self.since, self.opening = sock, since, opening
        self.question: Optional[replies.Question] = None
        self.full: Optional[FullSegments] = None
        self.data = b""
        self.unsent = b""


class TcpExchanges:
    """All exchanges of the TCP engine.

    ``owner`` takes results and sockets back; ``scheduler`` takes the ports that are asked again.
    """

    def __init__(self, agent: AgentCore, owner: "TcpEngine", scheduler: ConnectScheduler) -> None:
        self._agent = agent
        self._owner = owner
        self._scheduler = scheduler
        self._now = agent.loop.now
        self._pauses = agent.loop.pauses
        self._exchanges: Dict[int, TcpExchange] = {}
        self._waiting: Dict[float, Deque[TcpExchange]] = {}
        self._settling: Deque[Tuple[float, TcpExchange]] = deque()

    def begin(
        self, part: ProbePart, port: int, look: int, sock: socket.socket, opening: SynAnswer
    ) -> None:
        """Send the request on a connection that opened, and wait for the answer."""
        exchange = TcpExchange(part, port, look, sock, self._now(), opening)
        if part.template is not None:
            order = part.order
            nonce = pack_nonce(order.id, port, look)
            request = part.template.fill(self._agent.key, nonce)
            exchange.question = replies.Question(
                self._agent.key, part.template, nonce, request, order.host
            )
            exchange.unsent = request
        self._exchanges[sock.fileno()] = exchange
        self._waiting.setdefault(part.order.look_s, deque()).append(exchange)
        # An answer cannot have come yet, but a banner or a reset can, and its event is gone.
        self._hear_exchange(exchange)

    def hear_all(self, events: List[Tuple[int, int]]) -> None:
        """Read the exchanges among these descriptors; others are skipped."""
        for fd, _ in events if self._exchanges else ():
            exchange = self._exchanges.get(fd)
            if exchange is not None:
                self._hear_exchange(exchange)

    def expire(self, now: float) -> None:
        """End the exchanges that have waited long enough."""
        while self._settling and self._settling[0][0] <= now:
            exchange = self._settling.popleft()[1]
            if self._is_open(exchange):
                self._end_exchange(exchange)
        for wait_s, queue in self._waiting.items():
            while queue and (
                not self._is_open(queue[0]) or self._pauses.is_over(queue[0].since, wait_s, now)
            ):
                exchange = queue.popleft()
                if self._is_open(exchange):
                    self._hear_exchange(exchange)
                if not self._is_open(exchange):
                    continue
                if exchange.full is not None and exchange.full.moves():
                    exchange.since = now  # it is slow, because some of it is lost
                    queue.append(exchange)
                else:
                    spoilt = self._pauses.is_spoilt(exchange.since, wait_s, now)
                    self._end_exchange(exchange, spoilt=spoilt)

    def drop(self, order: Optional[TcpOrder]) -> None:
        """Close the exchanges of one order (None: of all) without a result."""
        for fd, exchange in list(self._exchanges.items()):
            if order is None or exchange.part.order is order:
                del self._exchanges[fd]
                self._owner.give_back_socket(exchange.part, exchange.sock)

    def _is_open(self, exchange: TcpExchange) -> bool:
        return self._exchanges.get(exchange.sock.fileno()) is exchange

    def _hear_exchange(self, exchange: TcpExchange) -> None:
        """Send what is left of the request, then read until the answer is whole."""
        try:
            if exchange.unsent:
                exchange.unsent = exchange.unsent[exchange.sock.send(exchange.unsent) :]
                if exchange.full is not None and not exchange.unsent:
                    exchange.sock.shutdown(socket.SHUT_WR)
            while self._is_open(exchange):
                piece = exchange.sock.recv(replies.MOST_BYTES)
                self._take_piece(exchange, piece)
        except BlockingIOError:
            return
        except OSError as error:
            if self._is_open(exchange):
                self._end_failed(exchange, error.errno)

    def _take_piece(self, exchange: TcpExchange, piece: bytes) -> None:
        if not piece:
            self._end_exchange(exchange, replies.CLOSED)
            return
        if exchange.full is not None:
            if exchange.full.take(len(piece)):
                self._end_exchange(exchange)
            return
        first = not exchange.data
        exchange.data += piece
        if exchange.part.mode == "bytes":
            if len(exchange.data) >= replies.MOST_BYTES:
                self._end_exchange(exchange)
            elif first:
                self._settling.append((self._now() + SETTLE_S, exchange))
            return
        if exchange.question is None:
            self._end_exchange(exchange)  # there was no request, so these bytes answer none
        else:
            self._take_answer(exchange, exchange.question)

    def _take_answer(self, exchange: TcpExchange, question: replies.Question) -> None:
        read = replies.read_stream(question, exchange.data)
        if read is None:
            return
        if exchange.part.order.size is not None and read[0] == replies.NONCE:
            exchange.full = FullSegments(exchange.sock, read[1] or 0)
            exchange.unsent = bytes(exchange.full.size)
            self._hear_exchange(exchange)
        else:
            self._report_exchange(exchange, kind("answer", answer=read[0], by=read[1]))

    def _end_exchange(
        self, exchange: TcpExchange, how: str = replies.SILENT, spoilt: bool = False
    ) -> None:
        """End an exchange because its time is over (``spoilt``: by pauses), or because the peer
        ended it."""
        by = None
        if exchange.full is not None and how == replies.SILENT:
            how, by = exchange.full.conclude(), exchange.full.answered_by
        if how == replies.NONCE:
            self._report_exchange(exchange, kind("answer", answer=how, by=by))
        elif exchange.data and exchange.part.mode == "bytes":
            self._report_exchange(
                exchange, kind("answer", answer="bytes", data=exchange.data[: replies.MOST_BYTES])
            )
        elif exchange.data and exchange.full is None:
            self._report_exchange(exchange, kind("answer", answer=replies.GARBLED))
        elif self._may_be_chance(exchange, how):
            self._ask_again(exchange, how, spoilt)
        else:
            self._report_exchange(exchange, SAID_NOTHING[how])

    def _ask_again(self, exchange: TcpExchange, how: str, spoilt: bool) -> None:
        """Take the look that follows a silent one, or report the silence."""
        part, port = exchange.part, exchange.port
        following = part.order.follow(exchange.look, port, spoilt)
        if following is None:
            self._report_exchange(exchange, MISSED if spoilt else SAID_NOTHING[how])
            return
        self._forget_exchange(exchange)
        self._scheduler.ask_later(part.order, (part, port, following))

    @staticmethod
    def _may_be_chance(exchange: TcpExchange, how: str) -> bool:
        # Silence may be a loss; a listener of ours that has no room ends connections.
        return how in UNHEARD or exchange.part.mode == "nonce"

    def _end_failed(self, exchange: TcpExchange, number: Optional[int]) -> None:
        """End it by a reset or an ICMP error: a firewall lets only SYNs pass."""
        if is_transient(number):
            return
        if number in ENDED_AFTER_OPEN:
            self._end_exchange(exchange, replies.RESET)
            return
        if number == errno.ETIMEDOUT:
            self._end_exchange(exchange)  # the kernel gave up (tcp_retries2): silence
            return
        error = about(drain(exchange.sock), exchange.part.order.target.address, exchange.port)
        fact = None if error is None else error.fact()
        self._report_exchange(exchange, kind("answer", name_of(number), fact))

    def _report_exchange(self, exchange: TcpExchange, what: OutcomeKind) -> None:
        self._forget_exchange(exchange)
        rtt_s, syns = exchange.opening
        what = what._replace(packets=syns)
        self._owner.report(exchange.part.order, exchange.port, what, rtt_s, exchange.look)

    def _forget_exchange(self, exchange: TcpExchange) -> None:
        del self._exchanges[exchange.sock.fileno()]
        self._owner.give_back_socket(exchange.part, exchange.sock)
