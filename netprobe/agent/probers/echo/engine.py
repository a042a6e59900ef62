"""ICMP echo probes: one socket a family and source address serves all destinations.

Wide first: every destination of an order is asked once before any is asked again.
"""

from typing import Any, Optional, Tuple

from ...core.agent import AgentCore
from ...host.hello import find_program
from ...net.errqueue import QueuedError
from ...net.icmp import HEADER_BYTES, echo_request, quoted_sequence, read_echo_reply
from ...net.sockets import padded
from ...wire import replies
from ...wire.failures import NO_PERMISSION, is_transient, name_of
from ...wire.orders import EchoOrder
from ...wire.templates import NONCE_BYTES, read_nonce
from ..datagram.engine import DatagramEngine, Matched
from ..datagram.orders import DatagramOrder, PendingFlow
from ..orders import OrderReport
from ..outcomes import kind
from .orders import PAYLOAD_BYTES, RunningEchoOrder
from .sockets import EchoSockets, PingProgram, SentRequest

# What the kernel says where the address is wrong; anything else that keeps us from a socket is that
# we may not have one.
ADDRESS_ERRORS = frozenset(("address-not-available", "family-not-supported"))


class EchoEngine(DatagramEngine):
    """All echo orders of the agent."""

    # An IPv4 header with options, an ICMP header, and what of the payload tells replies apart.
    packet_bytes = 60 + HEADER_BYTES + PAYLOAD_BYTES

    def __init__(self, agent: AgentCore) -> None:
        DatagramEngine.__init__(self, agent)
        self._sockets = EchoSockets(agent.loop, self.serve_channel)
        self._program = PingProgram(agent, self.report)

    # Orders

    def submit(
        self, order: EchoOrder, _report: Optional[OrderReport] = None, _place: int = 1
    ) -> None:
        """Start an order; its outcomes and ``Done`` follow. Raises OSError for a wrong address."""
        self.take_order(RunningEchoOrder(self.agent, order))

    def is_full(self) -> bool:
        """Never: orders share their sockets."""
        return False

    def is_one_way(self, flow: PendingFlow) -> bool:
        """Never: every echo request wants its reply."""
        return False

    def open_channel(self, order: Any) -> None:
        """Give an order its share of a socket. Raises OSError."""
        order.channel = self._sockets.share(order)

    def close_channel(self, order: Any) -> None:
        """Take its share from an order, which may have none."""
        if order.channel is not None:
            self._sockets.release(order.channel)
            order.channel = None

    def open_failure(self, error: OSError) -> str:
        """No socket is no permission, never silence, unless the kernel names another reason."""
        name = name_of(error.errno)
        named = name in ADDRESS_ERRORS or is_transient(error.errno)
        return name if named else NO_PERMISSION

    def refuse_order(self, order: DatagramOrder, error: OSError) -> None:
        """Let the ``ping`` program ask where this process may open no socket."""
        if self.open_failure(error) == NO_PERMISSION and find_program("ping") is not None:
            self._program.submit(order)
            self._pump.wake(0.0)  # to report as answers come
        else:
            DatagramEngine.refuse_order(self, order, error)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        if order_id in self.orders:
            self._program.cancel(self.orders[order_id])
        return DatagramEngine.cancel(self, order_id)

    def resume(self) -> None:
        """Start new probes again: the agent's output has drained."""
        DatagramEngine.resume(self)
        self._program.resume()

    def close(self) -> None:
        """Close every socket and end every process of ours; what was out is lost."""
        DatagramEngine.close(self)
        self._program.close()
        self._sockets.close()

    # Packets

    def transmit_packet(self, order: Any, flow: PendingFlow) -> None:
        """Send an echo request; each has a sequence number of its own."""
        channel, payload = order.channel, order.payload_of(flow)
        request = SentRequest(order, flow.port, payload, flow.sent_at)
        sequence = channel.note_request(request)
        packet = echo_request(order.target.family, channel.number, sequence, payload)
        if order.size is not None:
            packet = padded(packet, order.target.family, order.size, 0)
        channel.sock.sendto(packet, order.sockaddr_of(flow.port))

    def match_error(self, channel: Any, error: QueuedError) -> Optional[Matched]:
        """Find the flow whose request is quoted; raw sockets hear the errors of every ping."""
        sequence = quoted_sequence(error.data)
        request = channel.find_request(sequence)
        if request is None or error.to != request.order.address_of(request.port):
            return None
        flow = request.order.out.get(request.port)
        return None if flow is None else (request.order, flow, request.sent_at)

    def read_packet(
        self, channel: Any, data: bytes, ttl: Optional[int], sender: Tuple[Any, ...]
    ) -> None:
        """Take a reply that comes from whom was asked and carries what that request did."""
        reply = read_echo_reply(channel.sock.family, channel.kind, data)
        request = None if reply is None else channel.find_request(reply[0])
        if reply is None or request is None:
            return  # another program's
        order, port, payload, sent_at = request
        flow = order.out.get(port)
        if flow is None or reply[1][:PAYLOAD_BYTES] != payload:
            return
        if sender[0].partition("%")[0] == order.address_of(port):
            what = kind("answer", answer=replies.ECHO, ttl=ttl)
            attempt = read_nonce(payload[:NONCE_BYTES]).attempt
            self.take_answer(order, flow, what, sent_at, attempt)
