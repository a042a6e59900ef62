"""Starts TCP connects: whose turn it is, how many at once, and which fail before they are out."""

import errno
import socket
from itertools import repeat
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from ...core.agent import AgentCore
from ...core.pump import SHORT_S, YOUNG_S, short_for_long
from ...net.errqueue import about, drain
from ...net.sockets import IP_HEADER, note_own_ports
from ...wire.failures import NO_SOURCE_PORT, is_transient, name_of
from ..orders import PortLook, ProbePart, Turn, TurnScheduler
from ..outcomes import kind
from .socket_pool import ConnectBatch, SocketPool, TcpOrder, connect_ex

if TYPE_CHECKING:
    from .engine import TcpEngine

# Young connects that may be out at once, and how many of one order are started in one go. A
# kernel's queue between two namespaces holds 1,000 packets (net.core.netdev_max_backlog).
WINDOW = 768
CHUNK = 128
# With each destination of an order so many others are asked. The first ones end early: their
# second looks begin while the rest are asked.
OTHERS = 5
# A destination that has not answered yet may lack a neighbour entry: the kernel keeps about 100
# packets for it and drops the rest, which would cost those a second.
UNKNOWN_CHUNK = 64
UNKNOWN_HOLD_S = 0.05
# Where answers came quickly so far, a connect stops counting towards the window sooner: after so
# many times the slowest answer, but not at once, because our own processor may be busy.
YOUNG_FACTOR = 3
LEAST_YOUNG_S = 0.025
TCP_HEADER = 20
# What the kernel takes at most for TCP_MAXSEG (net/ipv4/tcp.c).
MOST_SEGMENT = 32767


def limit_segments(sock: socket.socket, size: int) -> None:
    """Let no packet of a connection that is still to be opened be larger, in either direction."""
    most = size - IP_HEADER[sock.family] - TCP_HEADER
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, min(most, MOST_SEGMENT))


class ConnectScheduler(TurnScheduler):
    """Starts connects; ``owner`` takes those that ended at once."""

    def __init__(
        self, agent: AgentCore, owner: "TcpEngine", pool: SocketPool, live: Dict[int, ConnectBatch]
    ) -> None:
        TurnScheduler.__init__(self, agent, WINDOW)
        self._owner = owner
        self._pool = pool
        self._live = live
        self._now = agent.loop.now
        self._answers = agent.answers

    def start_next(self) -> int:
        """Start the next chunk of one order; 0 where nothing may start now."""
        room = min(self.window.room(), self._pool.room())
        now = self._now()
        if room <= 0 or now < self._pause_until or not self._agent.may_start():
            return 0
        for order in self.rotate_orders():
            if order.hold_until > now and not order.has_answered:
                continue
            known = self._answers.knows(order.target.address)
            granted = self._agent.rate.take(min(room, CHUNK if known else UNKNOWN_CHUNK), now)
            if not granted:
                self.lines.rotate(1)  # this line goes first next time
                break
            turn = order.take_alike(granted)
            self._agent.rate.give_back(granted - len(turn[2]))
            self.give_back(order, OTHERS)
            if not known:
                order.hold_until = now + UNKNOWN_HOLD_S if not order.hold_until else now
            self._connect_all(order, turn, now)
            return 1
        return 0

    def _connect_all(self, order: TcpOrder, turn: Turn, now: float) -> None:
        # The hot half of the engine: whole chunks go through C loops (map, zip). Only connects that
        # did not simply go out are handled one by one.
        part, look, ports = turn
        socks = self._take_sockets(order, turn)
        if not socks:
            return
        batch = ConnectBatch(part, look, ports[: len(socks)], socks)
        begun = self._now()
        codes = list(map(connect_ex, socks, batch.addresses))
        ended = self._now()
        if self._agent.own_ports is not None:
            note_own_ports(self._agent.own_ports, order.target, ports, socks)
        failed: List[Tuple[int, socket.socket, int]] = []
        if codes.count(errno.EINPROGRESS) != len(codes):
            all_of_it = list(zip(ports, socks, codes))
            failed = [each for each in all_of_it if each[2] != errno.EINPROGRESS]
            out = [each for each in all_of_it if each[2] == errno.EINPROGRESS]
            batch = ConnectBatch(part, look, [each[0] for each in out], [each[1] for each in out])
        if len(batch):
            order.short_since = None
            batch.spread(begun, ended)
            self._live.update(zip(batch.fds, repeat(batch)))
            (order.first if look == 1 else order.later).append(batch)
            self.window.add(batch, now, self._find_young_s(order))
        for port, sock, code in failed:
            self._end_at_once(part, port, look, sock, begun, code)

    def _find_young_s(self, order: TcpOrder) -> float:
        """Tell how long a connect counts towards the window."""
        rtt_s = self._answers.rtt_s(order.target.address) or YOUNG_S
        return min(YOUNG_S, max(LEAST_YOUNG_S, YOUNG_FACTOR * rtt_s))

    def _take_sockets(self, order: TcpOrder, turn: Turn) -> List[socket.socket]:
        """Take a socket for each port, used ones first; fewer where the host has no more."""
        part, look, ports = turn
        shelf = order.shelf
        count = len(ports)
        socks = shelf[-count:]
        del shelf[-count:]
        while len(socks) < count:
            at = len(socks)
            sock = self._open_socket(order, (part, ports[at], look))
            if sock is None:
                for port in ports[at + 1 :]:
                    self.ask_later(order, (part, port, look))
                break
            socks.append(sock)
        if order.size is not None:
            for sock in socks:  # a used one has forgotten it: tcp_disconnect() clears user_mss
                limit_segments(sock, order.size)
        return socks

    def _open_socket(self, order: TcpOrder, port_look: PortLook) -> Optional[socket.socket]:
        """Open a fresh socket, or None where the host has none just now."""
        try:
            return self._pool.take(order)
        except OSError as error:
            if is_transient(error.errno) and not self._is_short_for_long(order):
                self._pool.shrink()
                self.ask_later(order, port_look)
            else:
                self._owner.report(
                    order, port_look[1], kind("bind", name_of(error.errno)), None, port_look[2]
                )
            return None

    def _is_short_for_long(self, order: TcpOrder) -> bool:
        """Whether this order has been short of a port or descriptor for too long to wait on."""
        now = self._now()
        self._pause_until = now + SHORT_S
        return short_for_long(order, now) and not self._live

    def _end_at_once(
        self, part: ProbePart, port: int, look: int, sock: socket.socket, started: float, code: int
    ) -> None:
        """Handle a connect that ended at once: by our own kernel, or (rarely) with success."""
        order = part.order
        if code == 0:
            self._owner.take_open(part, port, look, sock, started)
            return
        error = about(drain(sock), order.target.address, port)
        self._pool.drop(sock)
        if code == errno.EISCONN:
            # It was called off just when it opened (see ``Completions``). Another socket will do.
            self.ask_later(order, (part, port, look))
            return
        short = (error is None and code in NO_SOURCE_PORT) or is_transient(code)
        if short and not self._is_short_for_long(order):
            self.ask_later(order, (part, port, look))
            return
        fact = None if error is None else error.fact()
        what = kind("connect", name_of(code), fact, None if fact else False)
        self._owner.report(order, port, what, None, look)
