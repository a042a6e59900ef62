"""Echo orders that one source gets at about the same time, sent as one order of many destinations.

Destinations are worked on side by side, each in its own time, and ask echo of every source. Nobody
has to know of the others: who asks waits a moment for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from netprobe.errors import AgentError

Message = dict[str, Any]
# Sends an order and gives its frames; raises AgentError.
Stream = Callable[[Message], AsyncIterator[Message]]

# What is asked within this time is one order: far less than a silent host takes.
GATHER_S = 0.02
MOST = 4096

# What destinations of one order may differ in. Orders with any key besides these and the ones that
# they must share go by themselves.
OWN = frozenset(("id", "dst", "host"))
SHARED = frozenset(
    ("t", "proto", "number", "src", "blocks", "first_ms", "look_ms", "looks", "pace", "min_ttl")
)


@dataclass(slots=True)
class Batch:
    """Orders that will go as one, each with who waits for its frames."""

    orders: list[Message] = field(default_factory=list)
    waiting: list[asyncio.Future[list[Message]]] = field(default_factory=list)

    def hear(self, frame: Message) -> None:
        """Give everyone what a frame says of the own destination."""
        if frame["t"] == "outcomes":
            for number, own in split(frame, self.orders):
                _settle(self.waiting[number], own)

    def fail(self, error: AgentError) -> None:
        """The agent is gone: whoever still waits is told."""
        for waiting in self.waiting:
            if not waiting.done():
                waiting.set_exception(error)


class Echoes:
    """Joins the echo orders of one agent; every asker gets the frames of its own order."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._gathering: dict[str, Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def probe(self, order: Message) -> list[Message]:
        """The ``outcomes`` frames of an echo order. Raises AgentError."""
        key = _key(order)
        batch = self._gathering.get(key)
        if batch is None or len(batch.orders) >= MOST:
            batch = self._gathering[key] = Batch()
            task = asyncio.create_task(self._send(key, batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        waiting: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()
        batch.orders.append(order)
        batch.waiting.append(waiting)
        return await waiting

    async def _send(self, key: str, batch: Batch) -> None:
        await asyncio.sleep(GATHER_S)
        if self._gathering.get(key) is batch:
            del self._gathering[key]
        try:
            async for frame in self._stream(joined(batch.orders)):
                batch.hear(frame)
        except AgentError as error:
            batch.fail(error)
        finally:
            for waiting in batch.waiting:
                _settle(waiting)


def joins(order: Message) -> bool:
    """Whether an order is one of echo that may be asked together with others."""
    return order["proto"] == "icmp" and order.keys() <= OWN | SHARED


def joined(orders: list[Message]) -> Message:
    """One order for the destinations of all; it has the first one's id."""
    shared = {key: value for key, value in orders[0].items() if key not in ("dst", "host")}
    return {**shared, "dsts": [order["dst"] for order in orders]}


def split(frame: Message, orders: list[Message]) -> Iterator[tuple[int, Message]]:
    """For each destination of a frame its place among the orders, and the frame that its own order
    would have had."""
    for first, last, kind, rtts_us, attempts in frame["runs"]:
        for number, rtt_us in zip(range(first - 1, last), rtts_us, strict=True):
            runs = [[0, 0, 0, rtt_us, attempts]]
            kinds = [frame["kinds"][kind]]
            own = {"t": "outcomes", "id": orders[number]["id"], "kinds": kinds, "runs": runs}
            yield number, own


def _key(order: Message) -> str:
    """What orders must have in common; of an address its family and its interface."""
    shared = [(key, order[key]) for key in sorted(order.keys() & SHARED)]
    return repr((":" in order["dst"], order["dst"].partition("%")[2], shared))


def _settle(waiting: asyncio.Future[list[Message]], *frames: Message) -> None:
    if not waiting.done():
        waiting.set_result(list(frames))
