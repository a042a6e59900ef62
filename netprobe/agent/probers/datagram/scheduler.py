"""Whose turn it is: which flows of which datagram order may start now."""

from typing import List, Optional, Tuple

from ...core.agent import AgentCore
from ..orders import PortLook, TurnScheduler
from .orders import DatagramOrder

WINDOW = 256
# What came is read after so many packets: a round trip looks longer by the time that these take.
CHUNK = 32
PAUSE_S = 0.05


class DatagramScheduler(TurnScheduler):
    """Starts flows within the window, the rate and their orders' pace."""

    def __init__(self, agent: AgentCore) -> None:
        TurnScheduler.__init__(self, agent, WINDOW)

    def pause(self, now: float) -> None:
        """Start nothing for a moment: our own host has no room for packets."""
        self._pause_until = now + PAUSE_S

    def take_turn(self, now: float) -> Optional[Tuple[DatagramOrder, List[PortLook]]]:
        """Take the next chunk of one order; None where nothing may start now."""
        room = min(CHUNK, self.window.room())
        if room <= 0 or now < self._pause_until or not self._agent.may_start():
            return None
        for order in self.rotate_orders():
            if order.hold_until > now and not order.answered:
                continue
            count = self._agent.rate.take(room, now)
            flows = self._take_flows(order, count, now)
            self._agent.rate.give_back(count - len(flows))
            if flows:
                order.hold_until = 0.0 if order.hold_until else now + order.hold_s
                return order, flows
        return None

    def _take_flows(self, order: DatagramOrder, count: int, now: float) -> List[PortLook]:
        """Take the next flows of an order; it leaves the queue when it has none."""
        flows: List[PortLook] = []
        if order.pacer is None:
            flows = order.take(count)
        else:
            while len(flows) < count and not order.is_taken() and order.pacer.take(1, now):
                flows += order.take(1)
        if order.is_taken():
            self.remove(order)
        return flows
