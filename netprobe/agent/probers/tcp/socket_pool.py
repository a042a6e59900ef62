"""The TCP engine's sockets: used ones connect again, and the host's limit is kept.

The connects that the TCP engine has out, in batches, and their order with its deadlines.
"""

import select
import socket
from collections import OrderedDict, deque
from itertools import repeat
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from ...core.agent import AgentCore
from ...core.pump import YoungBatch
from ...net.sockets import (
    SynState,
    close_with_reset,
    disconnect,
    disconnect_is_thorough,
    is_own,
    open_probe,
    set_ttl,
    tcp_socket_limit,
)
from ...wire.failures import until_error
from ...wire.orders import ProbeOrder
from ...wire.parts import OutcomeKind
from ..orders import OrderReport, ProbePart, RunningOrder

EVENTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
# How many ended connections may wait until the peer ends too (also as a share of all sockets), and
# how long. Waiting pays only for many connections: the first few are simply closed.
MOST_PARTING = 256
PARTING_SHARE = 0.25
PARTING_S = 0.5
FEW = 256

ShelfKey = Tuple[Any, ...]
Shelf = List[socket.socket]

# One connect that is out: its batch, and its place there.
PendingConnect = Tuple["ConnectBatch", int]

# The methods as functions, for map(): a chunk of connects is one loop in C.
connect_ex = socket.SocketType.connect_ex
fileno = socket.SocketType.fileno
_shutdown = socket.SocketType.shutdown


class SocketPool:
    """Sockets registered once with the engine's epoll, edge-triggered, and used again."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._shelves: Dict[ShelfKey, Shelf] = {}
        self._limit = 0
        # Sockets that have sent their FIN, by descriptor, the oldest first.
        self._parting: "OrderedDict[int, Tuple[float, Shelf, socket.socket]]" = OrderedDict()
        self._parted = 0
        self.open = 0

    def measure(self) -> None:
        """Take the limit from the soft limit of open files as it is now."""
        self._limit = tcp_socket_limit()

    def shelf(self, order: RunningOrder) -> Shelf:
        """Give the idle sockets with an order's family, source address, TTLs and segment size."""
        target = order.target
        where = (target.family, target.source, target.scope)
        kind = (order.min_ttl, order.ttl, order.size, order.sport)
        return self._shelves.setdefault(where + kind, [])

    def room(self) -> int:
        """Tell how many more connects may be out."""
        return self._limit - self.open + sum(len(shelf) for shelf in self._shelves.values())

    def shrink(self) -> None:
        """Open no more sockets than now: the host has no more descriptors."""
        self._limit = max(1, self.open)

    def take(self, order: RunningOrder) -> socket.socket:
        """Take a fresh socket. Raises OSError."""
        if self.open >= self._limit:
            # There is room only because sockets with another source address are idle.
            for shelf in self._shelves.values():
                if shelf:
                    self.drop(shelf.pop())
                    break
        port = order.sport or 0
        sock = open_probe(order.target, socket.SOCK_STREAM, 0, order.min_ttl, port)
        if order.ttl is not None:
            set_ttl(sock, order.ttl)
        self.open += 1
        self._epoll.register(sock.fileno(), EVENTS)
        return sock

    def drop(self, sock: socket.socket) -> None:
        """Close a socket; an open connection ends by a FIN."""
        self.open -= 1
        sock.close()

    def part(self, shelf: Shelf, socks: List[socket.socket], now: float) -> None:
        """End open connections by a FIN, and keep the sockets once the peer has ended too."""
        parting = self._parting
        most = min(MOST_PARTING, int(self._limit * PARTING_SHARE))
        for sock in socks:
            self._parted += 1
            if self._parted <= FEW or len(parting) >= most or not disconnect_is_thorough():
                self.drop(sock)
                continue
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                self.drop(sock)  # the peer's reset was faster
            else:
                parting[sock.fileno()] = (now, shelf, sock)

    def hear(self, events: List[Tuple[int, int]]) -> None:
        """Take back the sockets whose peer has ended the connection too."""
        parting = self._parting
        if not parting:
            return
        fds = [fd for fd, mask in events if mask & select.EPOLLHUP and fd in parting]
        for fd, failed in zip(fds, disconnect(fds)):
            _, shelf, sock = parting.pop(fd)
            if failed:
                self.reset(sock)
            else:
                shelf.append(sock)

    def age(self, now: float) -> None:
        """Close sockets that have waited long enough for the peer."""
        parting = self._parting
        while parting and now - next(iter(parting.values()))[0] > PARTING_S:
            self.drop(parting.popitem(last=False)[1][2])

    def reset(self, sock: socket.socket) -> None:
        """Close a socket; an open connection ends by a reset."""
        self.open -= 1
        close_with_reset(sock)

    def recycle(self, shelf: Shelf, sock: socket.socket) -> None:
        """Reset an open connection and keep its socket, where that can be done."""
        if disconnect([sock.fileno()]) == [0]:
            shelf.append(sock)
        else:
            self.reset(sock)

    def call_off(self, shelf: Shelf, socks: List[socket.socket]) -> None:
        """End connects that are out, and keep their sockets."""
        # Of a socket that is connecting shutdown() does what connect(AF_UNSPEC) does.
        done = len(until_error(map(_shutdown, socks, repeat(socket.SHUT_RDWR))))
        shelf.extend(socks[:done])
        if done < len(socks):
            self.drop(socks[done])
            self.call_off(shelf, socks[done + 1 :])

    def empty(self) -> None:
        """Close the idle sockets."""
        while self._parting:
            self.drop(self._parting.popitem()[1][2])
        for shelf in self._shelves.values():
            while shelf:
                self.drop(shelf.pop())


