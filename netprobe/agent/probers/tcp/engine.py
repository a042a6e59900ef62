"""TCP probes: thousands of connects at once over one epoll descriptor and a pool of used sockets.

There is no object per flow: connects that start together are one. A refused socket connects again
at once. Silent connects are parked and do not count towards the window: drops cost time, not rate.
"""

import select
import socket
from collections import deque
from typing import Any, Deque, Dict, Optional, Tuple

from ...core.pace import answers_of
from ...core.pump import SLICE_S, TICK_S, Pump
from ...net.errqueue import Cause, next_cause
from ...net.sockets import SynState, syn_state
from ...wire import answers as replies
from ...wire.failures import ENDED_AFTER_OPEN, HOST_UNREACHABLE, IN_PROGRESS, NO_ANSWER
from ..orders import Part
from ..outcomes import Kind, kind
from .batches import Flight, TcpOrder, Volley, connect_ex
from .completions import OPEN, REUSE_WITHIN_S, Arrivals, elapsed_of, failure_kind, is_at_host
from .exchanges import Talks
from .scheduler import Launcher
from .socket_pool import Pool

# Where not even one SYN timeout has happened in the kernel by the deadline: ask again, for so long.
LATE_S = 0.25
MOST_LATE_S = 3.0
MOST_EVENTS = 4096
# A host that answers "host unreachable" at once is refusing; after this long a neighbour gave up.
DEAD_AFTER_S = 0.5

ENDED = kind("answer", answer=replies.RESET)


