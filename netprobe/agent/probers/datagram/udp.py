"""UDP probes: one unconnected socket an order, with the error queue saying which port refused.

Raw IP protocol probes: one-way packets of a protocol number, and the errors that they draw.
"""

import socket
import time
from typing import Any, Optional, Tuple

from ...net.errqueue import QueuedError
from ...net.sockets import UDP_HEADER, note_own_ports, open_probe
from ...wire import replies
from ...wire.failures import NO_PERMISSION, PERMISSION, name_of
from ...wire.templates import NONCE_BYTES, pack_nonce, read_nonce
from ..outcomes import kind
from .engine import DatagramEngine, Matched
from .orders import Channel, DatagramOrder, PendingFlow


class UdpEngine(DatagramEngine):
    """All UDP orders of the agent."""

    def open_socket(self, order: DatagramOrder) -> socket.socket:
        """Open a socket whose port is known from the start."""
        sock = open_probe(order.target, socket.SOCK_DGRAM, port=order.sport or 0)
        if order.target.source is None and not order.sport:
            sock.bind(("", 0))
        order.outcomes.own_port = sock.getsockname()[1]
        return sock

    def transmit_packet(self, order: DatagramOrder, flow: PendingFlow) -> None:
        """Send a datagram."""
        if flow.port == order.outcomes.own_port:
            self._change_port(order)
        assert order.channel is not None
        sock = order.channel.sock
        # Clear the errors of other packets from the socket, or this send would fail with them. They
        # stay in the error queue, which says whose they are.
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if self.agent.own_ports is not None:
            note_own_ports(self.agent.own_ports, order.target, (flow.port,), (sock,))
        request = order.fill_request(flow, UDP_HEADER)
        sock.sendto(request, order.target.sockaddr(flow.port))

    def _change_port(self, order: DatagramOrder) -> None:
        """Take another socket: on one's own host the own port would answer with our own packet.

        The schedule sends again what is out on the old one.
        """
        old = order.channel
        self.open_channel(order)
        if old is not None:
            old.close()

    def match_error(self, channel: Channel, error: QueuedError) -> Optional[Matched]:
        """Find the flow to the port that our packet went to."""
        order = channel.order
        flow = order.out.get(error.port)
        if flow is None or error.to != order.target.address:
            return None
        return order, flow, flow.sent_at

    def read_packet(
        self, channel: Channel, data: bytes, ttl: Optional[int], sender: Tuple[Any, ...]
    ) -> None:
        """Read a datagram; one from another address or port answers nothing that we asked."""
        order = channel.order
        flow = order.out.get(sender[1])
        if flow is None or sender[0].partition("%")[0] != order.target.address:
            return
        attempt = 1
        if flow.part.mode == "nonce":
            answer, by, attempt = self._read_answer(order, flow, data)
            what = kind(
                "answer", answer=answer, by=by, ttl=ttl if answer == replies.NONCE else None
            )
        else:
            # Packets of this mode are alike: after several nobody knows which one this answers.
            late_ms = int((self.now() - flow.since) * 1000) + 1 if flow.tries > 1 else None
            data = data[: replies.MOST_BYTES]
            what = kind("answer", answer=replies.BYTES, data=data, ttl=ttl, elapsed_ms=late_ms)
            what = what._replace(clock_us=int(time.time() * 1000000))
        self.take_answer(order, flow, what, flow.sent_at, attempt)

    def _read_answer(
        self, order: DatagramOrder, flow: PendingFlow, data: bytes
    ) -> Tuple[str, Optional[int], int]:
        """Hold a datagram against every attempt of this flow; tell which one it answers."""
        template = flow.part.template
        if template is None:
            return replies.GARBLED, None, 1
        places = [template.nonce_at]
        if template.answer is not None:
            places.insert(0, template.answer_nonce_at)
        for place in places:
            nonce = data[place : place + NONCE_BYTES] if place is not None else b""
            if len(nonce) != NONCE_BYTES:
                continue
            said = read_nonce(nonce)
            if said.order != order.id or said.port != flow.port or said.attempt > flow.attempt:
                continue
            request = template.fill(self.agent.key, nonce)
            question = replies.Question(self.agent.key, template, nonce, request, order.host)
            answer, by = replies.read_reply(question, data)
            if answer != replies.GARBLED:
                return answer, by, said.attempt
        return replies.GARBLED, None, 1


class RawEngine(DatagramEngine):
    """All raw protocol orders of the agent, of one flow each; needs CAP_NET_RAW."""

    def open_failure(self, error: OSError) -> str:
        """No raw socket is no permission, never silence."""
        return NO_PERMISSION if error.errno in PERMISSION else name_of(error.errno)

    def is_one_way(self, flow: PendingFlow) -> bool:
        """Nothing is expected back: a host that handles the protocol stays silent."""
        return True

    def open_socket(self, order: DatagramOrder) -> socket.socket:
        """Open a raw socket of the protocol."""
        assert order.number is not None
        return open_probe(order.target, socket.SOCK_RAW, order.number)

    def transmit_packet(self, order: DatagramOrder, flow: PendingFlow) -> None:
        """Send a packet; the kernel adds the IP header."""
        assert order.channel is not None
        # IPv6 wants port 0 in the address.
        order.channel.sock.sendto(order.fill_request(flow, 0), order.target.sockaddr(0))

    def match_error(self, channel: Channel, error: QueuedError) -> Optional[Matched]:
        """Find the only flow: a raw socket hears the errors of every packet of its protocol."""
        order = channel.order
        flow = order.out.get(0)
        if flow is None or error.to != order.target.address:
            return None
        return order, flow, flow.sent_at

    def read_packet(
        self, channel: Channel, data: bytes, ttl: Optional[int], sender: Tuple[Any, ...]
    ) -> None:
        """Read a packet of this protocol: only our own nonce makes it an answer."""
        order = channel.order
        flow = order.out.get(0)
        if flow is None or sender[0].partition("%")[0] != order.target.address:
            return
        template = flow.part.template
        if template is None or template.answer is None:
            return
        if order.target.family == socket.AF_INET:
            data = data[(data[0] & 15) * 4 :]
        nonce = data[template.answer_nonce_at : template.answer_nonce_at + NONCE_BYTES]
        by = template.answering_host(self.agent.key, nonce, data)
        if by is None or nonce[:6] != pack_nonce(order.id, 0, 0)[:6]:
            return
        word = replies.NONCE if order.host in (None, by) else replies.FOREIGN
        what = kind("answer", answer=word, by=by, ttl=ttl)
        self.take_answer(order, flow, what, flow.sent_at, 1)
