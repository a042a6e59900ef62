"""The coordinator's end of a port at an agent's host: each connection that comes in is a stream."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from msgspec import Struct

from netprobe.agent.wire import stream_messages as wire
from netprobe.vantage.link import AgentLink, LinkLost
from netprobe.vantage.stream import CREDIT_BYTES, Stream, next_id


class PortPlace(Struct, frozen=True):
    """Where an agent listens, for so long, and how many connections it holds at once."""

    address: str
    port: int
    most: int
    limit_s: float


# Speaks over a connection; gets it, and the peer's address. What it raises is lost.
Serve = Callable[[Stream, str], Awaitable[None]]


@contextlib.asynccontextmanager
async def open_port(link: AgentLink, place: PortPlace, serve: Serve) -> AsyncIterator[str | None]:
    """Serve a port, and close it and its connections at the end; gives why it is not open, or None.

    Raises AgentError.
    """
    port = ServedPort(link, serve)
    try:
        yield await port.open(place)
    finally:
        await port.close()


class ServedPort:
    """A port of one agent; use ``open_port``."""

    def __init__(self, link: AgentLink, serve: Serve) -> None:
        self._link = link
        self._serve = serve
        self._id = next_id()
        self._queue = link.subscribe(self._id)
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, place: PortPlace) -> str | None:
        """Open it; gives the failure's name where it cannot be."""
        ms = round(place.limit_s * 1000)
        order = wire.StreamListenOrder(self._id, place.address, place.port, place.most, ms)
        self._link.send(order)
        with self._link.expect(order):
            told = self._link.check_answer(await self._queue.get(), wire.StreamListening)
        if told.failure is None:
            self._start_task(self._take_connections())
        return told.failure

    async def close(self) -> None:
        """Close it and what came in."""
        if not self._link.lost.done():
            self._link.send(wire.StreamDropOrder(self._id, False))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._link.unsubscribe(self._id)

    def _start_task(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        """Forget one that is over; its exception counts as seen."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _take_connections(self) -> None:
        """Take what comes in at once: a full queue would stop the agent's other streams."""
        while True:
            message = await self._queue.get()
            if isinstance(message, LinkLost):
                return
            told = self._link.check_answer(message, wire.StreamAccepted)
            wrong = self._find_wrong(told)
            if wrong is not None:
                raise self._link.refuse(f"StreamAccepted: {wrong}")
            stream = Stream(self._link, told.stream)
            self._link.send(wire.StreamCredit(told.stream, CREDIT_BYTES))
            self._start_task(self._serve_stream(stream, told.remote))

    def _find_wrong(self, told: wire.StreamAccepted) -> str | None:
        """Find what a message says against the rules of a port; None: nothing."""
        try:
            ipaddress.ip_address(told.remote)
        except ValueError:
            return f"an address {told.remote!r:.40}"
        if told.stream < wire.FIRST_ACCEPTED_ID or self._link.awaits(told.stream):
            return f"a stream {told.stream}"
        return None

    async def _serve_stream(self, stream: Stream, peer: str) -> None:
        try:
            await self._serve(stream, peer)
        finally:
            await stream.close()
