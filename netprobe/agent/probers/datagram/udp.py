"""UDP probes: one unconnected socket an order, with the error queue saying which port refused."""

import socket
from typing import Any, Optional, Tuple

from ...core.loop import READ
from ...net.errqueue import drain, ttl_of
from ...net.sockets import UDP_HEADER, forbid_fragments, open_probe, padded, widen
from ...wire import replies
from ...wire.frames import NONCE_BYTES, pack_nonce, read_nonce
from ..outcomes import kind
from .engine import AskEngine
from .orders import Ask, AskOrder

MOST_DATAGRAM = 65535
ANCILLARY_BYTES = 64


class UdpEngine(AskEngine):
    """All UDP orders of the agent."""

    def _open(self, order: AskOrder) -> None:
        sock = open_probe(order.target, socket.SOCK_DGRAM)
        widen(sock)
        if order.size is not None:
            forbid_fragments(sock)
        if order.target.source is None:
            sock.bind(("", 0))  # now, so that the port is known
        order.sock = sock
        order.own_port = order.outcomes.own_port = sock.getsockname()[1]
        self.agent.loop.watch(sock.fileno(), READ, lambda events: self._ready(order))

    def _release(self, order: AskOrder) -> None:
        self._close(order.sock)
        order.sock = None

    def _close(self, sock: Optional[socket.socket]) -> None:
        if sock is not None:
            self.agent.loop.unwatch(sock.fileno())
            sock.close()

    def _ready(self, order: AskOrder) -> None:
        self._hear(order)
        if self._queue:
            self.run()

    def _transmit(self, order: AskOrder, ask: Ask) -> None:
        if ask.port == order.own_port:
            # On one's own host that port would answer with our own packet. What is out on the old
            # socket is sent again by the schedule.
            old = order.sock
            self._open(order)
            self._close(old)
        assert order.sock is not None
        # Clear what other packets' errors left on the socket, or this send would fail with it. They
        # stay in the error queue, which says whose they are.
        order.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        template = ask.part.template
        request = b""
        if template is not None:
            nonce = pack_nonce(order.id, ask.port, ask.attempt)
            request = template.fill(self.agent.key, nonce)
        if order.size is not None:
            request = padded(request, order.target.family, order.size, UDP_HEADER)
        order.sock.sendto(request, order.target.sockaddr(ask.port))

    def _hear(self, order: AskOrder) -> None:
        """Errors first: reading data would return them as errno, without saying whose they are."""
        if order.sock is None:
            return
        self._hear_errors(order)
        while order.sock is not None:  # the order may end by what it hears
            try:
                data, ancillary, _, sender = order.sock.recvmsg(MOST_DATAGRAM, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError:
                # The errno of an error that is in the queue; reading it here has cleared it.
                self._hear_errors(order)
                continue
            self._datagram(order, data, ttl_of(ancillary), sender)

    def _hear_errors(self, order: AskOrder) -> None:
        if order.sock is None:
            return
        for error in drain(order.sock):
            if error.to != order.target.address:
                continue
            ask = order.out.get(error.port)
            if ask is not None:
                self.error(order, ask, error)

    def _datagram(
        self, order: AskOrder, data: bytes, ttl: Optional[int], sender: Tuple[Any, ...]
    ) -> None:
        """One datagram; from another address or port it answers nothing that we asked."""
        ask = order.out.get(sender[1])
        if ask is None or sender[0].partition("%")[0] != order.target.address:
            return
        if ask.part.mode != "nonce":
            self.answer(order, ask, kind(
                "answer", answer=replies.BYTES, data=replies.encode(data), ttl=ttl
            ))  # fmt: skip
            return
        answer, by = self._read(order, ask, data)
        genuine_ttl = ttl if answer == replies.NONCE else None
        self.answer(order, ask, kind("answer", answer=answer, by=by, ttl=genuine_ttl))

    def _read(self, order: AskOrder, ask: Ask, data: bytes) -> Tuple[str, Optional[int]]:
        """Hold a datagram against every attempt of this flow that has been sent so far."""
        template = ask.part.template
        if template is None:
            return replies.GARBLED, None
        places = [template.nonce_at]
        if template.answer is not None:
            places.insert(0, template.answer_nonce_at)
        for place in places:
            nonce = data[place : place + NONCE_BYTES] if place is not None else b""
            if len(nonce) != NONCE_BYTES:
                continue
            said = read_nonce(nonce)
            if said.order != order.id or said.port != ask.port or said.attempt > ask.attempt:
                continue
            request = template.fill(self.agent.key, nonce)
            question = replies.Question(self.agent.key, template, nonce, request, order.host)
            answer, by = replies.read_reply(question, data)
            if answer != replies.GARBLED:
                return answer, by
        return replies.GARBLED, None
