"""The coordinator's end of a stream: a TCP connection that an agent opened on its host."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast, get_args

from msgspec import Struct

from netprobe.agent.wire import stream_messages as wire
from netprobe.agent.wire.answers import Fault
from netprobe.model.konnectivity import Event, EventKind, Opened
from netprobe.vantage.link import AgentLink, LinkLost

CREDIT_BYTES = 64 * 1024
CONNECT_S = 4.0
PIECE_BYTES = 16 * 1024

# A stream opens, has a FIN, and ends; then the link may be over. Every timeout was asked for.
UNAWAITED = 4
EVENTS = frozenset(get_args(EventKind)) - {"data"}

# Streams share the wire's ``id`` with orders and requests, which count from lower numbers.
_IDS = itertools.count(1 << 40)


def next_id() -> int:
    """Give an id that no other stream or port has."""
    return next(_IDS)


class Target(Struct, frozen=True):
    """Where a stream goes, and how: ``mss`` is the most that TCP may put into one segment."""

    address: str
    port: int
    source: str | None = None
    mss: int | None = None
    timeout_s: float = CONNECT_S


@contextlib.asynccontextmanager
async def open_stream(link: AgentLink, target: Target) -> AsyncIterator[Stream]:
    """Open a stream and close it at the end; ``stream.opened`` says whether there is one.

    Raises AgentError where the agent is lost or its own bug ended the stream.
    """
    stream = Stream(link)
    try:
        await stream.open(target)
        yield stream
    finally:
        await stream.close()


class Stream:
    """A stream of one agent; use ``open_stream``, or ``open_port`` for those that come in."""

    def __init__(self, link: AgentLink, accepted: int | None = None) -> None:
        """``accepted``: the id of one that came in."""
        self.opened = Opened(failure="no-answer" if accepted is None else None)
        self._link = link
        self._id = next_id() if accepted is None else accepted
        self._credit = CREDIT_BYTES
        # How many bytes came and were not credited yet, and how many events may still come.
        self._uncredited = 0
        self._due = UNAWAITED
        self._awaits = 0
        self._credited = asyncio.Event()
        self._messages: deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._infos: deque[asyncio.Future[wire.StreamInfo]] = deque()
        self._over = False
        self._pump = asyncio.create_task(self._read_queue(link.subscribe(self._id)))
        link.lost.add_done_callback(self._end_waits)

    async def open(self, target: Target) -> None:
        """Connect and wait for the outcome, a refusal and silence included."""
        timeout_ms = round(target.timeout_s * 1000)
        place = target.address, target.port, target.source, target.mss
        order = wire.StreamOpenOrder(self._id, *place, timeout_ms)
        self._link.send(order)
        with self._link.expect(order):
            message = await self._take_message()
        opened = self._link.check_answer(message, wire.StreamOpened)
        self.opened = _read_opened(opened)
        self._over = self.opened.failure is not None

    async def send(self, data: bytes) -> None:
        """Send bytes; waits where 64 KiB are on their way already."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            while self._credit < len(piece):
                self._credited.clear()
                await self._credited.wait()
            self._credit -= len(piece)
            self._link.send(wire.StreamSendOrder(self._id, piece))

    async def receive(self, limit_s: float) -> Event:
        """Give the next event; ``timeout`` where the agent heard nothing for so long."""
        event = self._read_event(await self._take_answer(limit_s))
        if event.kind == "data":
            self._uncredited -= len(event.data)
            self._link.send(wire.StreamCredit(self._id, len(event.data)))
        self._over = self._over or event.over
        return event

    async def info(self) -> Mapping[str, int]:
        """Give the numbers of TCP_INFO as they are now; empty where the connection is gone."""
        answer: asyncio.Future[wire.StreamInfo] = asyncio.get_running_loop().create_future()
        self._infos.append(answer)
        order = wire.StreamInfoOrder(self._id)
        self._link.send(order)
        with self._link.expect(order):
            return (await answer).tcp or {}

    async def close(self, reset: bool = False) -> None:
        """Close the connection; harmless when it is over."""
        if not self._link.lost.done():
            self._link.send(wire.StreamDropOrder(self._id, reset))
        self._link.lost.remove_done_callback(self._end_waits)
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._link.unsubscribe(self._id)

    async def _take_answer(self, limit_s: float) -> Any:
        """Give what comes next, or the timeout of a wait that begins now.

        Bytes may cross the order for an earlier wait, whose timer then goes on in the agent: its
        timeout says nothing about this wait.
        """
        order = wire.StreamAwaitOrder(self._id, round(limit_s * 1000))
        is_asked = False
        with self._link.expect(order):
            while True:
                if not is_asked and not self._messages and not self._over:
                    is_asked = True
                    self._due += 1
                    self._awaits += 1
                    self._link.send(order)
                message = await self._take_message()
                if not _is_timeout(message) or (is_asked and message.awaits == self._awaits):
                    return message

    async def _take_message(self) -> Any:
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()

    def _read_event(self, message: Any) -> Event:
        if isinstance(message, wire.StreamReceived):
            return Event("data", message.data, *message.times, tcp=message.tcp or {})
        event = self._link.check_answer(message, wire.StreamEvent)
        kind = cast(EventKind, event.kind)
        return Event(kind, b"", *event.times, event.failure, event.icmp, event.soft, event.tcp)

    async def _read_queue(self, queue: asyncio.Queue[Any]) -> None:
        """Empty the link's queue at once: a full one would stop every other stream of the agent."""
        while True:
            message = await queue.get()
            wrong = self._find_wrong(message)
            if wrong is not None:
                self._link.refuse(f"{type(message).__name__}: {wrong}")
                return
            if isinstance(message, wire.StreamCredit):
                self._credit += message.bytes
                self._credited.set()
            elif isinstance(message, wire.StreamInfo) and self._infos:
                self._answer_info(message)
            elif not isinstance(message, LinkLost):
                self._messages.append(message)
                self._arrived.set()
                if isinstance(message, Fault):
                    self._answer_all_infos()

    def _find_wrong(self, message: Any) -> str | None:
        """Find what a message says against the rules of a stream; None: nothing."""
        if isinstance(message, wire.StreamReceived):
            self._uncredited += len(message.data)
            if not message.data:
                return "no bytes"
            return "more bytes than were credited" if self._uncredited > CREDIT_BYTES else None
        if isinstance(message, wire.StreamCredit):
            return "more than was sent" if self._credit + message.bytes > CREDIT_BYTES else None
        if isinstance(message, wire.StreamInfo) and self._infos:
            return None
        if isinstance(message, wire.StreamEvent) and message.kind not in EVENTS:
            return f"an event {message.kind!r:.40}"
        self._due -= 1
        return "more than can happen" if self._due < 0 else None

    def _end_waits(self, _lost: asyncio.Future[None]) -> None:
        """End every wait for what cannot come. The link may end before it tells its streams."""
        self._messages.append(LinkLost("the link is over"))
        self._arrived.set()
        self._answer_all_infos()
        self._credit = sys.maxsize
        self._credited.set()

    def _answer_all_infos(self) -> None:
        while self._infos:
            self._answer_info(wire.StreamInfo(self._id, None))

    def _answer_info(self, info: wire.StreamInfo) -> None:
        answer = self._infos.popleft()
        if not answer.done():
            answer.set_result(info)


def _is_timeout(message: Any) -> bool:
    """Tell whether nothing came in time; with a failure it is the kernel that gave up."""
    is_event = isinstance(message, wire.StreamEvent)
    return is_event and message.kind == "timeout" and message.failure is None


def _read_opened(message: wire.StreamOpened) -> Opened:
    return Opened(
        failure=message.failure,
        icmp=message.icmp,
        left=message.left,
        syns=message.syns,
        rtt_ms=None if message.rtt_us is None else message.rtt_us / 1000,
        elapsed_ms=message.times.elapsed_ms,
        local=message.local,
        tcp=message.tcp,
    )
