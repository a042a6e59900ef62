"""TCP probes: thousands of connects at once over one epoll descriptor and a pool of used sockets.

Connects that start together share one object. A refused socket connects again at once. Connects
that stay silent leave the window after a moment, so drops cost time, not rate.
"""

import select
import socket
from typing import Deque, Dict, List, Optional

from ...core.agent import AgentCore
from ...core.pump import SLICE_S, TICK_S, Pump
from ...net.errqueue import ConnectError, next_cause
from ...net.sockets import SynState, disconnect_is_thorough, opening_of, syn_state
from ...wire import replies
from ...wire.failures import ENDED_AFTER_OPEN, HOST_UNREACHABLE, IN_PROGRESS, NO_ANSWER, STOOD_STILL
from ...wire.orders import ProbeOrder
from ...wire.parts import OutcomeKind
from ..orders import OrderReport, ProbePart
from ..outcomes import kind
from .completions import OPEN, REUSE_WITHIN_S, Completions, elapsed_of, failure_kind, is_at_host
from .exchanges import TcpExchanges
from .scheduler import ConnectScheduler
from .socket_pool import ConnectBatch, PendingConnect, SocketPool, TcpOrder, connect_ex, pick

MOST_EVENTS = 4096
# A quick "host unreachable" is a refusal. After this long a router gave up on a dead neighbour.
DEAD_AFTER_S = 0.5

ENDED = kind("answer", answer=replies.RESET)


