"""Joins echo orders that one source gets at about the same time into one of many destinations.

The coordinator works on destinations side by side, and each asks every source for echoes by itself.
An order waits a moment here, so that alike orders of other destinations can join it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from netprobe.agent.wire.answers import EchoOutcomes
from netprobe.agent.wire.orders import EchoOrder
from netprobe.errors import AgentError
from netprobe.probe.agents.decode import PortOutcome

# Gives the answers of an echo order. Raises AgentError.
SendEcho = Callable[[EchoOrder, type[EchoOutcomes]], AsyncIterator[EchoOutcomes]]
Rows = list[PortOutcome]

# Orders of this time become one: far less than a silent host takes.
GATHER_S = 0.02
MOST = 4096


@dataclass(slots=True)
class EchoBatch:
    """Orders that are sent as one; for each of them a caller waits for its outcome."""

    orders: list[EchoOrder] = field(default_factory=list)
    waiting: list[asyncio.Future[Rows]] = field(default_factory=list)


class EchoBatches:
    """Joins the echo orders of one agent; every asker gets the outcome of its own order."""

    def __init__(self, send: SendEcho) -> None:
        self._send_order = send
        self._gathering: dict[str, EchoBatch] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def probe(self, order: EchoOrder) -> Rows:
        """Give the outcome of an echo order with one destination. Raises AgentError."""
        key = _common_part(order)
        batch = self._gathering.get(key)
        if batch is None or len(batch.orders) >= MOST:
            batch = self._gathering[key] = EchoBatch()
            task = asyncio.create_task(self._send_batch(key, batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        waiting: asyncio.Future[Rows] = asyncio.get_running_loop().create_future()
        batch.orders.append(order)
        batch.waiting.append(waiting)
        return await waiting

    async def _send_batch(self, key: str, batch: EchoBatch) -> None:
        await asyncio.sleep(GATHER_S)
        if self._gathering.get(key) is batch:
            del self._gathering[key]
        left: Exception = AgentError("agent-lost", "an echo order ended without its outcome")
        try:
            async for answer in self._send_order(join_orders(batch.orders), EchoOutcomes):
                for place, row in split_outcomes(answer):
                    _settle_waiting(batch.waiting[place], [row])
        except Exception as error:  # whatever it is, it is for those who wait for the outcome
            left = error
        finally:
            for waiting in batch.waiting:
                if not waiting.done():
                    waiting.set_exception(left)


def join_orders(orders: Sequence[EchoOrder]) -> EchoOrder:
    """Give one order for the destinations of all; it has the first one's id."""
    return orders[0]._replace(
        dsts=[dst for order in orders for dst in order.dsts],
        numbers=[number for order in orders for number in order.numbers],
    )


def split_outcomes(answer: EchoOutcomes) -> Iterator[tuple[int, PortOutcome]]:
    """Every destination's place in the order, from 0, and its outcome as of an order of its own."""
    for run in answer.runs:
        for number, rtt_us in zip(range(run.first, run.last + 1), run.rtts_us, strict=True):
            yield number - 1, PortOutcome(0, 0, answer.kinds[run.kind], rtt_us, run.looks)


def _common_part(order: EchoOrder) -> str:
    """Give the properties that orders of a batch share; addresses share family and interface."""
    (dst,) = order.dsts
    return repr((":" in dst, dst.partition("%")[2], order._replace(id=0, dsts=[], numbers=[])))


def _settle_waiting(waiting: asyncio.Future[Rows], rows: Rows) -> None:
    if not waiting.done():
        waiting.set_result(rows)
