"""Flows that are out as single packets, and their order with its deadlines."""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from ..orders import Flow, Order
from ..outcomes import Kind
from ...core.pace import Pacer
from ...core.pump import Batch

# When the second and the third packet of a look go, as a share of the look.
REPEAT_AT = (0.15, 0.4)
TRIES = 1 + len(REPEAT_AT)


class Ask:
    """One flow that is out: how often it was sent, and since when."""

    __slots__ = ("attempt", "batch", "look", "part", "port", "sent_at", "since", "tries")

    def __init__(self, flow, attempt, batch, now):
        # type: (Flow, int, Batch, float) -> None
        self.part, self.port, self.look = flow
        self.attempt = attempt
        self.batch = batch
        self.tries = 1
        self.since = self.sent_at = now


class AskOrder(Order):
    """An order with what it has out; ``sock`` is its own, or the one that it shares."""

    def __init__(self, agent, message):
        # type: (Any, Dict[str, Any]) -> None
        Order.__init__(self, agent, message)
        self.number = message.get("number")  # type: Optional[int]
        # How long the whole IP packet is to be; it then must not be fragmented.
        self.size = message.get("size")  # type: Optional[int]
        self.sock = None  # type: Optional[socket.socket]
        self.own_port = 0
        self.out = {}  # type: Dict[int, Ask]
        self.first = deque()  # type: Deque[Ask]
        self.later = deque()  # type: Deque[Ask]
        # [look][n] the asks whose packet n + 2 of that look is still to come.
        self.repeats = ([deque(), deque()], [deque(), deque()])  # type: Tuple[List[Deque[Ask]], List[Deque[Ask]]]
        self.attempts = {}  # type: Dict[int, int]
        self.dead = {}  # type: Dict[int, Kind]
        self.pacer = None  # type: Optional[Pacer]
        self.hold_until = 0.0
        self.answered = False
        self.short_since = None  # type: Optional[float]