class TcpEngine:
    """All TCP orders of the agent."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._now = agent.loop.now
        self._answers = agent.answers
        self._pauses = agent.loop.pauses
        self._epoll = select.epoll()
        agent.loop.watch(self._epoll.fileno(), select.EPOLLIN, lambda events: self._run_turn())
        self._pool = SocketPool(self._epoll)
        self._pump = Pump(agent.loop, self._run_turn)
        self._orders: Dict[int, TcpOrder] = {}
        # The batch of the connect that is out on a descriptor.
        self._live: Dict[int, ConnectBatch] = {}
        self._scheduler = ConnectScheduler(agent, self, self._pool, self._live)
        self._completions = Completions(self, self._pool, self._live, self._scheduler.window)
        self._exchanges = TcpExchanges(agent, self, self._scheduler)
        # The next time at which a connect may have been out for too long.
        self._expire_at = 0.0

    # Orders

    def submit(
        self, order: ProbeOrder, report: Optional[OrderReport] = None, place: int = 1
    ) -> None:
        """Start the work at one destination; its outcomes and ``Done`` follow."""
        if not self._orders:
            self._pool.measure()
        running = TcpOrder(self._agent, order, self._pool, report, place)
        self._orders[running.id] = running
        if not running.pending:
            self._finish_order(running)
            return
        self._scheduler.add(running)
        self._pump.wake(0.0)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        found = [each for each in self._orders.values() if each.is_part_of(order_id)]
        for order in found:
            for fd, batch in list(self._live.items()):
                if batch.part.order is order:
                    self._pool.drop(self._forget_connect((batch, batch.indices((fd,))[0])))
            self._exchanges.drop(order)
            self._finish_order(order, True)
        return bool(found)

    def resume(self) -> None:
        """Start new probes again: the agent's output has drained."""
        if self._scheduler.lines:
            self._pump.wake(0.0)

    def close(self) -> None:
        """Close every socket; the outcomes of connects that are out are lost."""
        for fd, batch in list(self._live.items()):
            batch.socks[batch.indices((fd,))[0]].close()
        self._exchanges.drop(None)
        self._pool.empty()
        self._live.clear()
        self._orders = {}
        self._scheduler.lines.clear()
        self._pump.stop()
        self._agent.loop.unwatch(self._epoll.fileno())
        self._epoll.close()

    def _finish_order(self, order: TcpOrder, cancelled: bool = False) -> None:
        del self._orders[order.id]
        self._scheduler.remove(order)
        if not self._orders:
            self._pool.empty()
        order.finish(cancelled)

    # The pump: start, serve, look at deadlines

    def _run_turn(self) -> None:
        """Serve events, start connects, then look at deadlines."""
        now = self._now()
        until = now + SLICE_S
        # First, connects that are no longer young make room in the window.
        self._scheduler.window.age(now)
        while now <= until and self._serve_events() + self._scheduler.start_next():
            now = self._now()
        busy = now > until
        self._pool.age(now)
        # Everything that had arrived was served just above, and each socket is asked once more.
        wait_s = self._expire_connects(now)
        self._exchanges.expire(now)
        for order in self._orders.values():
            order.flush_outcomes(now)
        if self._orders:
            self._pump.wake(0.0 if busy else wait_s)

    # Results

    def _serve_events(self) -> int:
        """Handle every connect and exchange that has news; gives how many there were."""
        total = 0
        poll = self._epoll.poll
        events = poll(0, MOST_EVENTS)
        while events:
            now = self._now()
            total += len(events)
            self._exchanges.hear_all(events)
            self._pool.hear(events)
            refused = self._completions.take_events(events, now)
            if not refused:
                break
            events = poll(0, MOST_EVENTS)
            self._completions.sort_refused(refused, events, now)
        return total

    def take_result(self, connect: PendingConnect, code: int) -> None:
        """Take the result of one connect: opened, still out, or failed."""
        batch, index = connect
        part, to, sock = batch.part, batch.addresses[index], batch.socks[index]
        if code == 0:
            self._forget_connect(connect)
            self.take_open(part, to[1], batch.look, sock, batch.started(index))
        elif code in ENDED_AFTER_OPEN:
            # The handshake was complete and a reset came before we looked: the port is open.
            self._forget_connect(connect)
            self._pool.drop(sock)
            ended = OPEN if part.mode == "connect" else ENDED
            rtt_s = self._now() - batch.started(index)
            self._report_open(part.order, to[1], ended, rtt_s, batch.look)
        elif code in IN_PROGRESS:
            # An ICMP error that arrived while the kernel was still inside connect() is in the queue
            # only; the errno would follow with the next SYN, a second later.
            cause = next_cause(sock, to)
            if cause is not None:
                self.take_failure(connect, cause, cause[0])
        else:
            self.take_failure(connect, next_cause(sock, to), code)

    def take_failure(
        self, connect: PendingConnect, cause: Optional[ConnectError], code: int
    ) -> None:
        """End a connect that failed; ``cause`` is from its error queue."""
        batch, index = connect
        part, to, look = batch.part, batch.addresses[index], batch.look
        order = part.order
        elapsed_s = self._now() - batch.started(index)
        sock = self._forget_connect(connect)
        if elapsed_s > REUSE_WITHIN_S:
            self._pool.drop(sock)
        else:
            self._pool.recycle(order.shelf, sock)
        fact = None if cause is None else cause[1]
        what = failure_kind(code, fact, elapsed_of(code, elapsed_s))
        at_host = is_at_host(what, to[0])
        if at_host:
            self.learn_rtt(order, elapsed_s)
        dead = what.failure == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S
        if dead and look < order.looks:
            order.dead[to[1]] = what
            self._scheduler.ask_later(order, (part, to[1], look + 1))
            return
        self.report(order, to[1], what, elapsed_s if at_host else None, look)

    def take_open(
        self, part: ProbePart, port: int, look: int, sock: socket.socket, started: float
    ) -> None:
        """Take a connect that opened: report the port, or send its request."""
        rtt_s = self._now() - started
        own = part.order.may_meet_itself()
        if own and sock.getsockname()[:2] == (part.order.target.address, port):
            # The kernel may choose the probed port as source port: then the socket has connected to
            # itself, which says nothing about the port.
            self._pool.reset(sock)
            self._scheduler.ask_later(part.order, (part, port, look))
            return
        syns: Optional[int] = None
        if rtt_s > REUSE_WITHIN_S:
            syns, rtt_s = opening_of(sock, rtt_s)
        if part.mode != "connect":
            self.learn_rtt(part.order, rtt_s)
            self._exchanges.begin(part, port, look, sock, (rtt_s, syns))
            return
        # close() sends a FIN, as any polite client does.
        self._pool.drop(sock)
        self._report_open(part.order, port, OPEN._replace(packets=syns), rtt_s, look)

    def _report_open(
        self, order: TcpOrder, port: int, what: OutcomeKind, rtt_s: float, look: int
    ) -> None:
        self.learn_rtt(order, rtt_s)
        self.report(order, port, what, rtt_s, look)

    def learn_rtt(self, order: TcpOrder, rtt_s: float) -> None:
        """Note that the destination itself answered."""
        order.has_answered = True
        self._answers.learn(order.target.address, rtt_s)

    def report(
        self,
        order: TcpOrder,
        port: int,
        what: OutcomeKind,
        rtt_s: Optional[float],
        look: int,
        packets: Optional[int] = None,
    ) -> None:
        """Note the final outcome of one port."""
        order.outcomes.add(port, what, rtt_s, look, packets)
        self.settle_ports(order, 1)

    def settle_ports(self, order: TcpOrder, count: int) -> None:
        """Note that so many ports have their final outcome."""
        order.pending -= count
        if not order.pending:
            self._finish_order(order)

    def _forget_connect(self, connect: PendingConnect) -> socket.socket:
        """Forget a connect, which is no longer out; gives its socket."""
        batch, index = connect
        self._completions.forget_connects(batch, [index])
        return batch.socks[index]

    def give_back_socket(self, part: ProbePart, sock: socket.socket) -> None:
        """Take back the socket of an exchange that is over.

        A real service gets a FIN, as from any polite client; our own listener gets a reset, so that
        no TIME_WAIT stays on either end.
        """
        if part.mode == "nonce":
            self._pool.recycle(part.order.shelf, sock)
        else:
            self._pool.drop(sock)

    # Silence

    def _expire_connects(self, now: float) -> float:
        """Check every connect that has been out for longer than its look; gives the time until the
        next one may be, at most a tick."""
        wait_s = self._expire_at - now
        if wait_s > 0:
            return wait_s
        wait_s = TICK_S
        for order in list(self._orders.values()):
            first_s = self._answers.first_look_s(
                order.target.address, order.first_ms, order.look_ms
            )
            for queue, limit_s in ((order.first, first_s), (order.later, order.look_s)):
                wait_s = min(wait_s, self._expire_queue(queue, limit_s, now))
        self._expire_at = now + wait_s
        return wait_s

    def _expire_queue(self, queue: Deque[ConnectBatch], limit_s: float, now: float) -> float:
        while queue:
            batch = queue[0]
            if batch.out:
                started = batch.started(len(batch) - 1)
                if not self._pauses.is_over(started, limit_s, now):
                    left_s = started + limit_s - now
                    return left_s if left_s > 0 else TICK_S
                spoilt = self._pauses.is_spoilt(started, limit_s, now)
                self._end_late(batch, spoilt)
            queue.popleft()
        return TICK_S

    def _end_late(self, batch: ConnectBatch, spoilt: bool) -> None:
        """End what is out of a batch after its deadline. The kernel decides: this process may be
        late."""
        for index in self._list_out(batch):
            code = connect_ex(batch.socks[index], batch.addresses[index])
            self.take_result((batch, index), code)
        rest = self._list_out(batch)
        socks = pick(batch.socks, rest)
        states = list(map(syn_state, socks))
        self._completions.forget_connects(batch, rest)
        if disconnect_is_thorough():
            self._pool.call_off(batch.part.order.shelf, socks)
        else:  # a socket that has repeated its SYN would remember that
            for sock in socks:
                self._pool.drop(sock)
        for port, state in zip(pick(batch.ports, rest), states):
            self._end_look(batch.part, port, batch.look, state, spoilt)

    def _list_out(self, batch: ConnectBatch) -> List[int]:
        """List the connects of a batch that are still out."""
        return [at for at, each in enumerate(map(self._live.get, batch.fds)) if each is batch]

    def _end_look(
        self, part: ProbePart, port: int, look: int, state: SynState, spoilt: bool
    ) -> None:
        order = part.order
        following = order.follow(look, port, spoilt)
        syns, left = order.note_silence(port, state, following is not None)
        if following is not None:
            self._scheduler.ask_later(order, (part, port, following))
            return
        dead = order.dead.pop(port, None)
        if dead is not None:
            # The retry timed out, but the first attempt got "host unreachable". Report that: an
            # explicit error outweighs a timeout.
            self.report(order, port, dead, None, look)
        else:
            what = kind("connect", STOOD_STILL if spoilt else NO_ANSWER, left=left)
            self.report(order, port, what, None, look, syns)
