"""What became of an order's destinations, on its way: the same fate is told once.

The engine of each protocol; its module is imported when its first order comes.
"""

from importlib import import_module
from operator import itemgetter
from typing import Any, Dict, List, NamedTuple, Optional

from ..core.agent import AgentCore
from ..core.loop import Timer
from ..core.ranges import PortSet
from ..wire.answers import Done, ProbeOutcomes
from ..wire.orders import ProbeOrder, list_singles
from ..wire.parts import OutcomeKind, OutcomeRun
from .outcomes import PortRun

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
