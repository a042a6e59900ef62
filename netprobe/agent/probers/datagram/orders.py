"""Datagram orders while they are worked on: their socket, and their flows that wait for answers."""

import socket
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ...core.agent import AgentCore
from ...core.loop import READ, Loop
from ...core.pace import Answers, Bucket
from ...core.pauses import Pauses
from ...core.pump import YoungBatch
from ...net.sockets import forbid_fragments, padded, widen
from ...wire.orders import ProbeOrder
from ...wire.parts import OutcomeKind
from ...wire.templates import pack_nonce
from ..orders import OrderReport, PortLook, RunningOrder

# When the second and the third packet of a look go, as a share of the look.
REPEAT_AT = (0.15, 0.4)
TRIES = 1 + len(REPEAT_AT)
# How long a flow waits, as a share of its look, by how many packets it has sent in this look.
WAITS = (0.0, *REPEAT_AT, 1.0)


class Channel:
    """A socket that the loop watches. Echo orders share one; any other order has its own.

    ``whole``: its packets are never fragmented. ``on_ready(channel)`` is called when there is
    something to read.
    """

    def __init__(
        self, loop: Loop, sock: socket.socket, whole: bool, on_ready: Callable[[Any], None]
    ) -> None:
        widen(sock)
        if whole:
            forbid_fragments(sock)
        self._loop = loop
        self.sock = sock
        # The order that has this socket for itself.
        self.order: Any = None
        self.is_open = True
        loop.watch(sock.fileno(), READ, lambda _events: on_ready(self))

    def close(self) -> None:
        """Close the socket."""
        self.is_open = False
        self._loop.unwatch(self.sock.fileno())
        self.sock.close()


class PendingFlow:
    """One flow that waits for an answer: how often it was sent, and since when."""

    __slots__ = ("attempt", "batch", "look", "part", "port", "sent_at", "since", "tries")

    def __init__(self, flow: PortLook, attempt: int, batch: YoungBatch, now: float) -> None:
        self.part, self.port, self.look = flow
        # Attempts are numbered over all looks: the last number is how many packets went.
        self.attempt = attempt
        self.batch = batch
        self.tries = 1
        self.since = self.sent_at = now


class DatagramOrder(RunningOrder):
    """An order with the flows that it has out, by port."""

    # A destination that has not answered yet may lack a neighbour entry: the kernel keeps about 100
    # packets for it and drops the rest. So every second chunk waits so long for a first answer.
    hold_s = 0.05

    def __init__(
        self,
        agent: AgentCore,
        order: ProbeOrder,
        report: Optional[OrderReport] = None,
        place: int = 1,
    ) -> None:
        RunningOrder.__init__(self, agent, order, report, place)
        self.number = order.number
        # How long the whole IP packet is to be; it then must not be fragmented.
        self.key = agent.key
        self.channel: Optional[Channel] = None
        self.out: Dict[int, PendingFlow] = {}
        # How many packets have gone to flows that wait for their next turn.
        self.attempts: Dict[int, int] = {}
        # Host-unreachable that came once; it is asked again.
        self.dead: Dict[int, OutcomeKind] = {}
        self.pacer: Optional[Bucket] = None
        if self.pace is not None:
            self.pacer = agent.answers.pacer(self.target.address, self.target.source, self.pace)
        self.hold_until = 0.0
        self.answered = False
        self.short_since: Optional[float] = None

    def fill_request(self, flow: PendingFlow, header: int) -> bytes:
        """Tell what a packet carries behind a transport header of so many bytes."""
        request = b""
        if flow.part.template is not None:
            nonce = pack_nonce(self.id, flow.port, flow.attempt)
            request = flow.part.template.fill(self.key, nonce)
        if self.size is not None:
            request = padded(request, self.target.family, self.size, header)
        return request

    def address_of(self, _port: int) -> str:
        """Give the address that a flow goes to."""
        return self.target.address

    def find_due(
        self, answers: Answers, pauses: Pauses, now: float
    ) -> List[Tuple[PendingFlow, bool]]:
        """Find the flows whose next packet is due, or whose look is over; whether pauses have
        spoilt that."""
        first_s = answers.first_look_s(self.target.address, self.first_ms, self.look_ms)
        looks_s = (self.look_s, first_s)
        waits = ((one, WAITS[one.tries] * looks_s[one.look == 1]) for one in self.out.values())
        return list_due(waits, pauses, now)


def list_due(
    waits: Iterable[Tuple[PendingFlow, float]], pauses: Pauses, now: float
) -> List[Tuple[PendingFlow, bool]]:
    """List the flows that have waited for their time, and whether pauses have spoilt it."""
    return [
        (flow, pauses.is_spoilt(flow.since, wait_s, now))
        for flow, wait_s in waits
        if now - flow.since >= wait_s and pauses.is_over(flow.since, wait_s, now)
    ]
