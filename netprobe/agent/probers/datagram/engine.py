"""Asking by single packets: schedule, repetition and pacing, shared by UDP, echo and raw protocols.

A look is up to TRIES packets at growing gaps, each with an attempt number of its own, then the rest
of the look's time to listen. A paced order sends only what its pacer allows: first asks go before
repetitions, because the answering host's bucket is what is scarce.
"""

import resource
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from ...core.pace import answers_of
from ...core.pump import SHORT_FOR_S, SHORT_S, SLICE_S, TICK_S, Batch, Pump, Window, short_for_long
from ...net.errqueue import QueuedError
from ...wire.failures import HOST_UNREACHABLE, MESSAGE_TOO_LONG, NO_ANSWER, is_transient, name_of
from ..orders import Flow
from ..outcomes import FLUSH_S, Kind, kind
from .orders import REPEAT_AT, Ask, AskOrder

WINDOW = 256
CHUNK = 64
UNKNOWN_CHUNK = 32
UNKNOWN_HOLD_S = 0.05
PAUSE_S = 0.05
DEAD_AFTER_S = 0.5
# An error so soon after a packet is about that one: whoever sent it kept nothing waiting.
QUICK_S = 0.3
# send() also returns errors that ICMP left on the socket: its own failure repeats so often.
SEND_TRIES = 4
MOST_ORDERS = 2000