class ConnectBatch(YoungBatch):
    """Connects of one part and look that were started together, as columns.

    Connects of a batch usually end together with the same result and are then handled as one group.
    """

    __slots__ = (
        "_indices", "_started", "_step_s", "addresses", "fds", "look", "part", "ports", "socks",
    )  # fmt: skip

    def __init__(
        self, part: ProbePart, look: int, ports: Sequence[int], socks: List[socket.socket]
    ) -> None:
        YoungBatch.__init__(self, len(socks))
        self.part = part
        self.look = look
        self.ports = ports
        self.socks = socks
        self.addresses: List[Tuple[Any, ...]] = part.order.target.addresses(ports)
        self.fds = list(map(fileno, socks))
        self._started = self._step_s = 0.0
        self._indices: Optional[Dict[int, int]] = None

    def __len__(self) -> int:
        return len(self.fds)

    def spread(self, begun: float, ended: float) -> None:
        """They were started between these two looks at the clock."""
        self._started = begun
        self._step_s = (ended - begun) / len(self.fds)

    def started(self, index: float) -> float:
        """When one went out, in seconds of ``Loop.now``."""
        return self._started + self._step_s * index

    def indices(self, fds: Sequence[int]) -> Sequence[int]:
        """The indices of the connects with these descriptors, in order; none may occur twice."""
        if len(fds) == len(self.fds):
            return range(len(fds))
        if self._indices is None:
            self._indices = {fd: index for index, fd in enumerate(self.fds)}
        found = self._indices
        return sorted(found[fd] for fd in fds)


def pick(column: Any, indices: Sequence[int]) -> Any:
    """Give the values of a column at these indices, which are in order."""
    return column if len(indices) == len(column) else [column[index] for index in indices]


class TcpOrder(RunningOrder):
    """A TCP order; each deque is in the order of its deadlines."""

    def __init__(
        self,
        agent: AgentCore,
        order: ProbeOrder,
        pool: SocketPool,
        report: Optional[OrderReport],
        place: int,
    ) -> None:
        RunningOrder.__init__(self, agent, order, report, place)
        self.first: Deque[ConnectBatch] = deque()
        self.later: Deque[ConnectBatch] = deque()
        # Ports that were host-unreachable once; they are asked again.
        self.dead: Dict[int, OutcomeKind] = {}
        self._silent: Dict[int, Tuple[int, Optional[bool]]] = {}
        self._own: Optional[bool] = None
        self.hold_until = 0.0
        self.has_answered = False
        self.short_since: Optional[float] = None
        # One list for all orders that take the same sockets; it stays the same object.
        self.shelf = pool.shelf(self)

    def may_meet_itself(self) -> bool:
        """Whether a connect may meet its own socket: only where the destination is this host."""
        if self._own is None:
            self._own = is_own(self.target)
        return self._own

    def note_silence(self, port: int, state: SynState, more: bool) -> Tuple[int, Optional[bool]]:
        """Add one silent look; SYNs of all looks, and whether any of them left this host.

        ``more``: another look follows, so remember it.
        """
        syns, left = self._silent.pop(port, (0, None))
        syns += state.asked
        left = state.left if left is None else left or bool(state.left)
        if more:
            self._silent[port] = (syns, left)
        return syns, left
