"""Raw IP protocol probes: one-way packets of a protocol number, and the errors that they draw."""

import socket
from typing import Any, Optional, Tuple

from ...net.errqueue import QueuedError
from ...net.sockets import open_probe
from ...wire import replies
from ...wire.failures import NO_PERMISSION, PERMISSION, name_of
from ...wire.templates import NONCE_BYTES, pack_nonce
from ..outcomes import kind
from .engine import DatagramEngine, Matched
from .orders import Channel, DatagramOrder, PendingFlow


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
