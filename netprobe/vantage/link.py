"""The coordinator's end of a running agent: frames out, replies and streams of outcomes in."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from netprobe.agent.wire.answers import Alive, Done, EchoOutcomes, Fault, ProbeOutcomes
from netprobe.agent.wire.frames import BEAT_S, SILENCE_S, FrameReader, encode_frame
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.orders import Beat, RateOrder, StopOrder
from netprobe.errors import AgentError
from netprobe.model.printable import clean
from netprobe.vantage.base import ended_words
from netprobe.vantage.handshake import Greeting
from netprobe.vantage.patience import (
    GRACE_S,
    MOST_ESTIMATES,
    Moment,
    OpenOrder,
    OrderPatience,
    effort_of,
)
from netprobe.vantage.pauses import LinkPauses
from netprobe.vantage.process import AgentProcess

log = logging.getLogger(__name__)

# How many frames of one order may wait. A consumer that lags stops the reading of this agent's
# output, whose queue then stops its probes: that is the back pressure.
QUEUE_FRAMES = 256
READ_BYTES = 256 * 1024
CLOSE_S = 3.0
# Somebody waits for the end of an interrupted run.
HURRIED_CLOSE_S = 1.0
# An agent that reports more bugs of its own, of no order that waits, is of no use.
MOST_FAULTS = 64
# Requests and orders share the wire's ``id``; requests count from a number that no order reaches.
FIRST_REQUEST_ID = 1 << 32

# Answers of an order that runs for a while; all others answer one request (a fault may be either).
STREAMED = (ProbeOutcomes, EchoOutcomes, Done)

Answer = TypeVar("Answer")


class LinkLost(Struct, frozen=True):
    """The last message of every order when the agent is gone."""

    words: str


# The reasons of its flows: it is gone, or alive and too slow.
LOST, SLOW = "agent-lost", "agent-slow"
# Who missed so many beats is not called alive.
ALIVE_BEATS = 2


class Beats(Struct, frozen=True):
    """How often we send a beat, and how long the other end may be silent. Seconds.

    ``grace_s``: what an agent may take for an order beyond the order's own work. ``stalled_s``: so
    much of its pauses and its waiting for a processor comes on top at most.
    """

    interval_s: float = BEAT_S
    silence_s: float = SILENCE_S
    grace_s: float = GRACE_S
    stalled_s: float = 300.0


class AgentLink:
    """One agent. ``lost`` ends with an AgentError, for every waiter, when the agent is gone;
    ``is_refused``: because it broke the rules of the wire.

    ``skew_s``: how far its clock is ahead of ours, at least (below zero: behind).
    ``cost`` is a sentence about what this agent cannot do because sudo failed, or None.
    ``is_python_sent``: the host has no Python, and runs the agent with the one that we sent.
    """

    def __init__(
        self, host: str, process: AgentProcess, greeting: Greeting, beats: Beats, cost: str | None
    ) -> None:
        self.host = host
        self.hello = greeting.hello
        self.skew_s = greeting.skew_s
        self.cost = cost
        self.is_python_sent = False
        loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = loop.create_future()
        # Mark the exception as retrieved, so that asyncio does not log that it never was.
        self.lost.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._process = process
        self._beats = beats
        self._reader = FrameReader(ANSWERS)
        self._ids = itertools.count(FIRST_REQUEST_ID)
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._streams: dict[int, asyncio.Queue[Any]] = {}
        self.is_refused = False
        self._faults = 0
        self._farewells: set[asyncio.Task[None]] = set()
        self._time = loop.time
        # For so long this process did not run, and nothing could be heard.
        self._stood_still_s = 0.0
        self._heard_at = self._read_clock()
        self._pauses = LinkPauses(self._time())
        # Who asks for fresh ones waits for the answer to the next beat.
        self._next_alive: asyncio.Future[None] | None = None
        self._open_orders: dict[object, OpenOrder] = {}
        self._answered = self._read_moment()
        self._patience = OrderPatience(greeting.hello.nofile, beats.grace_s)
        reading = loop.create_task(self._read_frames(greeting.rest))
        self._tasks = [reading, loop.create_task(self._send_beats())]

    @property
    def pid(self) -> int:
        """The process id of the local command."""
        return self._process.pid

    @property
    def exit_status(self) -> int:
        """The exit status of the local command; 0 after an orderly stop."""
        return self._process.status

    def send(self, message: Any) -> None:
        """Queue one frame; a caller that needs to know that it arrived uses ``request``."""
        if isinstance(message, RateOrder):
            self._patience.per_s = message.per_s
        if not self.lost.done():
            self._process.stdin.write(encode_frame(message))

    @contextlib.contextmanager
    def expect(self, order: Any) -> Iterator[None]:
        """Let the agent owe an answer to this order meanwhile; it is lost where none comes."""
        key = object()
        self._open_orders[key] = OpenOrder(effort_of(order), self._read_moment())
        try:
            yield
        finally:
            del self._open_orders[key]

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Send an order that has one answer, and give that.

        An order with id 0 gets one here; one that names a round or a capture brings its own.
        Raises AgentError when the agent is lost, its own bug kept it from answering, or it answers
        with another message than ``answer``.
        """
        identity = order.id or next(self._ids)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[identity] = reply
        try:
            with self.expect(order):
                self.send(order._replace(id=identity))
                await self._drain_input()
                if self.lost.done():
                    self.lost.result()
                return self.check_answer(await reply, answer)
        finally:
            del self._replies[identity]

    def subscribe(self, order_id: int) -> asyncio.Queue[Any]:
        """Give the queue of an order's answers: outcomes, then ``Done`` or ``Fault``.

        A lost agent adds a last ``LinkLost``. Read it to its end or ``unsubscribe``: it is bounded.
        """
        return self._streams.setdefault(order_id, asyncio.Queue(QUEUE_FRAMES))

    def awaits(self, order_id: int) -> bool:
        """Tell whether somebody has subscribed to the answers of this order."""
        return order_id in self._streams

    def unsubscribe(self, order_id: int) -> None:
        """Answers of this order are no longer wanted; harmless when it is over."""
        queue = self._streams.pop(order_id, None)
        while queue is not None and not queue.empty():
            queue.get_nowait()

    async def stream(self, order: Any, answer: type[Answer]) -> AsyncIterator[Answer]:
        """Send an order and give its outcomes until it is done.

        Raises AgentError when the agent is lost, or when its own bug ended the order.
        """
        queue = self.subscribe(order.id)
        try:
            with self.expect(order):
                self.send(order)
                await self._drain_input()
                while True:
                    message = await queue.get()
                    if isinstance(message, Done):
                        return
                    yield self.check_answer(message, answer)
        finally:
            self.unsubscribe(order.id)

    async def close(self, patience_s: float = CLOSE_S) -> None:
        """Stop the agent, wait for its goodbye, then end its processes. Never raises."""
        self.send(StopOrder())
        try:
            await self._process.end(patience_s)
        finally:
            self._end_link("the agent was stopped")
            for task in (*self._tasks, *self._farewells):
                task.cancel()

    def kill(self) -> None:
        """End its processes at once; harmless where they are gone."""
        self._process.kill()

    def check_answer(self, message: Any, answer: type[Answer]) -> Answer:
        """Give the message, which must be an ``answer``: an agent that sends another one is lost.

        Raises AgentError where it is another one, the agent's own bug, or the end of the link.
        """
        if isinstance(message, LinkLost):
            self.lost.result()
        if isinstance(message, Fault):
            raise AgentError("agent-fault", f"{self.host}: {_word_fault(message)}")
        if not isinstance(message, answer):
            raise self.refuse(f"{type(message).__name__} where {answer.__name__} was due")
        return message

    def refuse(self, sent: str) -> AgentError:
        """End an agent for what it sent, and give the error of all who wait for it.

        Whatever else it says or does is of no use to anybody.
        """
        self._end_link(f"it sent {sent}")
        self.is_refused = True
        self._process.signal(signal.SIGKILL)
        # One that we may not kill (sudo's) ends with its input.
        self._process.stdin.close()
        error = self.lost.exception()
        assert isinstance(error, AgentError)
        return error

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        """Tell for how many seconds of a look the agent, the stream to it or this process stood
        still at most, whenever it was since then (of the loop's clock), in pauses of at least
        ``least_s``; ``look_s`` infinite: in all since then. Raises AgentError when it is lost."""
        end = self._time()
        while self._pauses.known_until < end:
            if self._next_alive is None:
                self._next_alive = asyncio.get_running_loop().create_future()
                self._send_beat()
            await asyncio.wait((self._next_alive, self.lost), return_when=asyncio.FIRST_COMPLETED)
            if self.lost.done():
                self.lost.result()
        return self._pauses.lost_s(start, end, look_s, least_s)

    def _take_alive(self, alive: Alive) -> None:
        self._pauses.take_alive(alive, self._time())
        if self._next_alive is not None:
            self._next_alive.set_result(None)
            self._next_alive = None

    async def _drain_input(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.drain()

    async def _read_frames(self, rest: bytes) -> None:
        words = "its output could not be read"
        try:
            data = rest
            while True:
                for message in self._reader.feed(data):
                    if self.lost.done():
                        return
                    await self._deliver_message(message)
                self._heard_at = self._read_clock()
                data = await self._process.stdout.read(READ_BYTES)
                if not data:
                    break
            status = await self._process.wait()
            words = ended_words(self._process.command, status, self._process.last_words())
        except ValueError as error:
            self.refuse(f"something else than messages of this version ({error})")
        finally:
            self._end_link(words)

    async def _deliver_message(self, message: Any) -> None:
        if isinstance(message, Alive):
            self._take_alive(message)
            return
        identity = getattr(message, "id", 0)
        queue, reply = self._streams.get(identity), self._replies.get(identity)
        if queue is not None or reply is not None:
            self._answered = self._read_moment()
        # A round and an order may have the same id, as far as the wire is concerned.
        if queue is not None and (reply is None or isinstance(message, STREAMED)):
            await queue.put(message)
        elif reply is not None:
            if not reply.done():
                reply.set_result(message)
        elif isinstance(message, Fault):
            await self._take_fault(message)

    async def _take_fault(self, fault: Fault) -> None:
        """Report a bug of no order that waits. Raises ValueError at too many."""
        self._faults += 1
        if self._faults > MOST_FAULTS:
            raise ValueError(f"more than {MOST_FAULTS} bugs of its own")
        log.warning("%s", clean(f"{self.host}: {_word_fault(fault)}"))
        if fault.id is None:
            await self._fail_all(fault)

    async def _fail_all(self, fault: Fault) -> None:
        """Pass the fault to every waiter: a bug that names no order may have ended any of them."""
        for reply in self._replies.values():
            if not reply.done():
                reply.set_result(fault)
        for queue in list(self._streams.values()):
            await queue.put(fault)

    async def _send_beats(self) -> None:
        while not self.lost.done():
            self._send_beat()
            due = self._time() + self._beats.interval_s
            await asyncio.sleep(self._beats.interval_s)
            self._pauses.note_turn(due, self._time())
            self._stood_still_s += max(0.0, self._time() - due)
            if any(queue.full() for queue in self._streams.values()):
                # While a consumer lags we do not read: that time is not the agent's.
                self._stood_still_s += self._beats.interval_s
            fault = self._find_fault()
            if fault is not None:
                self._end_link(*fault)
                self._process.signal(signal.SIGKILL)

    def _send_beat(self) -> None:
        self.send(Beat())
        self._pauses.note_beat(self._time())

    def _read_clock(self) -> float:
        """Give a time that does not pass while this process stands still."""
        return self._time() - self._stood_still_s

    def _read_moment(self) -> Moment:
        stalled_s = self._pauses.stalled_s + self._pauses.overdue_s(self._time())
        return Moment(self._read_clock(), stalled_s)

    def _count_run(self, since: Moment) -> float:
        """Tell how long the agent could run since then, as far as its pauses excuse it."""
        now = self._read_moment()
        stalled_s = min(max(0.0, now.stalled - since.stalled), self._beats.stalled_s)
        return now.at - since.at - stalled_s

    def _find_fault(self) -> tuple[str, str] | None:
        """Say in words why the agent counts as lost, and the reason of its flows: its silence, an
        order that it owes, or one that takes too long although it goes on."""
        now = self._read_clock()
        if now - self._heard_at > self._beats.silence_s:
            return f"it was silent for {self._beats.silence_s:g} s", LOST
        open_orders = self._open_orders.values()
        deadlines_s = self._patience.deadlines_s([one.effort for one in open_orders])
        for one, limit_s in zip(open_orders, deadlines_s, strict=True):
            one.estimate_s = max(one.estimate_s, limit_s)
            owed = f"not finished {one.effort.what}"
            waited_s = self._count_run(max(one.sent, self._answered))
            if waited_s > limit_s:
                lives = now - self._heard_at < ALIVE_BEATS * self._beats.interval_s
                start = "it is alive but has" if lives else "it has"
                return f"{start} {owed} for {waited_s:.0f} s", LOST
            ran_s = self._count_run(one.sent)
            if ran_s > MOST_ESTIMATES * one.estimate_s:
                return f"it is slow: it goes on and has {owed} in {ran_s:.0f} s", SLOW
        return None

    def _end_link(self, words: str, reason: str = LOST) -> None:
        if self.lost.done():
            return
        error = AgentError(reason, f"the agent of {self.host} was lost: {words}")
        self.lost.set_exception(error)
        for reply in self._replies.values():
            if not reply.done():
                reply.set_result(LinkLost(str(error)))
        # Who waits until it reads its input would wait for ever.
        self._process.abort_input()
        for queue in self._streams.values():
            if not queue.full():
                queue.put_nowait(LinkLost(str(error)))
            else:
                self._farewells.add(asyncio.create_task(queue.put(LinkLost(str(error)))))


def _word_fault(fault: Fault) -> str:
    """Say what kept the agent from its work; only a bug needs its traceback."""
    if fault.short_of is not None:
        return f"the agent's host has no {fault.short_of} left"
    return f"a bug in the agent: {fault.words}"
