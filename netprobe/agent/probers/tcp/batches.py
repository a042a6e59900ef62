"""The connects that the TCP engine has out, in batches, and their order with its deadlines."""

import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from ...core.agent import AgentCore
from ...core.pump import YoungBatch
from ...net.sockets import SynState, is_own
from ...wire.orders import ProbeOrder
from ...wire.parts import OutcomeKind
from ..orders import ProbePart, RunningOrder
from ..reports import OrderReport
from .socket_pool import SocketPool

# One connect that is out: its batch, and its place there.
PendingConnect = Tuple["ConnectBatch", int]

# The methods as functions, for map(): a chunk of connects is one loop in C.
connect_ex = socket.SocketType.connect_ex
fileno = socket.SocketType.fileno

# A chunk that took longer was interrupted by other processes.
STEADY_S = 0.02


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
        """They were started between these two looks at the clock.

        If the process stood still meanwhile, it is unknown which went late. Then all count from the
        end, so that no deadline comes early.
        """
        steady = ended - begun <= STEADY_S
        self._started = begun if steady else ended
        self._step_s = (ended - begun) / len(self.fds) if steady else 0.0

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
        self.slowest_s = 0.0
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
