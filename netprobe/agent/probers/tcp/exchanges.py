"""What is said on TCP connections that opened: one request, and whatever comes back."""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from ...net.errqueue import about, drain
from ...wire import replies
from ...wire.failures import ENDED_AFTER_OPEN, is_transient, name_of
from ...wire.frames import pack_nonce
from ..orders import Part
from ..outcomes import kind
from .scheduler import Launcher

# After the first bytes of a real service, wait so long for the rest.
SETTLE_S = 0.15
# Ways in which a conversation stays without an answer; only silence is asked again.
SAID_NOTHING = {
    replies.SILENT: kind("answer", answer=replies.SILENT),
    replies.CLOSED: kind("answer", answer=replies.CLOSED),
    replies.RESET: kind("answer", answer=replies.RESET),
}


class Talk:
    """An open connection on which something was asked."""

    __slots__ = ("data", "look", "part", "port", "question", "rtt_s", "since", "sock", "unsent")

    def __init__(
        self, part: Part, port: int, look: int, sock: socket.socket, since: float, rtt_s: float
    ) -> None:
        self.part, self.port, self.look = part, port, look
        self.sock, self.since, self.rtt_s = sock, since, rtt_s
        self.question: Optional[replies.Question] = None
        self.data = b""
        self.unsent = b""


class Talks:
    """All conversations of the TCP engine.

    ``owner`` takes results and sockets back; ``starts`` takes flows that are to be asked again.
    """

    def __init__(self, agent: Any, owner: Any, starts: Launcher) -> None:
        self._agent = agent
        self._owner = owner
        self._starts = starts
        self._now = agent.loop.now
        self._talks: Dict[int, Talk] = {}
        self._waiting: Dict[float, Deque[Talk]] = {}
        self._settling: Deque[Tuple[float, Talk]] = deque()

    def begin(self, part: Part, port: int, look: int, sock: socket.socket, rtt_s: float) -> None:
        """A connect has opened: send the request and wait for the answer."""
        talk = Talk(part, port, look, sock, self._now(), rtt_s)
        if part.template is not None:
            order = part.order
            nonce = pack_nonce(order.id, port, look)
            request = part.template.fill(self._agent.key, nonce)
            talk.question = replies.Question(
                self._agent.key, part.template, nonce, request, order.host
            )
            talk.unsent = request
        self._talks[sock.fileno()] = talk
        self._waiting.setdefault(part.order.look_s, deque()).append(talk)
        # An answer cannot have come yet, but a banner or a reset can, and its event is gone.
        self._hear(talk)

    def hear_all(self, events: List[Tuple[int, int]]) -> None:
        """These descriptors have news; harmless where they are none of ours."""
        for fd, _ in events if self._talks else ():
            talk = self._talks.get(fd)
            if talk is not None:
                self._hear(talk)

    def expire(self, now: float) -> None:
        """End what has waited long enough."""
        while self._settling and self._settling[0][0] <= now:
            talk = self._settling.popleft()[1]
            if self._is_open(talk):
                self._end(talk)
        for wait_s, queue in self._waiting.items():
            while queue and (not self._is_open(queue[0]) or now - queue[0].since > wait_s):
                talk = queue.popleft()
                if self._is_open(talk):
                    self._hear(talk)
                if self._is_open(talk):
                    self._end(talk)

    def drop(self, order: Any) -> None:
        """Close the conversations of one order (None: of all) without a result."""
        for fd, talk in list(self._talks.items()):
            if order is None or talk.part.order is order:
                del self._talks[fd]
                self._owner.give_back(talk.part, talk.sock)

    def _is_open(self, talk: Talk) -> bool:
        return self._talks.get(talk.sock.fileno()) is talk

    def _hear(self, talk: Talk) -> None:
        """Send what is left of the request, then read until the answer is whole."""
        try:
            if talk.unsent:
                talk.unsent = talk.unsent[talk.sock.send(talk.unsent) :]
            while self._is_open(talk):
                piece = talk.sock.recv(replies.MOST_BYTES)
                self._take(talk, piece)
        except BlockingIOError:
            return
        except OSError as error:
            if self._is_open(talk):
                self._failed(talk, error.errno)

    def _take(self, talk: Talk, piece: bytes) -> None:
        if not piece:
            self._end(talk, replies.CLOSED)
            return
        first = not talk.data
        talk.data += piece
        if talk.part.mode == "bytes":
            if len(talk.data) >= replies.MOST_BYTES:
                self._end(talk)
            elif first:
                self._settling.append((self._now() + SETTLE_S, talk))
            return
        if talk.question is None:
            self._end(talk)  # nothing was asked, so this answers nothing
            return
        read = replies.read_stream(talk.question, talk.data)
        if read is not None:
            self._finish(talk, kind("answer", answer=read[0], by=read[1]))

    def _end(self, talk: Talk, how: str = replies.SILENT) -> None:
        """Nothing more will come: by a deadline, or because the peer ended it."""
        if talk.data and talk.part.mode == "bytes":
            self._finish(talk, kind("answer", answer="bytes", data=replies.encode(talk.data)))
        elif talk.data:
            self._finish(talk, kind("answer", answer=replies.GARBLED))
        elif how == replies.SILENT and talk.look < talk.part.order.looks:
            self._let_go(talk)
            self._starts.ask_later(talk.part.order, (talk.part, talk.port, talk.look + 1))
        else:
            self._finish(talk, SAID_NOTHING[how])

    def _failed(self, talk: Talk, number: Optional[int]) -> None:
        """A reset, or an ICMP error on the open connection: a firewall that lets only SYNs pass."""
        if is_transient(number):
            return
        if number in ENDED_AFTER_OPEN:
            self._end(talk, replies.RESET)
            return
        error = about(drain(talk.sock), talk.part.order.target.address, talk.port)
        fact = None if error is None else error.fact()
        self._finish(talk, kind("answer", name_of(number), fact))

    def _finish(self, talk: Talk, what: Any) -> None:
        self._let_go(talk)
        self._owner.report(talk.part.order, talk.port, what, talk.rtt_s, talk.look)

    def _let_go(self, talk: Talk) -> None:
        del self._talks[talk.sock.fileno()]
        self._owner.give_back(talk.part, talk.sock)
