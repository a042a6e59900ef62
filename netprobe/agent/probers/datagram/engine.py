"""Asking by single packets: repetition, silence and errors, shared by UDP, raw protocols and echo.

A look is up to TRIES packets at growing gaps, each with an attempt number of its own, then the rest
of the look's time to listen. A paced order sends only what its pacer allows: first packets go
before repetitions, because the answering host's bucket is what is scarce.
"""

from typing import Any, List, Optional, Tuple

from ...core.pump import SLICE_S, TICK_S, YoungBatch, short_for_long
from ...net.errqueue import QueuedError, drain, ttl_of
from ...wire.failures import (
    HOST_UNREACHABLE,
    MESSAGE_TOO_LONG,
    NO_ANSWER,
    STOOD_STILL,
    is_transient,
    name_of,
)
from ...wire.parts import OutcomeKind
from ..orders import PortLook
from ..outcomes import kind
from .order_keeper import OrderKeeper
from .orders import TRIES, Channel, DatagramOrder, PendingFlow

DEAD_AFTER_S = 0.5
# An error so soon after a packet is about that one: whoever sent it kept nothing waiting.
QUICK_S = 0.3
# send() also returns errors that ICMP left on the socket: its own failure repeats so often.
SEND_TRIES = 4
MOST_BYTES = 65535
ANCILLARY_BYTES = 64

# The flow that an error is about, and when the packet went that drew it.
Matched = Tuple[DatagramOrder, PendingFlow, float]


