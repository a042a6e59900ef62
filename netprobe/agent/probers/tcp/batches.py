"""What the TCP engine has out: connects in batches, and their order with its deadlines."""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from ...core.pump import Batch
from ...net.sockets import SynState, is_own
from ..orders import Order, Part
from ..outcomes import Kind
from .socket_pool import Pool

# One connect that is out: its batch, and its place there.
Connect = Tuple["ConnectBatch", int]

# The methods as functions, for map(): a chunk of connects is one loop in C.
connect_ex = socket.SocketType.connect_ex
fileno = socket.SocketType.fileno

# A chunk that took longer was interrupted by other processes.
STEADY_S = 0.02


class ConnectBatch(Batch):
    """Connects of one part and look that were started together, as columns.

    Mostly they also end together, and alike: then nothing is done connect by connect.
    """

    __slots__ = (
        "_indices", "_started", "_step_s", "addresses", "fds", "look", "part", "ports",
        "socks",
    )  # fmt: skip

    def __init__(
        self, part: Part, look: int, ports: Sequence[int], socks: List[socket.socket]
    ) -> None:
        Batch.__init__(self, len(socks))
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
        """They were started between these two looks at the clock.

        Where the process stood still meanwhile nobody knows which went late: then all did, so that
        no deadline comes early.
        """
        steady = ended - begun <= STEADY_S
        self._started = begun if steady else ended
        self._step_s = (ended - begun) / len(self.fds) if steady else 0.0

    def started(self, index: float) -> float:
        """When one went out, in seconds of ``Loop.now``."""
        return self._started + self._step_s * index

    def indices(self, fds: Sequence[int]) -> Sequence[int]:
        """Which ones have these descriptors, each of which is named once; in order."""
        if len(fds) == len(self.fds):
            return range(len(fds))
        if self._indices is None:
            self._indices = {fd: index for index, fd in enumerate(self.fds)}
        found = self._indices
        return sorted(found[fd] for fd in fds)


def pick(column: Any, indices: Sequence[int]) -> Any:
    """A column's part for these, which are in order."""
    return column if len(indices) == len(column) else [column[index] for index in indices]


class TcpOrder(Order):
    """A TCP order; each deque is in the order of its deadlines."""

    def __init__(self, agent: Any, message: Dict[str, Any], pool: Pool) -> None:
        Order.__init__(self, agent, message)
        self.first: Deque[ConnectBatch] = deque()
        self.later: Deque[ConnectBatch] = deque()
        # Host-unreachable that came once, by port; it is asked again.
        self.dead: Dict[int, Kind] = {}
        self._silent: Dict[int, Tuple[int, Optional[bool]]] = {}
        self._own: Optional[bool] = None
        self.hold_until = 0.0
        self.slowest_s = 0.0
        self.short_since: Optional[float] = None
        self.bound = pool.bound(self)
        # One list for all orders that take the same sockets; it stays the same object.
        self.shelf = pool.shelf(self, self.bound)

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
