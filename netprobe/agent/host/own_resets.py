"""Which connections this host itself resets: its own firewall rejects what would leave it.

Such a reset comes to the socket through the loopback device, and a neighbour's through another one
(docs/network-facts.md, section 2). So a reset while loopback has counted no packet came from
outside, and no right is needed to know that. Ports are asked some at a time; where loopback has
counted something, other programs may use it, too: then each port is asked alone, in turn with
moments as long in which nothing is asked.
"""

import errno
import select
import socket
import time
from collections import deque
from typing import Deque, Dict, List, NamedTuple, Sequence, Set, Tuple

from ..core.agent import AgentCore
from ..core.ranges import PortSet, each
from ..net.sockets import ProbeTarget, close_with_reset, open_probe, target_of
from ..wire.host_messages import OwnResets, OwnResetsOrder
from .counters import count_loopback_packets

# So few sockets are open at once that any agent has room for them.
TOGETHER = 16
# A neighbour answers sooner, and a loop that stands still for longer than this delays others.
LOOK_S = 0.05
# Chance explains a port whose resets always moved the counter in less of all cases than this.
CHANCE = 1e-5
# What this many looks cannot tell is left undecided: loopback is hardly ever still.
MOST_LOOKS = 40


class Look(NamedTuple):
    """Connects that were made together: the ports that were reset, the packets that loopback has
    counted meanwhile, and how long that took in seconds."""

    reset: Set[int]
    counted: int
    took_s: float


class OwnResetsSearch:
    """Tells of ports that reset connections whether this host makes the resets itself."""

    def __init__(self, agent: AgentCore, order: OwnResetsOrder) -> None:
        self._agent = agent
        self._id = order.id
        self._target = target_of(order.dst, order.src)
        self._fresh: Deque[int] = deque(each(order.ports))
        # Ports that are asked alone, and how many of their resets have moved the counter.
        self._alone: Deque[int] = deque()
        self._moved: Dict[int, int] = {}
        self._own = PortSet()
        # Moments without a question, and those in which loopback was used nevertheless.
        self._moments = 0
        self._busy = 0

    def take_step(self) -> None:
        """Ask the next ports, and let the loop go on; the answer follows the last ones."""
        try:
            self._ask_next()
        except OSError:
            # Without a descriptor or the counter nothing can be told of what is left.
            self._fresh.clear()
            self._alone.clear()
        if self._fresh or self._alone:
            wait_s = self._agent.rate.wait_s(self._agent.loop.now())
            self._agent.loop.call_later(wait_s, self.take_step)
        else:
            self._agent.send(OwnResets(self._id, self._own.pairs()))

    def _ask_next(self) -> None:
        wanted = min(TOGETHER, len(self._fresh)) or 1
        granted = self._agent.rate.take(wanted, self._agent.loop.now())
        if not granted:
            return
        if self._fresh:
            ports = [self._fresh.popleft() for _ in range(min(granted, len(self._fresh)))]
            look = connect_to(self._target, ports)
            if look.counted:
                self._alone.extend(port for port in ports if port in look.reset)
        else:
            self._ask_alone(self._alone.popleft())

    def _ask_alone(self, port: int) -> None:
        look = connect_to(self._target, [port])
        if not look.counted or port not in look.reset:
            return
        self._watch_moment(look.took_s)
        moved = self._moved[port] = self._moved.get(port, 0) + 1
        # The rule of succession: a share that was never seen is not zero.
        busy_share = (self._busy + 1) / (self._moments + 2)
        if busy_share**moved <= CHANCE:
            self._own.add(port)
        elif self._moments < MOST_LOOKS or busy_share**MOST_LOOKS <= CHANCE:
            self._alone.append(port)

    def _watch_moment(self, length_s: float) -> None:
        before = count_loopback_packets()
        end = time.monotonic() + length_s
        while time.monotonic() < end:
            pass  # a sleep takes much longer than what it is to be held against
        self._moments += 1
        self._busy += count_loopback_packets() > before


def find_own_resets(agent: AgentCore, order: OwnResetsOrder) -> None:
    """Answer with the ports whose resets this host makes itself."""
    OwnResetsSearch(agent, order).take_step()


def connect_to(target: ProbeTarget, ports: Sequence[int]) -> Look:
    """Connect to these ports at once, and wait until all are answered, for LOOK_S at most.

    Raises OSError where there is no descriptor, or no counter.
    """
    socks: List[Tuple[int, socket.socket]] = []
    try:
        for port in ports:
            socks.append((port, open_probe(target, socket.SOCK_STREAM)))
        before, began = count_loopback_packets(), time.monotonic()
        reset = _await_resets(target, socks, began + LOOK_S)
        return Look(reset, count_loopback_packets() - before, time.monotonic() - began)
    finally:
        for _, sock in socks:
            close_with_reset(sock)


def _await_resets(
    target: ProbeTarget, socks: List[Tuple[int, socket.socket]], deadline: float
) -> Set[int]:
    waiting = select.poll()
    asked = {}
    reset = set()
    for port, sock in socks:
        failure = sock.connect_ex(target.sockaddr(port))
        if failure == errno.EINPROGRESS:
            asked[sock.fileno()] = port, sock
            waiting.register(sock, select.POLLOUT)
        elif failure == errno.ECONNREFUSED:
            reset.add(port)
    while asked and time.monotonic() < deadline:
        left_ms = max(0.0, deadline - time.monotonic()) * 1000
        for fd, _ in waiting.poll(left_ms):
            waiting.unregister(fd)
            port, sock = asked.pop(fd)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                reset.add(port)
    return reset
