"""Flows that are out as single packets, and their order with its deadlines."""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from ...core.pace import Pacer
from ...core.pump import Batch
from ..orders import Flow, Order
from ..outcomes import Kind

# When the second and the third packet of a look go, as a share of the look.
REPEAT_AT = (0.15, 0.4)
TRIES = 1 + len(REPEAT_AT)


class Ask:
    """One flow that is out: how often it was sent, and since when."""

    __slots__ = ("attempt", "batch", "look", "part", "port", "sent_at", "since", "tries")

    def __init__(self, flow: Flow, attempt: int, batch: Batch, now: float) -> None:
        self.part, self.port, self.look = flow
        self.attempt = attempt
        self.batch = batch
        self.tries = 1
        self.since = self.sent_at = now


class AskOrder(Order):
    """An order with what it has out; ``sock`` is its own, or the one that it shares."""

    def __init__(self, agent: Any, message: Dict[str, Any]) -> None:
        Order.__init__(self, agent, message)
        self.number: Optional[int] = message.get("number")
        # How long the whole IP packet is to be; it then must not be fragmented.
        self.size: Optional[int] = message.get("size")
        self.sock: Optional[socket.socket] = None
        self.own_port = 0
        self.out: Dict[int, Ask] = {}
        self.first: Deque[Ask] = deque()
        self.later: Deque[Ask] = deque()
        # [look][n] the asks whose packet n + 2 of that look is still to come.
        self.repeats: Tuple[List[Deque[Ask]], List[Deque[Ask]]] = (
            [deque(), deque()],
            [deque(), deque()],
        )
        self.attempts: Dict[int, int] = {}
        self.dead: Dict[int, Kind] = {}
        self.pacer: Optional[Pacer] = None
        self.hold_until = 0.0
        self.answered = False
        self.short_since: Optional[float] = None
