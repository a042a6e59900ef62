"""A probe order while it is worked on: its ports, taken lazily, and what is asked again."""

from collections import deque
from itertools import chain
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..net.sockets import Target, target_of
from ..wire.frames import Template
from .outcomes import FLUSH_PORTS, FLUSH_S, Outcomes


class Part(NamedTuple):
    """One block of an order: its mode and what it sends (None: nothing)."""

    order: Any  # the engine's own subclass of Order
    mode: str
    template: Optional[Template]


Flow = Tuple[Part, int, int]
Range = Tuple[Part, int, int]
# What starts in one turn: flows of one part and look, by their ports.
Turn = Tuple[Part, int, Sequence[int]]


class Order:
    """Ports that are still to be asked, of one source and one destination.

    A flow is (part, port, look); looks count from 1.
    """

    # Outcomes that are ready wait for others at most so long.
    flush_s = FLUSH_S

    def __init__(self, agent: Any, message: Dict[str, Any]) -> None:
        self.id: int = message["id"]
        self.target: Target = target_of(message["dst"], message.get("src"))
        self.host: Optional[int] = message.get("host")
        self.looks = max(1, int(message.get("looks") or 1))
        self.first_ms: Optional[int] = message.get("first_ms")
        self.look_ms = int(message["look_ms"])
        self.look_s = self.look_ms / 1000.0
        self.pace: Optional[Tuple[int, float]] = message.get("pace")
        self.min_ttl: Optional[int] = message.get("min_ttl")
        self.ttl: Optional[int] = message.get("ttl")
        self._send = agent.send
        self.outcomes = Outcomes(agent.send, self.id)
        self._flushed_at = agent.loop.now()
        # Whether it waits in its engine's queue for a turn.
        self.queued = False
        self.again: Deque[Flow] = deque()
        # (part, first, last): ranges that nobody has asked yet.
        self._fresh: Deque[Range] = deque(self._ranges(agent, message["blocks"]))
        # A block without ports (ICMP echo, raw protocols) is one flow.
        self.pending = sum(
            sum(last - first + 1 for first, last in block["ports"]) or 1
            for block in message["blocks"]
        )

    def _ranges(self, agent: Any, blocks: List[Dict[str, Any]]) -> Iterator[Range]:
        for block in blocks:
            # Templates are looked up now: a later order may bring other ones under the same id.
            template = agent.templates[block["template"]] if block.get("template") else None
            part = Part(self, block["mode"], template)
            for first, last in block["ports"] or ((0, 0),):
                yield part, first, last

    def take(self, count: int) -> List[Flow]:
        """Up to ``count`` flows to start: those never asked first, then those asked again."""
        flows: List[Flow] = []
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

    def take_alike(self, count: int) -> Optional[Turn]:
        """Up to ``count`` flows of one part and look; None where there is nothing to start."""
        if self._fresh:
            part = self._fresh[0][0]
            return part, 1, self._fresh_ports(part, count)
        if self.again:
            part, _, look = self.again[0]
            return part, look, list(self._again_ports(part, look, count))
        return None

    def _fresh_ports(self, part: Part, count: int) -> Sequence[int]:
        taken: List[Sequence[int]] = []
        while count and self._fresh and self._fresh[0][0] is part:
            _, first, last = self._fresh.popleft()
            end = min(last, first + count - 1)
            if end < last:
                self._fresh.appendleft((part, end + 1, last))
            taken.append(range(first, end + 1))
            count -= len(taken[-1])
        return taken[0] if len(taken) == 1 else list(chain(*taken))

    def _again_ports(self, part: Part, look: int, count: int) -> Iterator[int]:
        while count and self.again and self.again[0][0] is part and self.again[0][2] == look:
            yield self.again.popleft()[1]
            count -= 1

    def is_taken(self) -> bool:
        """Whether there is nothing to start just now."""
        return not self._fresh and not self.again

    def put_back(self, flow: Flow) -> None:
        """A flow that could not be started for want of something of our own."""
        self.again.append(flow)

    def flush_outcomes(self, now: float) -> None:
        """Report what is ready, unless it may still wait for more."""
        if now - self._flushed_at > self.flush_s or len(self.outcomes) >= FLUSH_PORTS:
            self._flushed_at = now
            self.outcomes.flush()

    def say_done(self, cancelled: bool) -> None:
        """Report what is left, and the end of the order."""
        self.outcomes.flush()
        self._send({"t": "done", "id": self.id, "cancelled": cancelled})
