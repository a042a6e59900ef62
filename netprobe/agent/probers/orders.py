"""A probe order while it is worked on: its ports, taken lazily, and what is asked again.

What became of an order's destinations, on its way: the same fate is told once.

The engine of each protocol; its module is imported when its first order comes.
"""

from collections import deque
from importlib import import_module
from itertools import chain
from operator import itemgetter
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..core.agent import AgentCore
from ..core.loop import Timer
from ..core.pump import Window
from ..core.ranges import PortSet
from ..net.sockets import ProbeTarget, target_of
from ..wire.answers import Done, ProbeOutcomes
from ..wire.orders import ProbeOrder, list_singles
from ..wire.parts import OutcomeKind, OutcomeRun, ProbeBlock
from ..wire.templates import Template
from .outcomes import FLUSH_PORTS, FLUSH_S, Outcomes, PortRun

# So long one destination's outcomes wait for those of others.
GATHER_S = 0.02

# Module and class. Echo orders are messages of their own and have their engine in main.py.
ENGINES = {
    "tcp": (".tcp.engine", "TcpEngine"),
    "udp": (".datagram.udp", "UdpEngine"),
    "ipproto": (".datagram.udp", "RawEngine"),
}


class PlaceReport(NamedTuple):
    """Outcomes of the destination at one place of an order, from 1."""

    place: int
    kinds: List[OutcomeKind]
    runs: List[PortRun]
    own_port: Optional[int]


class OrderReport:
    """The outcomes of one order, of so many destinations."""

    def __init__(self, agent: AgentCore, identity: int, count: int = 1) -> None:
        self.id = identity
        self._agent = agent
        self._is_wide = count > 1
        self._left = count
        self._waiting: List[PlaceReport] = []
        self._timer: Optional[Timer] = None
        # Its destinations that wait for a turn; all of them share the turns of one order.
        self.line: Deque[Any] = deque()

    def tell(self, told: PlaceReport) -> None:
        """Report outcomes: at once where there is a single destination, else soon."""
        self._waiting.append(told)
        if not self._is_wide:
            self._send_waiting()
        elif self._timer is None:
            self._timer = self._agent.loop.call_later(GATHER_S, self._send_waiting)

    def end(self, cancelled: bool) -> None:
        """Note that one destination has no more outcomes; the last one ends the order."""
        self._left -= 1
        if not self._left:
            self._send_waiting()
            self._agent.send(Done(self.id, cancelled))

    def _send_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        alike: Dict[Any, List[PlaceReport]] = {}
        for told in self._waiting:
            runs = [(first, last, kind, looks) for first, last, kind, _, looks in told.runs]
            fate = (*told.kinds, *runs, told.own_port is None)
            alike.setdefault(fate, []).append(told)
        self._waiting = []
        for some in alike.values():
            self._agent.send(_join_reports(self.id, some))


def _join_reports(identity: int, alike: List[PlaceReport]) -> ProbeOutcomes:
    """Give one message for destinations with the same fate: only round trips and ports differ."""
    alike.sort(key=itemgetter(0))
    runs = [
        OutcomeRun(first, last, kind, [told.runs[index][3] for told in alike], looks)
        for index, (first, last, kind, _, looks) in enumerate(alike[0].runs)
    ]
    return ProbeOutcomes(
        identity,
        PortSet(told.place for told in alike).pairs(),
        alike[0].kinds,
        runs,
        [told.own_port for told in alike if told.own_port is not None],
    )


def submit_probe(agent: AgentCore, order: ProbeOrder) -> None:
    """Start a probe order; its outcomes and ``Done`` follow."""
    module, name = ENGINES[order.proto]
    engine = agent.part(getattr(import_module(module, __package__), name))
    singles = list_singles(order)
    report = OrderReport(agent, order.id, len(singles))
    for place, one in enumerate(singles, 1):
        engine.submit(one, report, place)


class ProbePart(NamedTuple):
    """One block of an order: its mode, and the template that it sends (None: no bytes)."""

    order: Any  # the engine's own subclass of RunningOrder
    mode: str
    template: Optional[Template]


# One port of a part, and which look at it this is; looks count from 1.
PortLook = Tuple[ProbePart, int, int]
# First and last port of a part.
PartRange = Tuple[ProbePart, int, int]
# What starts in one turn: ports of one part, which are at the same look.
Turn = Tuple[ProbePart, int, Sequence[int]]


