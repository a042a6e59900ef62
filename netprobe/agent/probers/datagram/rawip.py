"""Raw IP protocol probes: one-way packets of a protocol number, and the errors that they draw."""

import socket
from typing import Optional

from ...core.loop import READ
from ...net.errqueue import drain, ttl_of
from ...net.sockets import forbid_fragments, open_probe, padded, widen
from ...wire import replies
from ...wire.failures import NO_PERMISSION, PERMISSION, name_of
from ...wire.frames import NONCE_BYTES, pack_nonce
from ..outcomes import kind
from .engine import AskEngine
from .orders import Ask, AskOrder

MOST_DATAGRAM = 65535
ANCILLARY_BYTES = 64


class RawEngine(AskEngine):
    """All raw protocol orders of the agent; needs CAP_NET_RAW."""

    def open_failure(self, error: OSError) -> str:
        """No raw socket is no permission, never silence."""
        return NO_PERMISSION if error.errno in PERMISSION else name_of(error.errno)

    def one_way(self, ask: Ask) -> bool:
        """Nothing is expected back: a host that handles the protocol stays silent."""
        return True

    def _open(self, order: AskOrder) -> None:
        assert order.number is not None
        sock = open_probe(order.target, socket.SOCK_RAW, order.number)
        widen(sock)
        if order.size is not None:
            forbid_fragments(sock)
        order.sock = sock
        self.agent.loop.watch(sock.fileno(), READ, lambda events: self._ready(order))

    def _release(self, order: AskOrder) -> None:
        if order.sock is not None:
            self.agent.loop.unwatch(order.sock.fileno())
            order.sock.close()
            order.sock = None

    def _ready(self, order: AskOrder) -> None:
        self._hear(order)
        if self._queue:
            self.run()

    def _transmit(self, order: AskOrder, ask: Ask) -> None:
        assert order.sock is not None
        template = ask.part.template
        request = b""
        if template is not None:
            nonce = pack_nonce(order.id, ask.port, ask.attempt)
            request = template.fill(self.agent.key, nonce)
        if order.size is not None:
            request = padded(request, order.target.family, order.size, 0)
        # The kernel adds the IP header; IPv6 wants port 0 in the address.
        order.sock.sendto(request, order.target.sockaddr(0))

    def _hear(self, order: AskOrder) -> None:
        if order.sock is None:
            return
        self._hear_errors(order)
        while order.sock is not None:
            try:
                data, ancillary, _, sender = order.sock.recvmsg(MOST_DATAGRAM, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self._hear_errors(order)
                continue
            if sender[0].partition("%")[0] == order.target.address:
                self._packet(order, data, ttl_of(ancillary))

    def _hear_errors(self, order: AskOrder) -> None:
        if order.sock is None:
            return
        for error in drain(order.sock):
            # Until connect() a raw socket hears the errors of every packet of its protocol.
            ask = order.out.get(0)
            if ask is not None and error.to == order.target.address:
                self.error(order, ask, error)

    def _packet(self, order: AskOrder, data: bytes, ttl: Optional[int]) -> None:
        """A packet of this protocol from the destination: only our own nonce makes it an answer."""
        ask = order.out.get(0)
        if ask is None or ask.part.template is None or ask.part.template.answer is None:
            return
        template = ask.part.template
        if order.target.family == socket.AF_INET:
            data = data[(data[0] & 15) * 4 :]
        nonce = data[template.answer_nonce_at : template.answer_nonce_at + NONCE_BYTES]
        by = template.answering_host(self.agent.key, nonce, data)
        if by is None or nonce[:6] != pack_nonce(order.id, 0, 0)[:6]:
            return
        genuine = order.host is None or by == order.host
        word = replies.NONCE if genuine else replies.FOREIGN
        self.answer(order, ask, kind("answer", answer=word, by=by, ttl=ttl))
