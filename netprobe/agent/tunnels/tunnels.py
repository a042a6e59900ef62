"""The ends of tunnels on this host, each a thread in a network namespace of its own.

Only a thread can be in another namespace than the rest of the process. All of it ends with the
process, however that ends: the kernel then closes the last thread and descriptor of the namespace.
"""

import errno
import os
import queue
import socket
import threading
from collections import deque
from typing import Any, Deque, Dict, Optional, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..host.route import look_up_route
from ..wire.failures import name_of
from ..wire.host_messages import RouteOrder
from ..wire.tunnel_messages import (
    TunnelChecksums,
    TunnelChecksumsOrder,
    TunnelClosed,
    TunnelCloseOrder,
    TunnelOpened,
    TunnelOpenOrder,
    TunnelTried,
    TunnelTryOrder,
)
from .device import (
    TunnelError,
    ends_of,
    make_device,
    read_driver,
    remove_device,
    set_checksums,
)
from .trial import NOTHING, Answerer, Trial, try_tunnel

# A tunnel that its coordinator has forgotten.
LONGEST_S = 120.0

NO_TUNNEL = "no-tunnel"


class TunnelEnd(threading.Thread):
    """One end of a tunnel: its orders are carried out in its thread, one after the other."""

    def __init__(self, order: TunnelOpenOrder, results: "Results") -> None:
        threading.Thread.__init__(self, daemon=True)
        self._order = order
        self._results = results
        self._orders: "queue.Queue[Any]" = queue.Queue()

    def give(self, order: Any) -> None:
        """Let the thread carry out an order."""
        self._orders.put(order)

    def run(self) -> None:
        """Make the device, carry out orders until one closes the tunnel, and remove all."""
        answerer: Optional[Answerer] = None
        try:
            answer = self._open_end()
            if answer.failure is None and not self._order.first:
                answerer = Answerer(ends_of(self._order))
                answerer.start()
        except Exception as error:
            # A bug must not leave the coordinator without an answer.
            answer = TunnelOpened(self._order.id, NO_TUNNEL, repr(error), None, None)
        self._results.put(answer)
        if answer.failure is None:
            self._carry_out_orders()
            remove_device()
        if answerer is not None:
            answerer.close()

    def _open_end(self) -> TunnelOpened:
        order = self._order
        dev = look_up_route(RouteOrder(order.id, order.remote, order.local)).dev
        driver = read_driver(dev) if dev else None
        try:
            make_device(order)
        except TunnelError as error:
            return TunnelOpened(order.id, error.word, str(error), dev, driver)
        return TunnelOpened(order.id, None, "", dev, driver)

    def _carry_out_orders(self) -> None:
        while True:
            try:
                order = self._orders.get(timeout=LONGEST_S)
            except queue.Empty:
                return
            if isinstance(order, TunnelCloseOrder):
                # The answer follows when the thread, and with it the namespace, has gone.
                return
            if isinstance(order, TunnelTryOrder):
                self._results.put(TunnelTried(order.id, *self._try_out(order)))
            else:
                self._results.put(TunnelChecksums(order.id, self._set_checksums(order)))

    def _try_out(self, order: TunnelTryOrder) -> Trial:
        try:
            return try_tunnel(ends_of(self._order), order.bytes, order.tcp_only)
        except Exception as error:
            # A bug must not leave the coordinator without an answer.
            return NOTHING._replace(failure=repr(error))

    def _set_checksums(self, order: TunnelChecksumsOrder) -> Optional[str]:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                set_checksums(control, order.by_cpu)
        except OSError as error:
            return name_of(error.errno)
        return None


class Results:
    """What threads hand to the loop."""

    def __init__(self) -> None:
        self._found: Deque[Any] = deque()
        self.read_fd, self._write_fd = os.pipe()

    def put(self, answer: Any) -> None:
        """Hand over an answer; the loop wakes up."""
        self._found.append(answer)
        os.write(self._write_fd, b".")

    def take(self) -> Tuple[Any, ...]:
        """Take all that was handed over."""
        os.read(self.read_fd, 4096)
        found = []
        while self._found:
            found.append(self._found.popleft())
        return tuple(found)


class AgentTunnels:
    """Carries out the coordinator's orders about tunnels."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._ends: Dict[int, TunnelEnd] = {}
        self._results = Results()
        agent.loop.watch(self._results.read_fd, looping.READ, self._send_results)

    def open(self, order: TunnelOpenOrder) -> None:
        """Make an end of a tunnel."""
        end = self._ends[order.tunnel] = TunnelEnd(order, self._results)
        end.start()

    def try_out(self, order: TunnelTryOrder) -> None:
        """Send something through a tunnel."""
        end = self._ends.get(order.tunnel)
        if end is None:
            none = NOTHING._replace(failure=os.strerror(errno.ENOENT))
            self._agent.send(TunnelTried(order.id, *none))
        else:
            end.give(order)

    def set_checksums(self, order: TunnelChecksumsOrder) -> None:
        """Say who makes the checksums of what goes into a tunnel."""
        end = self._ends.get(order.tunnel)
        if end is None:
            self._agent.send(TunnelChecksums(order.id, name_of(errno.ENOENT)))
        else:
            end.give(order)

    def drop(self, order: TunnelCloseOrder) -> None:
        """Remove a tunnel; the answer comes when it is gone."""
        end = self._ends.pop(order.tunnel, None)
        if end is None:
            self._agent.send(TunnelClosed(order.id))
            return
        end.give(order)
        threading.Thread(target=self._await_end, args=(end, order.id), daemon=True).start()

    def close(self) -> None:
        """Let all go; what hangs ends with the process."""
        for end in self._ends.values():
            end.give(TunnelCloseOrder(0, 0))
        self._ends.clear()
        self._agent.loop.unwatch(self._results.read_fd)

    def _await_end(self, end: TunnelEnd, identity: int) -> None:
        end.join()
        self._results.put(TunnelClosed(identity))

    def _send_results(self, _events: int) -> None:
        for answer in self._results.take():
            self._agent.send(answer)
