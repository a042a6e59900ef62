"""The coordinator's end of a stream: a TCP connection that an agent opened on its host."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from netprobe.errors import AgentError
from netprobe.model.stream import Event, EventKind, IcmpFact, Opened
from netprobe.vantage.link import AgentLink

CREDIT_BYTES = 64 * 1024
CONNECT_S = 4.0
PIECE_BYTES = 16 * 1024

# Streams share the wire's ``id`` with orders and requests, which count from lower numbers.
_IDS = itertools.count(1 << 40)

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
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
    """A stream of one agent; use ``open_stream``."""

    def __init__(self, link: AgentLink) -> None:
        self.opened = Opened(failure="no-answer")
        self._link = link
        self._id = next(_IDS)
        self._credit = CREDIT_BYTES
        self._room = asyncio.Event()
        self._frames: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._infos: deque[asyncio.Future[Message]] = deque()
        self._over = False
        self._pump = asyncio.create_task(self._read(link.subscribe(self._id)))
        link.lost.add_done_callback(self._lose)

    async def open(self, target: Target) -> None:
        """Connect and wait for the outcome, a refusal and silence included."""
        options = {} if target.mss is None else {"mss": target.mss}
        self._order(
            "open",
            dst=target.address,
            port=target.port,
            src=target.source,
            sockopts=options,
            timeout_ms=round(target.timeout_s * 1000),
        )
        self.opened = _opened(await self._next())
        self._over = self.opened.failure is not None

    async def send(self, data: bytes) -> None:
        """Send bytes; waits where 64 KiB are on their way already."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            while self._credit < len(piece):
                self._room.clear()
                await self._room.wait()
            self._credit -= len(piece)
            self._order("data", data=b64encode(piece).decode("ascii"))

    async def receive(self, limit_s: float) -> Event:
        """Give the next event; ``timeout`` where the agent heard nothing for so long."""
        if not self._frames and not self._over:
            self._order("await", ms=round(limit_s * 1000))
        event = _event(await self._next())
        if event.kind == "data":
            self._order("credit", bytes=len(event.data))
        self._over = self._over or event.over
        return event

    async def info(self) -> Mapping[str, int]:
        """Give the numbers of TCP_INFO as they are now; empty where the connection is gone."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._infos.append(answer)
        self._order("info")
        return dict((await answer).get("tcp") or {})

    def shut(self) -> None:
        """Send a FIN; the other direction stays open."""
        self._order("shut")

    async def close(self, reset: bool = False) -> None:
        """Close the connection; harmless when it is over."""
        if not self._link.lost.done():
            self._order("drop", reset=reset)
        self._link.lost.remove_done_callback(self._lose)
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._link.unsubscribe(self._id)

    def _order(self, what: str, **keys: Any) -> None:
        self._link.send({"t": what, "id": self._id, **keys})

    async def _next(self) -> Message:
        while not self._frames:
            self._arrived.clear()
            await self._arrived.wait()
        frame = self._frames.popleft()
        if frame["t"] == "lost":
            self._link.lost.result()
        if frame["t"] == "fault":
            words = f"{self._link.host}: a bug in the agent: {frame['words']}"
            raise AgentError("agent-fault", words)
        return frame

    async def _read(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Empty the link's queue at once: a full one would stop every other stream of the agent."""
        while True:
            frame = await queue.get()
            if frame["t"] == "credit":
                self._credit += frame["bytes"]
                self._room.set()
            elif frame["t"] == "info":
                self._answer_info(frame)
            elif frame["t"] != "lost":
                self._frames.append(frame)
                self._arrived.set()
                if frame["t"] == "fault":
                    self._no_infos()

    def _lose(self, _lost: asyncio.Future[None]) -> None:
        """Nobody may wait for what cannot come. The link itself may end before it tells streams."""
        self._frames.append({"t": "lost"})
        self._arrived.set()
        self._no_infos()
        self._credit = sys.maxsize
        self._room.set()

    def _no_infos(self) -> None:
        while self._infos:
            self._answer_info({})

    def _answer_info(self, frame: Message) -> None:
        answer = self._infos.popleft()
        if not answer.done():
            answer.set_result(frame)


def _opened(frame: Message) -> Opened:
    rtt_us = frame.get("rtt_us")
    local = frame.get("local")
    return Opened(
        failure=frame["failure"],
        icmp=_icmp(frame),
        left=frame.get("left"),
        syns=frame.get("syns"),
        rtt_ms=None if rtt_us is None else rtt_us / 1000,
        elapsed_ms=frame["elapsed_ms"],
        local=None if local is None else str(local[0]),
        tcp=frame.get("tcp") or {},
    )


def _event(frame: Message) -> Event:
    return Event(
        kind=cast(EventKind, frame["t"]),
        data=b64decode(frame.get("data", "")),
        elapsed_ms=frame["elapsed_ms"],
        since_sent_ms=frame["since_sent_ms"],
        since_received_ms=frame["since_received_ms"],
        failure=frame.get("failure"),
        icmp=_icmp(frame),
        soft=frame.get("soft"),
        tcp=frame.get("tcp") or {},
    )


def _icmp(frame: Message) -> IcmpFact | None:
    fact = frame.get("icmp")
    return None if fact is None else (fact[0], fact[1], fact[2], fact[3])
