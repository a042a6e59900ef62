"""What the TCP engine has out: connects as plain tuples, and their order with its deadlines."""

import socket
from collections import deque
from operator import itemgetter
from typing import Any, Deque, Dict, List, Optional, Tuple

from .orders import Order, Part
from .outcomes import Kind
from .pool import Pool
from .pump import Batch
from .sockets import SynState, is_own

# (part, address, look, started, socket, batch, descriptor)
Flight = Tuple[Part, Tuple[Any, ...], int, float, socket.socket, Batch, int]
TO, LOOK, STARTED, SOCK, FD = map(itemgetter, (1, 2, 3, 4, 6))
_BATCH = itemgetter(5)
# Flights that started together, and are of one order; past when none of the batch is out.
Started = Tuple[Batch, List[Flight]]

# The methods as functions, for map(): a chunk of connects is one loop in C.
connect_ex = socket.SocketType.connect_ex
fileno = socket.SocketType.fileno

# A chunk that took longer was interrupted by other processes.
STEADY_S = 0.02


class TcpOrder(Order):
    """A TCP order; each deque is in the order of its deadlines."""

    def __init__(self, agent, message, pool):
        # type: (Any, Dict[str, Any], Pool) -> None
        Order.__init__(self, agent, message)
        self.first = deque()  # type: Deque[Started]
        self.later = deque()  # type: Deque[Started]
        # Host-unreachable that came once, by port; it is asked again.
        self.dead = {}  # type: Dict[int, Kind]
        self._silent = {}  # type: Dict[int, Tuple[int, Optional[bool]]]
        self._own = None  # type: Optional[bool]
        self.hold_until = 0.0
        self.slowest_s = 0.0
        self.short_since = None  # type: Optional[float]
        # One list for all orders that take the same sockets; it stays the same object.
        self.shelf = pool.shelf(self)

    def may_meet_itself(self):
        # type: () -> bool
        """Whether a connect may meet its own socket: only where the destination is this host."""
        if self._own is None:
            self._own = is_own(self.target)
        return self._own

    def note_silence(self, port, state, more):
        # type: (int, SynState, bool) -> Tuple[int, Optional[bool]]
        """Add one silent look; SYNs of all looks, and whether any of them left this host.

        ``more``: another look follows, so remember it.
        """
        syns, left = self._silent.pop(port, (0, None))
        syns += state.asked
        left = state.left if left is None else left or bool(state.left)
        if more:
            self._silent[port] = (syns, left)
        return syns, left


def by_batch(flights):
    # type: (List[Flight]) -> List[List[Flight]]
    """The flights that started together, together."""
    if not flights or len(set(map(id, map(_BATCH, flights)))) == 1:
        return [flights] if flights else []
    groups = {}  # type: Dict[int, List[Flight]]
    for flight in flights:
        groups.setdefault(id(flight[5]), []).append(flight)
    return list(groups.values())


def spread(begun, ended, count):
    # type: (float, float, int) -> List[float]
    """When each of ``count`` connects went out that were started between two looks at the clock.

    Where the process stood still meanwhile nobody knows which went late: then all did, so that no
    deadline comes early.
    """
    if ended - begun > STEADY_S:
        return [ended] * count
    step_s = (ended - begun) / count
    return [begun + step_s * number for number in range(count)]
