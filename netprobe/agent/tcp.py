"""TCP probes: thousands of connects at once over one epoll descriptor and a pool of used sockets.

There is no object per flow: a connect that is out is one tuple. A refused socket connects again at
once. Silent connects are parked and do not count towards the window, so drops cost time, not rate.
"""

import errno
import select
import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from . import replies
from .errqueue import QueuedError, about, drain
from .failures import (
    ENDED_AFTER_OPEN,
    HOST_UNREACHABLE,
    IN_PROGRESS,
    NO_ANSWER,
    NO_SOURCE_PORT,
    REFUSED,
    is_transient,
    name_of,
)
from .orders import Flow, Order, Part
from .outcomes import FLUSH_S, Kind, kind
from .pace import answers_of
from .sockets import (
    Disconnect,
    SynState,
    close_with_reset,
    open_probe,
    syn_state,
    tcp_socket_limit,
)
from .talks import Talks

# Connects younger than YOUNG_S that may be out at once; older ones are parked.
WINDOW = 512
YOUNG_S = 0.1
CHUNK = 128
# A destination that has not answered yet may lack a neighbour entry: the kernel keeps about 100
# packets for it and drops the rest, which would cost those a second.
UNKNOWN_CHUNK = 64
UNKNOWN_HOLD_S = 0.05
# The engine gives the loop back after this long, and looks at its deadlines this often.
SLICE_S = 0.02
TICK_S = 0.03
# A socket whose connect lasted longer may have retransmitted. Before Linux 5.6 connect(AF_UNSPEC)
# did not clear that counter, so such a socket is not used again.
REUSE_WITHIN_S = 0.9
# If this process did not run for so long, answers get HOLD_S more before anything is called silent.
STARVED_S = 0.25
HOLD_S = 0.3
# Where not even one SYN timeout has happened in the kernel by the deadline: ask again, but not for ever.
LATE_S = 0.25
MOST_LATE_S = 3.0
# No free source port or descriptor: try again this often, and report it after this long.
SHORT_S = 0.1
SHORT_FOR_S = 10.0
# A host that answers "host unreachable" at once is refusing; after this long its neighbour gave up.
DEAD_AFTER_S = 0.5

OPEN = kind("connect", answer=replies.UNASKED)
RESET_BY_PEER = kind("connect", REFUSED)
ENDED = kind("answer", answer=replies.RESET)

# (part, address, look, started, socket, batch, descriptor). The batch is [how many are out, young].
Flight = Tuple[Part, Tuple[Any, ...], int, float, socket.socket, List[int], int]


class TcpOrder(Order):
    """A TCP order with its deadlines; each deque is in the order of its deadlines."""

    def __init__(self, agent, message):
        # type: (Any, Dict[str, Any]) -> None
        Order.__init__(self, agent, message)
        self.first = deque()  # type: Deque[Flight]
        self.later = deque()  # type: Deque[Flight]
        # port -> (SYNs so far, whether one left) of a silent look; port -> dead-host outcome.
        self.silent = {}  # type: Dict[int, Tuple[int, Optional[bool]]]
        self.dead = {}  # type: Dict[int, Any]
        self.hold_until = 0.0
        self.slowest_s = 0.0
        self.short_since = None  # type: Optional[float]
        # Sockets of one family, source address and TTL threshold are alike.
        self.pool_key = (self.target.family, self.target.source, self.target.scope, self.min_ttl)
        self.pool = []  # type: List[socket.socket]