class RunningOrder:
    """Ports that are still to be asked, of one source and one destination: the ``place``-th of an
    order, which ``report`` tells of."""

    # How long an outcome may wait for others that go with it.
    flush_s = FLUSH_S

    def __init__(
        self,
        agent: AgentCore,
        order: ProbeOrder,
        report: Optional[OrderReport] = None,
        place: int = 1,
    ) -> None:
        self.id = order.id
        self._report = report or OrderReport(agent, order.id)
        self._place = place
        self.line = self._report.line
        self.target: ProbeTarget = target_of(order.dst, order.src)
        self.host = order.host
        self.looks = max(1, order.looks)
        self.first_ms = order.first_ms
        self.look_ms = order.look_ms
        self.look_s = order.look_ms / 1000.0
        self.pace = order.pace
        self.min_ttl = order.min_ttl
        self.ttl = order.ttl
        self.size = order.size
        self.sport = order.sport
        self.outcomes = Outcomes(self._tell_outcomes)
        self._flushed_at = agent.loop.now()
        # Whether it waits in its line for a turn.
        self.queued = False
        self.again: Deque[PortLook] = deque()
        # Looks that were taken once more, because of pauses: port and look.
        self._repeated: Set[Tuple[int, int]] = set()
        # Ports that nobody has asked yet.
        self._fresh: Deque[PartRange] = deque(self._list_ranges(agent, order.blocks))
        self.pending = sum(last - first + 1 for _, first, last in self._fresh)

    def _list_ranges(self, agent: AgentCore, blocks: List[ProbeBlock]) -> Iterator[PartRange]:
        for block in blocks:
            # Templates are looked up now: a later order may bring other ones under the same number.
            template = agent.templates[block.template] if block.template else None
            part = ProbePart(self, block.mode, template)
            # An IP protocol has no ports; its block is one probe.
            for first, last in block.ports or [(0, 0)]:
                yield part, first, last

    def take(self, count: int) -> List[PortLook]:
        """Up to ``count`` ports to start: those never asked first, then those asked again."""
        taken: List[PortLook] = []
        while len(taken) < count:
            turn = self.take_alike(count - len(taken))
            if turn is None:
                break
            part, look, ports = turn
            taken += [(part, port, look) for port in ports]
        return taken

    def take_alike(self, count: int) -> Optional[Turn]:
        """Up to ``count`` ports of one part and look; None where there is nothing to start."""
        if self._fresh:
            part = self._fresh[0][0]
            return part, 1, self._take_fresh(part, count)
        if self.again:
            part, _, look = self.again[0]
            return part, look, list(self._take_again(part, look, count))
        return None

    def _take_fresh(self, part: ProbePart, count: int) -> Sequence[int]:
        taken: List[Sequence[int]] = []
        while count and self._fresh and self._fresh[0][0] is part:
            _, first, last = self._fresh.popleft()
            end = min(last, first + count - 1)
            if end < last:
                self._fresh.appendleft((part, end + 1, last))
            taken.append(range(first, end + 1))
            count -= len(taken[-1])
        return taken[0] if len(taken) == 1 else list(chain(*taken))

    def _take_again(self, part: ProbePart, look: int, count: int) -> Iterator[int]:
        while count and self.again and self.again[0][0] is part and self.again[0][2] == look:
            yield self.again.popleft()[1]
            count -= 1

    def follow(self, look: int, port: int, spoilt: bool) -> Optional[int]:
        """Give the look that follows a silent one; None after the last. One that pauses have spoilt
        is taken once more."""
        if spoilt and (port, look) not in self._repeated:
            self._repeated.add((port, look))
            return look
        return look + 1 if look < self.looks else None

    def is_taken(self) -> bool:
        """Tell whether there is nothing to start just now."""
        return not self._fresh and not self.again

    def flush_outcomes(self, now: float) -> None:
        """Report the outcomes that there are, unless they may still wait for more."""
        if now - self._flushed_at > self.flush_s or len(self.outcomes) >= FLUSH_PORTS:
            self._flushed_at = now
            self.outcomes.flush()

    def finish(self, cancelled: bool) -> None:
        """Report the last outcomes, and the end of the work at this destination."""
        self.outcomes.flush()
        self._report.end(cancelled)

    def is_part_of(self, order_id: int) -> bool:
        """Tell whether the order with this id asks for it."""
        return self._report.id == order_id

    def _tell_outcomes(
        self, kinds: List[OutcomeKind], runs: List[PortRun], own_port: Optional[int]
    ) -> None:
        self._report.tell(PlaceReport(self._place, kinds, runs, own_port))


class TurnScheduler:
    """The orders that still have something to start; their lines take turns."""

    def __init__(self, agent: AgentCore, window: int) -> None:
        self._agent = agent
        self._pause_until = 0.0
        self.window = Window(window)
        self.lines: Deque[Deque[Any]] = deque()

    def add(self, order: RunningOrder) -> None:
        """Let an order take its turns."""
        if not order.queued:
            order.queued = True
            if not order.line:
                self.lines.append(order.line)
            order.line.append(order)

    def remove(self, order: RunningOrder) -> None:
        """Start nothing more of an order."""
        if order.queued:
            order.queued = False
            order.line.remove(order)
            if not order.line:
                self.lines.remove(order.line)

    def give_back(self, order: RunningOrder, others: int) -> None:
        """Put an order that has more to start back into its line, behind so many others."""
        if order.is_taken():
            self.remove(order)
        else:
            order.line.remove(order)
            order.line.insert(others, order)

    def ask_later(self, order: RunningOrder, port_look: PortLook) -> None:
        """Ask a port again when its order has its next turn: this host was short of something, or
        another look is due."""
        order.again.append(port_look)
        self.add(order)

    def rotate_orders(self) -> Iterator[Any]:
        """Give every order once, line by line. A line that is given moves to the end, so that one
        large order does not hold up the others."""
        for _ in range(len(self.lines)):
            self.lines.rotate(-1)
            yield from self.lines[-1]