class TcpEngine:
    """All TCP orders of the agent."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._now = agent.loop.now
        self._answers = answers_of(agent)
        self._epoll = select.epoll()
        agent.loop.watch(self._epoll.fileno(), select.EPOLLIN, lambda events: self._run())
        self._pool = Pool(self._epoll)
        self._pump = Pump(agent.loop, self._run)
        self._orders: Dict[int, TcpOrder] = {}
        # Whose connect is out on a descriptor.
        self._live: Dict[int, Volley] = {}
        self._late: Deque[Tuple[float, Flight]] = deque()
        self._starts = Launcher(agent, self, self._pool, self._live)
        self._arrivals = Arrivals(self, self._pool, self._live, self._starts.window)
        self._talks = Talks(agent, self, self._starts)

    # Orders

    def submit(self, message: Dict[str, Any]) -> None:
        """Start an order; its outcomes and ``done`` follow."""
        if not self._orders:
            self._pool.measure()
        order = TcpOrder(self._agent, message, self._pool)
        self._orders[order.id] = order
        if not order.pending:
            self._finish(order)
            return
        self._starts.add(order)
        self._pump.wake(0.0)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        order = self._orders.get(order_id)
        if order is None:
            return False
        for fd, volley in list(self._live.items()):
            if volley.part.order is order:
                self._pool.drop(self._forget((volley, volley.indices((fd,))[0])))
        self._talks.drop(order)
        self._finish(order, True)
        return True

    def resume(self) -> None:
        """The agent's output has drained: new probes may start again."""
        if self._starts.queue:
            self._pump.wake(0.0)

    def close(self) -> None:
        """Close every socket; outcomes of what was out are lost."""
        for fd, volley in list(self._live.items()):
            volley.socks[volley.indices((fd,))[0]].close()
        self._talks.drop(None)
        self._pool.empty()
        self._live.clear()
        self._orders = {}
        self._starts.queue.clear()
        self._pump.stop()
        self._agent.loop.unwatch(self._epoll.fileno())
        self._epoll.close()

    def _finish(self, order: TcpOrder, cancelled: bool = False) -> None:
        del self._orders[order.id]
        self._starts.remove(order)
        if not self._orders:
            self._pool.empty()
        order.say_done(cancelled)

    # The pump: start, serve, look at deadlines

    def _run(self) -> None:
        now = self._now()
        until = now + SLICE_S
        # Before anything starts: what is no longer young makes room.
        self._starts.window.age(now)
        while now <= until and self._serve() + self._starts.launch():
            now = self._now()
        busy = now > until
        self._pool.age(now)
        if self._pump.may_expire(now):
            # What had arrived was served just above, and each socket is asked once more.
            self._expire(now)
            self._talks.expire(now)
        for order in self._orders.values():
            order.flush_outcomes(now)
        if self._orders:
            self._pump.wake(0.0 if busy else TICK_S)

    # Serving what came back

    def _serve(self) -> int:
        """Handle every connect and conversation that has news; how many there were."""
        total = 0
        poll = self._epoll.poll
        events = poll(0, MOST_EVENTS)
        while events:
            now = self._now()
            total += len(events)
            self._talks.hear_all(events)
            self._pool.hear(events)
            refused = self._arrivals.take(events, now)
            if not refused:
                break
            events = poll(0, MOST_EVENTS)
            self._arrivals.sort(refused, events, now)
        return total

    def news(self, flight: Flight, code: int) -> None:
        """The result of one connect: opened, still out, or failed."""
        volley, index = flight
        part, to, sock = volley.part, volley.addresses[index], volley.socks[index]
        if code == 0:
            self._forget(flight)
            self.opened(part, to[1], volley.look, sock, volley.started(index))
        elif code in ENDED_AFTER_OPEN:
            # The handshake was done and a reset came before we looked: the port is open.
            self._forget(flight)
            self._pool.drop(sock)
            ended = OPEN if part.mode == "connect" else ENDED
            rtt_s = self._now() - volley.started(index)
            self._open_report(part.order, to[1], ended, rtt_s, volley.look)
        elif code in IN_PROGRESS:
            # An ICMP error that arrived while the kernel was still inside connect() is in the queue
            # only; the errno would follow with the next SYN, a second later.
            cause = next_cause(sock, to)
            if cause is not None:
                self.refused(flight, cause, cause[0])
        else:
            self.refused(flight, next_cause(sock, to), code)

    def refused(self, flight: Flight, cause: Optional[Cause], code: int) -> None:
        """A connect failed; the error queue says whether an ICMP error did it, and whose."""
        volley, index = flight
        part, to, look = volley.part, volley.addresses[index], volley.look
        order = part.order
        elapsed_s = self._now() - volley.started(index)
        sock = self._forget(flight)
        if elapsed_s > REUSE_WITHIN_S:
            self._pool.drop(sock)
        else:
            self._pool.recycle(order.shelf, sock)
        fact = None if cause is None else cause[1]
        what = failure_kind(code, fact, elapsed_of(code, elapsed_s))
        at_host = is_at_host(what, to[0])
        if at_host:
            self.answered(order, elapsed_s)
        dead = what[1] == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S
        if dead and look < order.looks:
            order.dead[to[1]] = what
            self._starts.ask_later(order, (part, to[1], look + 1))
            return
        self.report(order, to[1], what, elapsed_s if at_host else None, look)

    def opened(self, part: Part, port: int, look: int, sock: socket.socket, started: float) -> None:
        rtt_s = self._now() - started
        own = part.order.may_meet_itself()
        if own and sock.getsockname()[:2] == (part.order.target.address, port):
            # Probing one's own host, the kernel may pick the very port as source: then the socket
            # has connected to itself, which says nothing.
            self._pool.reset(sock)
            self._starts.ask_later(part.order, (part, port, look))
            return
        if part.mode != "connect":
            self.answered(part.order, rtt_s)
            self._talks.begin(part, port, look, sock, rtt_s)
            return
        # close() sends a FIN: a service that listens there sees a polite client.
        self._pool.drop(sock)
        self._open_report(part.order, port, OPEN, rtt_s, look)

    def _open_report(self, order: TcpOrder, port: int, what: Kind, rtt_s: float, look: int) -> None:
        self.answered(order, rtt_s)
        self.report(order, port, what, rtt_s, look)

    def answered(self, order: TcpOrder, rtt_s: float) -> None:
        """The destination itself answered; of many answers the slowest will do."""
        order.slowest_s = max(order.slowest_s, rtt_s)
        self._answers.learn(order.target.address, rtt_s)

    def report(
        self,
        order: TcpOrder,
        port: int,
        what: Kind,
        rtt_s: Optional[float],
        look: int,
        syns: Optional[int] = None,
    ) -> None:
        """The final outcome of one port."""
        order.outcomes.add(port, what, rtt_s, look, syns)
        self.settle(order, 1)

    def settle(self, order: TcpOrder, count: int) -> None:
        """So many ports have their final outcome."""
        order.pending -= count
        if not order.pending:
            self._finish(order)

    def _forget(self, flight: Flight) -> socket.socket:
        """A connect is no longer out; gives its socket."""
        volley, index = flight
        del self._live[volley.fds[index]]
        self._starts.window.answered(volley.batch)
        return volley.socks[index]

    def give_back(self, part: Part, sock: socket.socket) -> None:
        """An open connection is done with.

        A real service gets a FIN, as from any polite client; our own listener gets a reset, so that
        no TIME_WAIT stays on either end.
        """
        if part.mode == "nonce":
            self._pool.recycle(part.order.shelf, sock)
        else:
            self._pool.drop(sock)

    # Silence

    def _expire(self, now: float) -> None:
        """Look at what has been out for longer than its look."""
        while self._late and self._late[0][0] <= now:
            self._ask_once_more(self._late.popleft()[1], now)
        for order in list(self._orders.values()):
            first_s = self._answers.first_look_s(
                order.target.address, order.first_ms, order.look_ms
            )
            self._expire_queue(order.first, first_s, now)
            self._expire_queue(order.later, order.look_s, now)

    def _expire_queue(self, queue: Deque[Volley], limit_s: float, now: float) -> None:
        while queue:
            volley = queue[0]
            if volley.batch.out:
                if now - volley.started(len(volley) - 1) < limit_s:
                    return
                for index in range(len(volley)):
                    self._ask_once_more((volley, index), now)
            queue.popleft()

    def _ask_once_more(self, flight: Flight, now: float) -> None:
        """The deadline has passed. Believe the kernel, not our clock: a starved process is late."""
        volley, index = flight
        if not self._is_out(flight):
            return
        sock, to = volley.socks[index], volley.addresses[index]
        self.news(flight, connect_ex(sock, to))
        if not self._is_out(flight):
            return
        state = syn_state(sock)
        limit_s = volley.part.order.look_s + MOST_LATE_S
        if not state.timeouts and now - volley.started(index) < limit_s:
            self._late.append((now + LATE_S, flight))
            return
        self._pool.drop(self._forget(flight))
        self._silent(volley.part, to[1], volley.look, state)

    def _is_out(self, flight: Flight) -> bool:
        volley, index = flight
        return self._live.get(volley.fds[index]) is volley

    def _silent(self, part: Part, port: int, look: int, state: SynState) -> None:
        order = part.order
        more = look < order.looks
        syns, left = order.note_silence(port, state, more)
        if more:
            self._starts.ask_later(order, (part, port, look + 1))
            return
        dead = order.dead.pop(port, None)
        if dead is not None:
            # The neighbour's queue was full this time. What was heard once is more than silence.
            self.report(order, port, dead, None, look)
        else:
            self.report(order, port, kind("connect", NO_ANSWER, left=left), None, look, syns)