class TcpEngine:
    """All TCP orders of the agent."""

    def __init__(self, agent):
        # type: (Any) -> None
        self._agent = agent
        self._now = agent.loop.now
        self._answers = answers_of(agent)
        self._disconnect = Disconnect()
        self._epoll = select.epoll()
        agent.loop.watch(self._epoll.fileno(), select.EPOLLIN, lambda events: self._pump())
        self._orders = {}  # type: Dict[int, TcpOrder]
        self._queue = deque()  # type: Deque[TcpOrder]
        self._live = {}  # type: Dict[int, Flight]
        self._pools = {}  # type: Dict[Any, List[socket.socket]]
        self._batches = deque()  # type: Deque[Tuple[float, List[int]]]
        self._late = deque()  # type: Deque[Tuple[float, Flight]]
        self._young = 0
        self._open = 0
        self._limit = 0
        self._pause_until = 0.0
        self._ticked_at = 0.0
        self._expire_from = 0.0
        self._timer = None  # type: Any
        self._talks = Talks(agent, self)

    # Orders

    def submit(self, message):
        # type: (Dict[str, Any]) -> None
        """Start an order; its outcomes and ``done`` follow."""
        order = TcpOrder(self._agent, message)
        order.pool = self._pools.setdefault(order.pool_key, [])
        if not self._orders:
            self._limit = tcp_socket_limit()
        self._orders[order.id] = order
        if not order.pending:
            self._finish(order)
            return
        self._queue.append(order)
        self._wake(0.0)

    def cancel(self, order_id):
        # type: (int) -> bool
        """End an order early; whether it was one of this engine."""
        order = self._orders.get(order_id)
        if order is None:
            return False
        for flight in [each for each in self._live.values() if each[0].order is order]:
            self._forget(flight)
            self.drop(flight[4])
        self._talks.drop(order)
        self._finish(order, True)
        return True

    def resume(self):
        # type: () -> None
        """The agent's output has drained: new probes may start again."""
        if self._queue:
            self._wake(0.0)

    def close(self):
        # type: () -> None
        """Close every socket; outcomes of what was out are lost."""
        for flight in list(self._live.values()):
            flight[4].close()
        self._talks.drop(None)
        self._empty_pools()
        self._live, self._orders = {}, {}
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._agent.loop.unwatch(self._epoll.fileno())
        self._epoll.close()

    def _finish(self, order, cancelled=False):
        # type: (TcpOrder, bool) -> None
        order.outcomes.flush()
        del self._orders[order.id]
        if order in self._queue:
            self._queue.remove(order)
        if not self._orders:
            self._empty_pools()
        self._agent.send({"t": "done", "id": order.id, "cancelled": cancelled})

    def _empty_pools(self):
        # type: () -> None
        for pool in self._pools.values():
            for sock in pool:
                self.drop(sock)
        self._pools = {}

    # The pump: start, serve, look at deadlines

    def _wake(self, delay_s):
        # type: (float) -> None
        """Come back after ``delay_s``, or earlier if that is already arranged."""
        timer = self._timer
        if timer is not None and timer.call is not None:
            if timer.when <= self._now() + delay_s:
                return
            timer.cancel()
        self._timer = self._agent.loop.call_later(delay_s, self._tick)

    def _tick(self):
        # type: () -> None
        now = self._now()
        if (
            self._live
            and now - self._ticked_at > STARVED_S + TICK_S
            and self._expire_from < now - 2
        ):
            self._expire_from = now + HOLD_S
        self._ticked_at = now
        self._pump()

    def _pump(self):
        # type: () -> None
        until = self._now() + SLICE_S
        while self._serve() + self._launch():
            if self._now() > until:
                self._wake(0.0)
                return
        now = self._now()
        self._age(now)
        if now >= self._expire_from:
            # Everything that had arrived was served just above: only what is still silent is left.
            self._expire(now)
            self._talks.expire(now)
        self._flush(now)
        if self._orders:
            self._wake(TICK_S)

    def _age(self, now):
        # type: (float) -> None
        """Park what has been out for longer than YOUNG_S."""
        batches = self._batches
        while batches and (now - batches[0][0] > YOUNG_S or not batches[0][1][0]):
            batch = batches.popleft()[1]
            self._young -= batch[0]
            batch[1] = 0

    def _flush(self, now):
        # type: (float) -> None
        for order in self._orders.values():
            if now - order.flushed_at > FLUSH_S:
                order.flushed_at = now
                order.outcomes.flush()

    # Starting connects

    def _launch(self):
        # type: () -> int
        """Start the next chunk of one order; 0 where nothing may start now."""
        room = min(WINDOW - self._young, self._limit - self._open + self._idle())
        now = self._now()
        if room <= 0 or not self._queue or now < self._pause_until or not self._agent.may_start():
            return 0
        order = self._next_order(now)
        if order is None:
            return 0
        known = self._answers.knows(order.target.address)
        wanted = min(room, CHUNK if known else UNKNOWN_CHUNK)
        granted = self._agent.rate.take(wanted, now)
        if not granted:
            return 0
        flows = order.take(granted)
        self._agent.rate.give_back(granted - len(flows))
        if len(flows) < granted:
            self._queue.remove(order)
        if not known:
            order.hold_until = now + UNKNOWN_HOLD_S if not order.hold_until else now
        self._connect_all(order, flows, now)
        return 1

    def _idle(self):
        # type: () -> int
        return sum(len(pool) for pool in self._pools.values())

    def _next_order(self, now):
        # type: (float) -> Optional[TcpOrder]
        """Orders take turns, so that one large order does not hold up the others."""
        for _ in range(len(self._queue)):
            order = self._queue[0]
            self._queue.rotate(-1)
            if order.hold_until <= now or order.slowest_s:
                return order
        return None

    def _connect_all(self, order, flows, now):
        # type: (TcpOrder, List[Flow], float) -> None
        # The hot half of the engine: names are bound locally, and nothing is called that need not be.
        pool = order.pool
        live, clock, first, later = self._live, self._now, order.first, order.later
        batch = [0, 1]
        address = order.target.address
        tail = order.target.sockaddr(0)[2:]
        in_progress = errno.EINPROGRESS
        for index, flow in enumerate(flows):
            sock = pool.pop() if pool else self._new_socket(order, flow)
            if sock is None:
                for rest in flows[index + 1 :]:
                    self.ask_later(order, rest)
                break
            part, port, look = flow
            to = (address, port, *tail)
            started = clock()
            code = sock.connect_ex(to)
            if code == in_progress:
                fd = sock.fileno()
                flight = (part, to, look, started, sock, batch, fd)  # type: Flight
                live[fd] = flight
                batch[0] += 1
                (first if look == 1 else later).append(flight)
            else:
                self._at_once(flow, to, sock, started, code)
        if batch[0]:
            self._young += batch[0]
            self._batches.append((now, batch))

    def _new_socket(self, order, flow):
        # type: (TcpOrder, Flow) -> Optional[socket.socket]
        """A fresh socket, or None where there is none to be had just now."""
        if self._open >= self._limit:
            # There is room only because the sockets of another source address lie idle.
            for pool in self._pools.values():
                if pool:
                    self.drop(pool.pop())
                    break
        try:
            sock = open_probe(order.target, socket.SOCK_STREAM, 0, order.min_ttl)
        except OSError as error:
            if is_transient(error.errno) and not self._short_for_long(order):
                self._limit = max(1, self._open)
                self.ask_later(order, flow)
            else:
                self.report(order, flow[1], kind("bind", name_of(error.errno)), None, flow[2])
            return None
        self._open += 1
        self._epoll.register(
            sock.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
        )
        return sock

    def ask_later(self, order, flow):
        # type: (TcpOrder, Flow) -> None
        order.put_back(flow)
        if order not in self._queue:
            self._queue.append(order)

    def _short_for_long(self, order):
        # type: (TcpOrder) -> bool
        """Whether this order has been short of a port or descriptor for too long to wait on."""
        now = self._now()
        self._pause_until = now + SHORT_S
        if order.short_since is None:
            order.short_since = now
        return now - order.short_since > SHORT_FOR_S and not self._live

    def _at_once(self, flow, to, sock, started, code):
        # type: (Flow, Tuple[Any, ...], socket.socket, float, int) -> None
        """connect() ended before it returned: by our own kernel, or (rarely) with success."""
        part, port, look = flow
        order = part.order
        if code == 0:
            self._opened(part, port, look, sock, started)
            return
        error = about(drain(sock), to[0], port)
        self.drop(sock)
        if (error is None and code in NO_SOURCE_PORT) or is_transient(code):
            if not self._short_for_long(order):
                self.ask_later(order, flow)
                return
        fact = None if error is None else error.fact()
        what = kind("connect", name_of(code), fact, None if fact else False)
        self.report(order, port, what, None, look)

    # Serving what came back

    def _serve(self):
        # type: () -> int
        """Handle every connect and conversation that has news; how many there were."""
        events = self._epoll.poll(0, 4096)
        # The hot half again: a refused connect is asked for its result, which also makes the socket
        # new, and its error queue is read, because only that tells a reset from a reject.
        live, clock, refused = self._live, self._now, errno.ECONNREFUSED
        for fd, _ in events:
            flight = live.get(fd)
            if flight is None:
                self._talks.hear(fd)
                continue
            part, to, look, started, sock, batch, _ = flight
            code = sock.connect_ex(to)
            if code != refused:
                self._news(flight, code)
                continue
            errors = drain(sock)
            rtt_s = clock() - started
            if errors or rtt_s > REUSE_WITHIN_S:
                self._refused(flight, errors, code)
                continue
            del live[fd]
            batch[0] -= 1
            self._young -= batch[1]
            order = part.order
            order.pool.append(sock)
            if rtt_s > order.slowest_s:
                self._answered(order, rtt_s)
            self.report(order, to[1], RESET_BY_PEER, rtt_s, look)
        return len(events)

    def _news(self, flight, code):
        # type: (Flight, int) -> None
        """A connect that is not simply refused: opened, still out, or failed."""
        part, to, look, started, sock, _, _ = flight
        if code == 0:
            self._forget(flight)
            self._opened(part, to[1], look, sock, started)
        elif code in ENDED_AFTER_OPEN:
            # The handshake was done and a reset came before we looked: the port is open.
            self._forget(flight)
            self.drop(sock)
            ended = OPEN if part.mode == "connect" else ENDED
            self._open_report(part.order, to[1], ended, self._now() - started, look)
        elif code in IN_PROGRESS:
            # An ICMP error that arrived while the kernel was still inside connect() is in the queue
            # only; the errno would follow with the next SYN, a second later.
            errors = drain(sock)
            if about(errors, to[0], to[1]) is not None:
                self._refused(flight, errors, None)
        else:
            self._refused(flight, drain(sock), code)

    def _refused(self, flight, errors, code):
        # type: (Flight, List[QueuedError], Optional[int]) -> None
        """A connect failed; the error queue says whether an ICMP error did it, and whose."""
        part, to, look, started, sock, _, _ = flight
        order = part.order
        elapsed_s = self._now() - started
        self._forget(flight)
        self.drop(sock)
        error = about(errors, to[0], to[1])
        if code is None and error is not None:
            code = error.errno
        name = name_of(code)
        fact = None if error is None else error.fact()
        at_host = (fact is None and name == REFUSED) or (fact is not None and fact[2] == to[0])
        if at_host:
            self._answered(order, elapsed_s)
        elapsed_ms = round(elapsed_s * 10) * 100 if name == HOST_UNREACHABLE else None
        what = kind("connect", name, fact, elapsed_ms=elapsed_ms)
        dead = name == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S
        if dead and look < order.looks:
            order.dead[to[1]] = what
            self.ask_later(order, (part, to[1], look + 1))
            return
        self.report(order, to[1], what, elapsed_s if at_host else None, look)

    def _opened(self, part, port, look, sock, started):
        # type: (Part, int, int, socket.socket, float) -> None
        rtt_s = self._now() - started
        if sock.getsockname()[:2] == (part.order.target.address, port):
            # Probing one's own host, the kernel may pick the very port as source: then the socket
            # has connected to itself, which says nothing.
            self._open -= 1
            close_with_reset(sock)
            self.ask_later(part.order, (part, port, look))
            return
        if part.mode != "connect":
            self._answered(part.order, rtt_s)
            self._talks.begin(part, port, look, sock, rtt_s)
            return
        # close() sends a FIN: a service that listens there sees a polite client.
        self.drop(sock)
        self._open_report(part.order, port, OPEN, rtt_s, look)

    def _open_report(self, order, port, what, rtt_s, look):
        # type: (TcpOrder, int, Kind, float, int) -> None
        self._answered(order, rtt_s)
        self.report(order, port, what, rtt_s, look)

    def _answered(self, order, rtt_s):
        # type: (TcpOrder, float) -> None
        order.slowest_s = max(order.slowest_s, rtt_s)
        self._answers.learn(order.target.address, rtt_s)

    def report(self, order, port, what, rtt_s, look, syns=None):
        # type: (TcpOrder, int, Kind, Optional[float], int, Optional[int]) -> None
        """The final outcome of one port."""
        order.outcomes.add(port, what, rtt_s, look, syns)
        order.pending -= 1
        if not order.pending:
            self._finish(order)

    def _forget(self, flight):
        # type: (Flight) -> None
        """A connect is no longer out."""
        del self._live[flight[6]]
        batch = flight[5]
        batch[0] -= 1
        self._young -= batch[1]

    def drop(self, sock):
        # type: (socket.socket) -> None
        self._open -= 1
        sock.close()

    def recycle(self, order, sock):
        # type: (TcpOrder, socket.socket) -> None
        """Reset an open connection and keep its socket, or close it with a reset."""
        if self._disconnect(sock):
            order.pool.append(sock)
        else:
            self._open -= 1
            close_with_reset(sock)

    # Silence

    def _expire(self, now):
        # type: (float) -> None
        """Look at what has been out for longer than its look."""
        while self._late and self._late[0][0] <= now:
            self._ask_once_more(self._late.popleft()[1], now)
        for order in list(self._orders.values()):
            first_s = self._answers.first_look_s(
                order.target.address, order.first_ms, order.look_ms
            )
            self._expire_queue(order.first, first_s, now)
            self._expire_queue(order.later, order.look_s, now)

    def _expire_queue(self, queue, limit_s, now):
        # type: (Deque[Flight], float, float) -> None
        live = self._live
        while queue:
            flight = queue[0]
            if live.get(flight[6]) is flight:
                if now - flight[3] < limit_s:
                    return
                self._ask_once_more(flight, now)
            queue.popleft()

    def _ask_once_more(self, flight, now):
        # type: (Flight, float) -> None
        """The deadline has passed. Believe the kernel, not our clock: a starved process is late."""
        if self._live.get(flight[6]) is not flight:
            return
        part, to, look, started, sock, _, _ = flight
        code = sock.connect_ex(to)
        self._news(flight, code)
        if self._live.get(flight[6]) is not flight:
            return
        state = syn_state(sock)
        if not state.timeouts and now - started < part.order.look_s + MOST_LATE_S:
            self._late.append((now + LATE_S, flight))
            return
        self._forget(flight)
        self.drop(sock)
        self._silent(part, to[1], look, state)

    def _silent(self, part, port, look, state):
        # type: (Part, int, int, SynState) -> None
        order = part.order
        syns, left = order.silent.pop(port, (0, None))
        syns += state.asked
        left = state.left if left is None else (left or bool(state.left))
        if look < order.looks:
            order.silent[port] = (syns, left)
            self.ask_later(order, (part, port, look + 1))
            return
        dead = order.dead.pop(port, None)
        if dead is not None:
            # The neighbour's queue was full this time. What was heard once is more than silence.
            self.report(order, port, dead, None, look)
        else:
            self.report(order, port, kind("connect", NO_ANSWER, left=left), None, look, syns)
