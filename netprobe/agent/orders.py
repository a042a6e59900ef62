"""A probe order while it is worked on: its ports, taken lazily, and what is asked again."""

from collections import deque
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .outcomes import Outcomes
from .sockets import Target, target_of
from .wire import Template


class Part(NamedTuple):
    """One block of an order: its mode and what it sends (None: nothing)."""

    order: Any  # the engine's own subclass of Order
    mode: str
    template: Optional[Template]


Flow = Tuple[Part, int, int]
Range = Tuple[Part, int, int]
# What starts in one turn: flows of one part and look, by their ports.
Turn = Tuple[Part, int, List[int]]


class Order:
    """Ports that are still to be asked, of one source and one destination.

    A flow is (part, port, look); looks count from 1.
    """

    def __init__(self, agent, message):
        # type: (Any, Dict[str, Any]) -> None
        self.id = message["id"]  # type: int
        self.target = target_of(message["dst"], message.get("src"))  # type: Target
        self.host = message.get("host")  # type: Optional[int]
        self.looks = max(1, int(message.get("looks") or 1))
        self.first_ms = message.get("first_ms")  # type: Optional[int]
        self.look_ms = int(message["look_ms"])
        self.look_s = self.look_ms / 1000.0
        self.pace = message.get("pace")  # type: Optional[Tuple[int, float]]
        self.min_ttl = message.get("min_ttl")  # type: Optional[int]
        self.ttl = message.get("ttl")  # type: Optional[int]
        self.outcomes = Outcomes(agent.send, self.id)
        self.flushed_at = agent.loop.now()
        # Whether it waits in its engine's queue for a turn.
        self.queued = False
        self.again = deque()  # type: Deque[Flow]
        # (part, first, last): ranges that nobody has asked yet.
        self._fresh = deque(self._ranges(agent, message["blocks"]))  # type: Deque[Range]
        # A block without ports (ICMP echo, raw protocols) is one flow.
        self.pending = sum(
            sum(last - first + 1 for first, last in block["ports"]) or 1
            for block in message["blocks"]
        )

    def _ranges(self, agent, blocks):
        # type: (Any, List[Dict[str, Any]]) -> Iterator[Range]
        for block in blocks:
            # Templates are looked up now: a later order may bring other ones under the same id.
            template = agent.templates[block["template"]] if block.get("template") else None
            part = Part(self, block["mode"], template)
            for first, last in block["ports"] or ((0, 0),):
                yield part, first, last

    def take(self, count):
        # type: (int) -> List[Flow]
        """Up to ``count`` flows to start: those never asked first, then those asked again."""
        flows = []  # type: List[Flow]
        fresh = self._fresh
        while fresh and len(flows) < count:
            part, first, last = fresh.popleft()
            end = min(last, first + count - len(flows) - 1)
            flows += [(part, port, 1) for port in range(first, end + 1)]
            if end < last:
                fresh.appendleft((part, end + 1, last))
        while len(flows) < count and self.again:
            flows.append(self.again.popleft())
        return flows

    def take_alike(self, count):
        # type: (int) -> Optional[Turn]
        """Up to ``count`` flows of one part and look; None where there is nothing to start."""
        fresh, again = self._fresh, self.again
        if not fresh and not again:
            return None
        ports = []  # type: List[int]
        part, look = (fresh[0][0], 1) if fresh else (again[0][0], again[0][2])
        while fresh and fresh[0][0] is part and len(ports) < count:
            _, first, last = fresh.popleft()
            end = min(last, first + count - len(ports) - 1)
            ports += range(first, end + 1)
            if end < last:
                fresh.appendleft((part, end + 1, last))
        if not ports:
            while again and again[0][0] is part and again[0][2] == look and len(ports) < count:
                ports.append(again.popleft()[1])
        return part, look, ports

    def is_taken(self):
        # type: () -> bool
        """Whether there is nothing to start just now."""
        return not self._fresh and not self.again

    def put_back(self, flow):
        # type: (Flow) -> None
        """A flow that could not be started for want of something of our own."""
        self.again.append(flow)