class AskEngine:
    """The common part of the engines; a subclass opens, packs and reads.

    ``_open(order)`` sets ``order.sock`` or raises OSError; ``_transmit(order, ask)`` sends one
    packet or raises OSError; ``_hear(order)`` reads what came and calls ``answer`` and ``error``;
    ``_release(order)`` gives the socket back.
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.now = agent.loop.now
        self._answers = answers_of(agent)
        self.orders: Dict[int, AskOrder] = {}
        self._queue: Deque[AskOrder] = deque()
        self._backlog: Deque[Dict[str, Any]] = deque()
        self._pump = Pump(agent.loop, self.run)
        self._window = Window(WINDOW)
        self._pause_until = 0.0
        self._no_socket_since: Optional[float] = None

    # Orders

    def submit(self, message: Dict[str, Any]) -> None:
        """Start an order; its outcomes and ``done`` follow."""
        if len(self.orders) >= most_orders():
            self._backlog.append(message)
            return
        order = AskOrder(self.agent, message)
        self.orders[order.id] = order
        if order.pace is not None:
            target = order.target
            order.pacer = self._answers.pacer(target.address, target.source, order.pace)
        try:
            self._open(order)
        except OSError as error:
            if is_transient(error.errno) and not self._no_socket_for_long():
                del self.orders[order.id]
                self._backlog.appendleft(message)
                self._pump.wake(SHORT_S)
            else:
                self._refuse(order, kind("bind", self.open_failure(error)))
            return
        self._no_socket_since = None
        if not order.pending:
            self._finish(order)
            return
        self._enqueue(order)
        self._pump.wake(0.0)

    def _no_socket_for_long(self) -> bool:
        """Whether this host has been short of descriptors for too long to wait on."""
        now: float = self.now()
        if self._no_socket_since is None:
            self._no_socket_since = now
        return now - self._no_socket_since > SHORT_FOR_S

    def _enqueue(self, order: AskOrder) -> None:
        if not order.queued:
            order.queued = True
            self._queue.append(order)

    def _leave_queue(self, order: AskOrder) -> None:
        if not order.queued:
            return
        order.queued = False
        # It mostly has just had its turn, and stands last: thousands of orders need no search.
        if self._queue[-1] is order:
            self._queue.pop()
        else:
            self._queue.remove(order)

    def open_failure(self, error: OSError) -> str:
        """The failure of an order whose socket could not be opened."""
        return name_of(error.errno)

    def one_way(self, ask: Ask) -> bool:
        """Whether no answer is expected: then silence is no failure."""
        return ask.part.mode == "send"

    def _refuse(self, order: AskOrder, what: Kind) -> None:
        """Nothing of this order can be asked: every port has the same outcome."""
        while True:
            flows = order.take(CHUNK)
            if not flows:
                break
            for _, port, look in flows:
                order.outcomes.add(port, what, None, look)
        self._finish(order)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        for message in self._backlog:
            if message["id"] == order_id:
                self._backlog.remove(message)
                self.agent.send({"t": "done", "id": order_id, "cancelled": True})
                return True
        order = self.orders.get(order_id)
        if order is None:
            return False
        for ask in list(order.out.values()):
            self._forget(order, ask)
        self._finish(order, True)
        return True

    def resume(self) -> None:
        """The agent's output has drained: new probes may start again."""
        if self._queue:
            self._pump.wake(0.0)

    def close(self) -> None:
        """Close every socket; outcomes of what was out are lost."""
        for order in list(self.orders.values()):
            self._release(order)
        self.orders = {}
        self._queue.clear()
        self._backlog.clear()
        self._pump.stop()

    def _finish(self, order: AskOrder, cancelled: bool = False) -> None:
        order.outcomes.flush()
        self._leave_queue(order)
        self._release(order)
        del self.orders[order.id]
        self.agent.send({"t": "done", "id": order.id, "cancelled": cancelled})
        if self._backlog and len(self.orders) < most_orders():
            self.submit(self._backlog.popleft())

    def _open(self, order: AskOrder) -> None:
        raise NotImplementedError

    def _release(self, order: AskOrder) -> None:
        raise NotImplementedError

    def _transmit(self, order: AskOrder, ask: Ask) -> None:
        raise NotImplementedError

    def _hear(self, order: AskOrder) -> None:
        raise NotImplementedError

    # The pump

    def run(self) -> None:
        """Start what may start, repeat what is due, end what has waited long enough."""
        if self._no_socket_since is not None and self._backlog:
            self.submit(self._backlog.popleft())
        until = self.now() + SLICE_S
        while self._launch():
            if self.now() > until:
                self._pump.wake(0.0)
                return
        now = self.now()
        self._window.age(now)
        for order in list(self.orders.values()):
            self._repeat(order, now)
            if self._pump.may_expire(now):
                self._expire(order, now)
            if now - order.flushed_at > FLUSH_S:
                order.flushed_at = now
                order.outcomes.flush()
        if self.orders:
            self._pump.wake(TICK_S)

    def _launch(self) -> int:
        """Start the next chunk of one order; 0 where nothing may start now."""
        room = self._window.room()
        now = self.now()
        if room <= 0 or not self._queue or now < self._pause_until or not self.agent.may_start():
            return 0
        for _ in range(len(self._queue)):
            order = self._queue[0]
            self._queue.rotate(-1)
            if order.hold_until > now and not order.answered:
                continue
            count = self.agent.rate.take(min(room, CHUNK if order.answered else UNKNOWN_CHUNK), now)
            flows = self._take(order, count, now)
            self.agent.rate.give_back(count - len(flows))
            if flows:
                order.hold_until = 0.0 if order.hold_until else now + UNKNOWN_HOLD_S
                self._start(order, flows, now)
                return 1
        return 0

    def _take(self, order: AskOrder, count: int, now: float) -> List[Flow]:
        """The next flows of an order; it leaves the queue when it has none."""
        if order.pacer is None:
            flows = order.take(count)
            if len(flows) < count:
                self._leave_queue(order)
            return flows
        paced: List[Flow] = []
        while len(paced) < count and order.pacer.wait_s(now) == 0.0:
            flows = order.take(1)
            if not flows:
                self._leave_queue(order)
                break
            order.pacer.take(now)
            paced += flows
        return paced

    def _start(self, order: AskOrder, flows: List[Flow], now: float) -> None:
        batch: Batch = [0, 1]
        self._window.add(batch, now)
        for index, flow in enumerate(flows):
            port = flow[1]
            attempt = order.attempts.pop(port, 0) + 1
            ask = Ask(flow, attempt, batch, self.now())
            order.out[port] = ask
            batch[0] += 1
            self._window.young += 1
            late = flow[2] > 1
            (order.later if late else order.first).append(ask)
            order.repeats[late][0].append(ask)
            if not self._send(order, ask):
                for rest in flows[index + 1 :]:
                    self.ask_later(order, rest)
                break
        if order.id in self.orders:
            self._hear(order)

    def _send(self, order: AskOrder, ask: Ask) -> bool:
        """Send one packet; False where our own host has no room for more just now."""
        number: Optional[int] = None
        for _ in range(SEND_TRIES):
            try:
                ask.sent_at = self.now()
                self._transmit(order, ask)
                order.short_since = None
                return True
            except OSError as error:
                number = error.errno
            if is_transient(number):
                break
            # It may be the error of another packet, reported here; then the next try is clean. If
            # our own firewall rejected this one, the error queue knows better than errno.
            self._hear(order)
            if order.out.get(ask.port) is not ask:
                return True
        if order.out.get(ask.port) is not ask:
            return True
        if is_transient(number) and not short_for_long(order, self.now()):
            self._pause_until = self.now() + PAUSE_S
            if ask.tries == 1:
                self._forget(order, ask)
                order.attempts[ask.port] = ask.attempt
                self.ask_later(order, (ask.part, ask.port, ask.look))
            return False
        self.end(order, ask, kind("send", name_of(number), None, False))
        return True

    def ask_later(self, order: AskOrder, flow: Flow) -> None:
        """Ask again when its turn comes."""
        order.put_back(flow)
        self._enqueue(order)

    # Repetition and silence

    def _look_s(self, order: AskOrder, late: int) -> float:
        if late:
            return order.look_s
        return self._answers.first_look_s(order.target.address, order.first_ms, order.look_ms)

    def _repeat(self, order: AskOrder, now: float) -> None:
        for late in (0, 1):
            look_s = self._look_s(order, late)
            for number, share in enumerate(REPEAT_AT):
                queue = order.repeats[late][number]
                while queue and self._repeat_one(
                    order, queue[0], late, number, now, look_s * share
                ):
                    queue.popleft()

    def _repeat_one(
        self, order: AskOrder, ask: Ask, late: int, number: int, now: float, after_s: float
    ) -> bool:
        """Send packet ``number + 2`` of a look if it is due; False where it is not."""
        if order.out.get(ask.port) is not ask:
            return True
        if now - ask.since < after_s:
            return False
        if order.pacer is not None and (order.queued or not order.pacer.take(now)):
            return True
        ask.tries += 1
        ask.attempt += 1
        self._send(order, ask)
        if number + 1 < len(REPEAT_AT):
            order.repeats[late][number + 1].append(ask)
        return True

    def _expire(self, order: AskOrder, now: float) -> None:
        for late, queue in enumerate((order.first, order.later)):
            limit_s = self._look_s(order, late)
            while queue and (order.out.get(queue[0].port) is not queue[0]
                             or now - queue[0].since >= limit_s):  # fmt: skip
                ask = queue.popleft()
                if order.out.get(ask.port) is ask:
                    # Read once more: what arrived while this process did not run is no silence.
                    self._hear(order)
                if order.out.get(ask.port) is ask:
                    self._silent(order, ask)

    def _silent(self, order: AskOrder, ask: Ask) -> None:
        if ask.look < order.looks:
            self._forget(order, ask)
            order.attempts[ask.port] = ask.attempt
            self.ask_later(order, (ask.part, ask.port, ask.look + 1))
            return
        silent = kind("send") if self.one_way(ask) else kind("answer", NO_ANSWER)
        # Attempts are numbered over all looks: the last number is how many packets went.
        self.end(order, ask, order.dead.pop(ask.port, silent), packets=ask.attempt)

    # What the subclasses report

    def answer(self, order: AskOrder, ask: Ask, what: Kind) -> None:
        """A genuine sign of life from the destination on this flow."""
        rtt_s = self.now() - ask.sent_at
        self._learn(order, rtt_s)
        self.end(order, ask, what, rtt_s)

    def error(self, order: AskOrder, ask: Ask, error: QueuedError) -> None:
        """An ICMP error (or one of our own kernel) about a packet of this flow."""
        now = self.now()
        name = name_of(error.errno)
        fact = error.fact()
        elapsed_s = waited_s(now, ask.since, ask.sent_at)
        elapsed_ms = round(elapsed_s * 10) * 100 if name == HOST_UNREACHABLE else None
        op = "send" if self.one_way(ask) else "answer"
        mtu = error.info if name == MESSAGE_TOO_LONG else None
        what = kind(op, name, fact, elapsed_ms=elapsed_ms, mtu=mtu)
        at_host = fact is not None and fact[2] == order.target.address
        if at_host:
            self._learn(order, now - ask.sent_at)
        if name == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S and ask.look < order.looks:
            order.dead[ask.port] = what
            self._silent(order, ask)
            return
        self.end(order, ask, what, now - ask.sent_at if at_host else None)

    def _learn(self, order: AskOrder, rtt_s: float) -> None:
        order.answered = True
        self._answers.learn(order.target.address, rtt_s)

    def end(
        self,
        order: AskOrder,
        ask: Ask,
        what: Kind,
        rtt_s: Optional[float] = None,
        packets: Optional[int] = None,
    ) -> None:
        """The final outcome of one flow."""
        self._forget(order, ask)
        order.dead.pop(ask.port, None)
        order.outcomes.add(ask.port, what, rtt_s, ask.look, packets)
        order.pending -= 1
        if not order.pending:
            self._finish(order)

    def _forget(self, order: AskOrder, ask: Ask) -> None:
        del order.out[ask.port]
        self._window.answered(ask.batch)


def waited_s(now: float, since: float, sent_at: float) -> float:
    """How long an error kept us waiting, given the look's first packet and the latest one.

    A router whose bucket of answers was empty refuses a later packet of a look at once; one that
    looks for a dead neighbour answers for the first packet, three seconds after it.
    """
    return now - sent_at if now - sent_at < QUICK_S else now - since


def most_orders() -> int:
    """How many orders, each with a socket, may be worked on at once: a part of the soft limit."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return MOST_ORDERS
    return max(8, min(MOST_ORDERS, soft // 8))
