"""Whose turn it is: which flows of which datagram order may start now."""

from collections import deque
from typing import Deque, List, Optional, Tuple

from ...core.agent import AgentCore
from ...core.pump import Window
from ..orders import PortLook
from .orders import DatagramOrder

WINDOW = 256
# What came is read after so many packets: a round trip looks longer by the time that these take.
CHUNK = 32
PAUSE_S = 0.05


class DatagramScheduler:
    """The orders that still have flows to start, within the window, the rate and their pace."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._queue: Deque[DatagramOrder] = deque()
        self._pause_until = 0.0
        self.window = Window(WINDOW)

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, order: DatagramOrder) -> None:
        """Let an order take its turns."""
        if not order.queued:
            order.queued = True
            self._queue.append(order)

    def remove(self, order: DatagramOrder) -> None:
        """Start nothing more of an order."""
        if not order.queued:
            return
        order.queued = False
        # It mostly has just had its turn, and stands last: thousands of orders need no search.
        if self._queue[-1] is order:
            self._queue.pop()
        else:
            self._queue.remove(order)

    def ask_later(self, order: DatagramOrder, flow: PortLook) -> None:
        """Start a flow again when its order has its next turn."""
        order.put_back(flow)
        self.add(order)

    def clear(self) -> None:
        """Forget every order."""
        self._queue.clear()

    def pause(self, now: float) -> None:
        """Start nothing for a moment: our own host has no room for packets."""
        self._pause_until = now + PAUSE_S

    def take_turn(self, now: float) -> Optional[Tuple[DatagramOrder, List[PortLook]]]:
        """The next chunk of one order; None where nothing may start now.

        Orders take turns, so that one large order does not hold up the others.
        """
        room = min(CHUNK, self.window.room())
        if room <= 0 or now < self._pause_until or not self._agent.may_start():
            return None
        for _ in range(len(self._queue)):
            order = self._queue[0]
            self._queue.rotate(-1)
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
        """The next flows of an order; it leaves the queue when it has none."""
        flows: List[PortLook] = []
        if order.pacer is None:
            flows = order.take(count)
        else:
            while len(flows) < count and not order.is_taken() and order.pacer.take(now):
                flows += order.take(1)
        if order.is_taken():
            self.remove(order)
        return flows
