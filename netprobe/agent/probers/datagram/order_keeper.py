"""The orders of a datagram engine and their sockets, from the message to ``Done``.

Whose turn it is: which flows of which datagram order may start now.
"""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from ...core.agent import AgentCore
from ...core.pump import SHORT_S, Pump, short_for_long
from ...net.sockets import file_limit
from ...wire.failures import is_transient, name_of
from ...wire.parts import OutcomeKind
from ..orders import OrderReport, PortLook, TurnScheduler
from ..outcomes import kind
from .orders import Channel, DatagramOrder, PendingFlow

MOST_ORDERS = 2000

WINDOW = 256
# What came is read after so many packets: a round trip looks longer by the time that these take.
CHUNK = 32
PAUSE_S = 0.05


class OrderKeeper:
    """Starts and ends orders; an order without a socket waits, or all its flows fail alike."""

    def __init__(self, agent: AgentCore) -> None:
        self.agent = agent
        self.now = agent.loop.now
        self.orders: Dict[int, DatagramOrder] = {}
        # Orders that wait for a socket, and since when none could be opened.
        self._backlog: Deque[DatagramOrder] = deque()
        self.short_since: Optional[float] = None
        self._scheduler = DatagramScheduler(agent)
        self._pump = Pump(agent.loop, self.run)

    # What an engine says

    def open_socket(self, order: DatagramOrder) -> socket.socket:
        """Open a socket for an order. Raises OSError."""
        raise NotImplementedError

    def open_failure(self, error: OSError) -> str:
        """Give the failure of an order whose socket could not be opened."""
        return name_of(error.errno)

    def run(self) -> None:
        """Do what is due."""
        raise NotImplementedError

    def serve_channel(self, channel: Channel) -> None:
        """Read what has arrived."""
        raise NotImplementedError

    # Orders

    def submit(self, order: Any, report: Optional[OrderReport] = None, place: int = 1) -> None:
        """Start the work at one destination; its outcomes and ``Done`` follow. Raises OSError for a
        wrong address."""
        self.take_order(DatagramOrder(self.agent, order, report, place))

    def take_order(self, order: DatagramOrder) -> None:
        """Start an order now or when there is a socket for it."""
        if self.is_full():
            self._backlog.append(order)
        else:
            self._start_order(order)

    def is_full(self) -> bool:
        """Tell whether new orders must wait until others are done."""
        return len(self.orders) >= most_orders()

    def _start_order(self, order: DatagramOrder) -> bool:
        """Tell whether it could start; else it waits for a descriptor."""
        try:
            self.open_channel(order)
        except OSError as error:
            if is_transient(error.errno) and not short_for_long(self, self.now()):
                self._backlog.appendleft(order)
                self._pump.wake(SHORT_S)
                return False
            self.orders[order.id] = order
            self.refuse_order(order, error)
            return True
        self.short_since = None
        self.orders[order.id] = order
        if order.pending:
            self._scheduler.add(order)
            self._pump.wake(0.0)
        else:
            self.finish_order(order)
        return True

    def start_backlog(self) -> None:
        """Start what had to wait, as far as it can now."""
        while self._backlog and not self.is_full():
            if not self._start_order(self._backlog.popleft()):
                return

    def open_channel(self, order: DatagramOrder) -> None:
        """Give an order its socket. Raises OSError."""
        whole = order.size is not None
        sock = self.open_socket(order)
        order.channel = Channel(self.agent.loop, sock, whole, self.serve_channel)
        order.channel.order = order

    def close_channel(self, order: DatagramOrder) -> None:
        """Take its socket from an order, which may have none."""
        if order.channel is not None:
            order.channel.close()
            order.channel = None

    def refuse_order(self, order: DatagramOrder, error: OSError) -> None:
        """Give every flow of an order that cannot be asked the same outcome."""
        what = kind("bind", self.open_failure(error))
        while not order.is_taken():
            for _, port, look in order.take(CHUNK):
                self.report(order, port, what, None, look)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        waiting = [each for each in self._backlog if each.is_part_of(order_id)]
        for order in waiting:
            self._backlog.remove(order)
            order.finish(True)
        found = [each for each in self.orders.values() if each.is_part_of(order_id)]
        for order in found:
            for flow in list(order.out.values()):
                self.forget_flow(order, flow)
            self.finish_order(order, True)
        return bool(waiting or found)

    def resume(self) -> None:
        """Start new probes again: the agent's output has drained."""
        if self._scheduler.lines:
            self._pump.wake(0.0)

    def close(self) -> None:
        """Close every socket; outcomes of what was out are lost."""
        for order in self.orders.values():
            self.close_channel(order)
        self.orders = {}
        self._backlog.clear()
        self._scheduler.lines.clear()
        self._pump.stop()

    def finish_order(self, order: DatagramOrder, cancelled: bool = False) -> None:
        self._scheduler.remove(order)
        self.close_channel(order)
        del self.orders[order.id]
        order.finish(cancelled)
        if self._backlog:
            self._pump.wake(0.0)

    def report(
        self,
        order: DatagramOrder,
        port: int,
        what: OutcomeKind,
        rtt_s: Optional[float],
        look: int,
        packets: Optional[int] = None,
    ) -> None:
        """Report the final outcome of one flow."""
        order.outcomes.add(port, what, rtt_s, look, packets)
        order.pending -= 1
        if not order.pending:
            self.finish_order(order)

    def forget_flow(self, order: DatagramOrder, flow: PendingFlow) -> None:
        """Note that a flow is no longer out."""
        del order.out[flow.port]
        self._scheduler.window.answered(flow.batch)


def most_orders() -> int:
    """How many orders, each with a socket, may be worked on at once: a part of the soft limit."""
    return max(8, min(MOST_ORDERS, file_limit() // 8))


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
                self.give_back(order, len(order.line))
                return order, flows
        return None

    def _take_flows(self, order: DatagramOrder, count: int, now: float) -> List[PortLook]:
        """Take the next flows of an order."""
        flows: List[PortLook] = []
        if order.pacer is None:
            flows = order.take(count)
        else:
            while len(flows) < count and not order.is_taken() and order.pacer.take(1, now):
                flows += order.take(1)
        return flows
