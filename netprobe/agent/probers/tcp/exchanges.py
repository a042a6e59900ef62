"""What is said on TCP connections that opened: one request, and whatever comes back."""

import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Tuple

from ...net.errqueue import about, drain
from ...wire import answers as replies
from ...wire.failures import ENDED_AFTER_OPEN, is_transient, name_of
from ...wire.frames import pack_nonce
from ..orders import Order, Part
from ..outcomes import Kind, kind
from .scheduler import Scheduler

if TYPE_CHECKING:
    from .engine import TcpEngine

# After the first bytes of a real service, wait so long for the rest.
SETTLE_S = 0.15
# Ways in which a conversation stays without an answer; only silence is asked again.
SAID_NOTHING = {
    replies.SILENT: kind("answer", answer=replies.SILENT),
    replies.CLOSED: kind("answer", answer=replies.CLOSED),
    replies.RESET: kind("answer", answer=replies.RESET),
}


class Conversation:
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


class Exchanges:
    """All conversations of the TCP engine.

    ``owner`` takes results and sockets back; ``scheduler`` takes flows that are to be asked again.
    """

    def __init__(self, agent: Any, owner: "TcpEngine", scheduler: Scheduler) -> None:
        self._agent = agent
        self._owner = owner
        self._scheduler = scheduler
        self._now = agent.loop.now
        self._conversations: Dict[int, Conversation] = {}
        self._waiting: Dict[float, Deque[Conversation]] = {}
        self._settling: Deque[Tuple[float, Conversation]] = deque()

    def begin_conversation(
        self, part: Part, port: int, look: int, sock: socket.socket, rtt_s: float
    ) -> None:
        """A connect has opened: send the request and wait for the answer."""
        conversation = Conversation(part, port, look, sock, self._now(), rtt_s)
        if part.template is not None:
            order = part.order
            nonce = pack_nonce(order.id, port, look)
            request = part.template.fill(self._agent.key, nonce)
            conversation.question = replies.Question(
                self._agent.key, part.template, nonce, request, order.host
            )
            conversation.unsent = request
        self._conversations[sock.fileno()] = conversation
        self._waiting.setdefault(part.order.look_s, deque()).append(conversation)
        # An answer cannot have come yet, but a banner or a reset can, and its event is gone.
        self._hear_more(conversation)

    def hear_all(self, events: List[Tuple[int, int]]) -> None:
        """These descriptors have news; harmless where they are none of ours."""
        for fd, _ in events if self._conversations else ():
            conversation = self._conversations.get(fd)
            if conversation is not None:
                self._hear_more(conversation)

    def expire(self, now: float) -> None:
        """End what has waited long enough."""
        while self._settling and self._settling[0][0] <= now:
            conversation = self._settling.popleft()[1]
            if self._is_open(conversation):
                self._end_conversation(conversation)
        for wait_s, queue in self._waiting.items():
            while queue and (not self._is_open(queue[0]) or now - queue[0].since > wait_s):
                conversation = queue.popleft()
                if self._is_open(conversation):
                    self._hear_more(conversation)
                if self._is_open(conversation):
                    self._end_conversation(conversation)

    def drop(self, order: Optional[Order]) -> None:
        """Close the conversations of one order (None: of all) without a result."""
        for fd, conversation in list(self._conversations.items()):
            if order is None or conversation.part.order is order:
                del self._conversations[fd]
                self._owner.give_back_socket(conversation.part, conversation.sock)

    def _is_open(self, conversation: Conversation) -> bool:
        return self._conversations.get(conversation.sock.fileno()) is conversation

    def _hear_more(self, conversation: Conversation) -> None:
        """Send what is left of the request, then read until the answer is whole."""
        try:
            if conversation.unsent:
                conversation.unsent = conversation.unsent[
                    conversation.sock.send(conversation.unsent) :
                ]
            while self._is_open(conversation):
                piece = conversation.sock.recv(replies.MOST_BYTES)
                self._take_piece(conversation, piece)
        except BlockingIOError:
            return
        except OSError as error:
            if self._is_open(conversation):
                self._take_error(conversation, error.errno)

    def _take_piece(self, conversation: Conversation, piece: bytes) -> None:
        if not piece:
            self._end_conversation(conversation, replies.CLOSED)
            return
        first = not conversation.data
        conversation.data += piece
        if conversation.part.mode == "bytes":
            if len(conversation.data) >= replies.MOST_BYTES:
                self._end_conversation(conversation)
            elif first:
                self._settling.append((self._now() + SETTLE_S, conversation))
            return
        if conversation.question is None:
            self._end_conversation(conversation)  # nothing was asked, so this answers nothing
            return
        read = replies.read_stream(conversation.question, conversation.data)
        if read is not None:
            self._report_outcome(conversation, kind("answer", answer=read[0], by=read[1]))

    def _end_conversation(self, conversation: Conversation, how: str = replies.SILENT) -> None:
        """Nothing more will come: by a deadline, or because the peer ended it."""
        if conversation.data and conversation.part.mode == "bytes":
            self._report_outcome(
                conversation, kind("answer", answer="bytes", data=replies.encode(conversation.data))
            )
        elif conversation.data:
            self._report_outcome(conversation, kind("answer", answer=replies.GARBLED))
        elif how == replies.SILENT and conversation.look < conversation.part.order.looks:
            self._close_conversation(conversation)
            self._scheduler.ask_later(
                conversation.part.order,
                (conversation.part, conversation.port, conversation.look + 1),
            )
        else:
            self._report_outcome(conversation, SAID_NOTHING[how])

    def _take_error(self, conversation: Conversation, number: Optional[int]) -> None:
        """A reset, or an ICMP error on the open connection: a firewall that lets only SYNs pass."""
        if is_transient(number):
            return
        if number in ENDED_AFTER_OPEN:
            self._end_conversation(conversation, replies.RESET)
            return
        error = about(
            drain(conversation.sock), conversation.part.order.target.address, conversation.port
        )
        fact = None if error is None else error.fact()
        self._report_outcome(conversation, kind("answer", name_of(number), fact))

    def _report_outcome(self, conversation: Conversation, what: Kind) -> None:
        self._close_conversation(conversation)
        self._owner.report(
            conversation.part.order, conversation.port, what, conversation.rtt_s, conversation.look
        )

    def _close_conversation(self, conversation: Conversation) -> None:
        del self._conversations[conversation.sock.fileno()]
        self._owner.give_back_socket(conversation.part, conversation.sock)