class DatagramEngine(OrderKeeper):
    """The common part of the engines; a subclass says how to open a socket, to pack and to read."""

    # How much is read of a packet.
    packet_bytes = MOST_BYTES

    # What a subclass says

    def transmit_packet(self, order: DatagramOrder, flow: PendingFlow) -> None:
        """Send the packet of a flow's present attempt. Raises OSError."""
        raise NotImplementedError

    def read_packet(
        self, channel: Channel, data: bytes, ttl: Optional[int], sender: Tuple[Any, ...]
    ) -> None:
        """Take what a packet says, by ``take_answer``."""
        raise NotImplementedError

    def match_error(self, channel: Channel, error: QueuedError) -> Optional[Matched]:
        """Find the flow that an error is about; None where no flow waits for it."""
        raise NotImplementedError

    def is_one_way(self, flow: PendingFlow) -> bool:
        """Tell whether no answer is expected: then silence is no failure."""
        return flow.part.mode == "send"

    # The pump

    def run(self) -> None:
        """Start what may start, repeat what is due, end what has waited long enough."""
        self.start_backlog()
        if not self._start_flows():
            return
        now = self.now()
        self._scheduler.window.age(now)
        for order in list(self.orders.values()):
            self._serve_due(order, now)
            order.flush_outcomes(now)
        if self.orders:
            self._pump.wake(TICK_S)

    def _start_flows(self) -> bool:
        """Start what may start; False where this turn's time is over before that."""
        now = self.now()
        until = now + SLICE_S
        turn = self._scheduler.take_turn(now)
        while turn is not None:
            self._start_chunk(turn[0], turn[1], now)
            now = self.now()
            if now > until:
                self._pump.wake(0.0)
                return False
            turn = self._scheduler.take_turn(now)
        return True

    def _start_chunk(self, order: DatagramOrder, flows: List[PortLook], now: float) -> None:
        batch = YoungBatch(len(flows))
        self._scheduler.window.add(batch, now)
        for index, flow in enumerate(flows):
            if not self._start_flow(order, flow, batch, now):
                rest = flows[index + 1 :]
                self._scheduler.window.answered(batch, len(rest))
                for later in rest:
                    self._scheduler.ask_later(order, later)
                break
        if order.channel is not None:
            self._read_channel(order.channel)

    def _start_flow(
        self, order: DatagramOrder, flow: PortLook, batch: YoungBatch, now: float
    ) -> bool:
        """Send a look's first packet; False where our own host has no room for more just now."""
        port = flow[1]
        attempt = order.attempts.pop(port, 0) + 1
        pending = order.out[port] = PendingFlow(flow, attempt, batch, now)
        if self._send_packet(order, pending):
            return True
        self.forget_flow(order, pending)
        order.attempts[port] = attempt - 1
        self._scheduler.ask_later(order, flow)
        return False

    def _send_packet(self, order: DatagramOrder, flow: PendingFlow) -> bool:
        """Send one packet; False where our own host has no room for more just now."""
        number: Optional[int] = None
        for _ in range(SEND_TRIES):
            try:
                flow.sent_at = self.now()
                self.transmit_packet(order, flow)
                order.short_since = None
                return True
            except OSError as error:
                number = error.errno
            if is_transient(number):
                if order.size is not None:
                    return True  # a device that drops so large a packet says so: it is lost
                if short_for_long(order, self.now()):
                    break
                self._scheduler.pause(self.now())
                return False
            # It may be the error of another packet, reported here; then the next try is clean. If
            # our own firewall rejected this one, the error queue knows better than errno.
            assert order.channel is not None
            self._read_channel(order.channel)
            if order.out.get(flow.port) is not flow:
                return True
        self._end_flow(order, flow, kind("send", name_of(number), None, False))
        return True

    # Repetition and silence

    def _serve_due(self, order: DatagramOrder, now: float) -> None:
        """Send what is due of an order, and end the looks that are over."""
        due = order.find_due(self.agent.answers, self.agent.loop.pauses, now)
        if due and order.channel is not None:
            # What arrived while this process did not run is no silence.
            self._read_channel(order.channel)
        for flow, spoilt in due:
            if order.out.get(flow.port) is not flow:
                continue
            if flow.tries < TRIES:
                self._repeat_packet(order, flow, now)
            else:
                self._end_look(order, flow, spoilt)

    def _repeat_packet(self, order: DatagramOrder, flow: PendingFlow, now: float) -> None:
        if order.pacer is not None and (order.queued or not order.pacer.take(1, now)):
            flow.tries = TRIES  # no more in this look
            return
        flow.tries += 1
        flow.attempt += 1
        self._send_packet(order, flow)

    def _end_look(self, order: DatagramOrder, flow: PendingFlow, spoilt: bool = False) -> None:
        """End a look that nothing answered: ask again, or report silence."""
        spoilt = spoilt and not self.is_one_way(flow)
        following = order.follow(flow.look, flow.port, spoilt)
        if following is not None:
            self.forget_flow(order, flow)
            order.attempts[flow.port] = flow.attempt
            self._scheduler.ask_later(order, (flow.part, flow.port, following))
            return
        silent = kind("answer", STOOD_STILL if spoilt else NO_ANSWER)
        if self.is_one_way(flow):
            silent = kind("send")
        # Attempts are numbered over all looks: the last number is how many packets went.
        self._end_flow(order, flow, order.dead.get(flow.port, silent), packets=flow.attempt)

    # Hearing

    def serve_channel(self, channel: Channel) -> None:
        """Read what has arrived; it may have made room for more."""
        self._read_channel(channel)
        if self._scheduler.lines:
            self._start_flows()

    def _read_channel(self, channel: Channel) -> None:
        """Read errors first: reading data would give their errno without saying whose they are."""
        self._read_errors(channel)
        while channel.is_open:  # its order may end by what it hears
            try:
                data, ancillary, _, sender = channel.sock.recvmsg(
                    self.packet_bytes, ANCILLARY_BYTES
                )
            except BlockingIOError:
                return
            except OSError:
                # The errno of an error that is in the queue; reading it here has cleared it.
                self._read_errors(channel)
                continue
            self.read_packet(channel, data, ttl_of(ancillary), sender)

    def _read_errors(self, channel: Channel) -> None:
        for error in drain(channel.sock) if channel.is_open else ():
            matched = self.match_error(channel, error)
            if matched is not None:
                self._take_error(error, *matched)

    def take_answer(
        self,
        order: DatagramOrder,
        flow: PendingFlow,
        what: OutcomeKind,
        sent_at: float,
        attempt: int,
    ) -> None:
        """Take a genuine sign of life from the destination; it answers that packet, of that time.

        The packets before it were lost.
        """
        if attempt > 1:
            what = what._replace(packets=attempt)
        rtt_s = self.now() - sent_at
        self._learn_rtt(order, flow, rtt_s)
        self._end_flow(order, flow, what, rtt_s)

    def _take_error(
        self, error: QueuedError, order: DatagramOrder, flow: PendingFlow, sent_at: float
    ) -> None:
        """Take an ICMP error (or one of our own kernel) about a packet of this flow."""
        now = self.now()
        name = name_of(error.errno)
        fact = error.fact()
        elapsed_s = waited_s(now, flow.since, sent_at)
        elapsed_ms = round(elapsed_s * 10) * 100 if name == HOST_UNREACHABLE else None
        op = "send" if self.is_one_way(flow) else "answer"
        mtu = error.info if name == MESSAGE_TOO_LONG else None
        what = kind(op, name, fact, elapsed_ms=elapsed_ms, mtu=mtu)
        at_host = fact is not None and fact.offender == order.address_of(flow.port)
        if at_host:
            self._learn_rtt(order, flow, now - sent_at)
        if name == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S and flow.look < order.looks:
            order.dead[flow.port] = what
            self._end_look(order, flow)
            return
        self._end_flow(order, flow, what, now - sent_at if at_host else None)

    def _learn_rtt(self, order: DatagramOrder, flow: PendingFlow, rtt_s: float) -> None:
        order.answered = True
        self.agent.answers.learn(order.address_of(flow.port), rtt_s)

    # Ending

    def _end_flow(
        self,
        order: DatagramOrder,
        flow: PendingFlow,
        what: OutcomeKind,
        rtt_s: Optional[float] = None,
        packets: Optional[int] = None,
    ) -> None:
        """Report the final outcome of a flow that is out."""
        self.forget_flow(order, flow)
        order.dead.pop(flow.port, None)
        self.report(order, flow.port, what, rtt_s, flow.look, packets)


def waited_s(now: float, since: float, sent_at: float) -> float:
    """How long an error kept us waiting, given the look's first packet and the one that drew it.

    A router whose bucket of answers was empty refuses a later packet of a look at once; one that
    looks for a dead neighbour answers for the first packet, three seconds after it.
    """
    return now - sent_at if now - sent_at < QUICK_S else now - since
