"""Joins orders that one source gets at about the same time into one of many destinations.

The coordinator works on destinations side by side, and each asks every source by itself. An order
waits a moment here, so that alike orders for other destinations can join it: a source then gets one
frame for all of them, and its answer tells what is alike once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import ProbeDestination
from netprobe.errors import AgentError
from netprobe.probe.agents.decode import PortOutcome, ProbeReply, read_outcomes

JoinableOrder = ProbeOrder | EchoOrder
# Gives the answers of an order, each with the places of the destinations that it completes. Raises
# AgentError.
SendOrder = Callable[[JoinableOrder], AsyncIterator[tuple[ProbeOutcomes | EchoOutcomes, list[int]]]]
# Is called with outcomes of an order as they arrive.
Heard = Callable[[list[PortOutcome]], None]

# Orders of this time become one: far less than a silent host takes. Of a large run more can join,
# and nobody waits for a single one of them.
GATHER_PER_HOST_S = 0.001
LEAST_GATHER_S, MOST_GATHER_S = 0.002, 0.25
MOST = 4096


@dataclass(slots=True)
class Waiting:
    """An order of a batch: what it has been told so far, and who waits for its end."""

    order: JoinableOrder
    heard: Heard | None
    done: asyncio.Future[ProbeReply]
    reply: ProbeReply = field(default_factory=lambda: ProbeReply([]))


class OrderBatches:
    """Joins the orders of one agent; every asker gets the outcome of its own order.

    ``hosts``: how many the run has.
    """

    def __init__(self, send: SendOrder, hosts: int = 1) -> None:
        self._send_order = send
        self.gather_s = min(MOST_GATHER_S, max(LEAST_GATHER_S, GATHER_PER_HOST_S * hosts))
        self._gathering: dict[object, list[Waiting]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def probe(self, order: JoinableOrder, heard: Heard | None = None) -> ProbeReply:
        """Give the outcome of an order for one destination. Raises AgentError."""
        key = _common_part(order)
        batch = self._gathering.get(key)
        if batch is None or len(batch) >= MOST:
            batch = self._gathering[key] = []
            task = asyncio.create_task(self._send_batch(key, batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        waiting = Waiting(order, heard, asyncio.get_running_loop().create_future())
        batch.append(waiting)
        return await waiting.done

    async def _send_batch(self, key: object, batch: list[Waiting]) -> None:
        await asyncio.sleep(self.gather_s)
        if self._gathering.get(key) is batch:
            del self._gathering[key]
        left: Exception = AgentError("agent-lost", "an order ended without its outcome")
        try:
            async for answer, complete in self._send_order(join_orders([w.order for w in batch])):
                for place, rows, own_port in read_outcomes(answer):
                    _take_rows(batch[place - 1], rows, own_port)
                for place in complete:
                    _settle_waiting(batch[place - 1])
        except Exception as error:  # whatever it is, it is for those who wait for the outcome
            left = error
        finally:
            for waiting in batch:
                if not waiting.done.done():
                    waiting.done.set_exception(left)


def join_orders(orders: Sequence[JoinableOrder]) -> JoinableOrder:
    """Give one order for the destinations of all; it has the first one's id."""
    first = orders[0]
    if isinstance(first, EchoOrder):
        echoes = cast("Sequence[EchoOrder]", orders)
        return first._replace(
            dsts=[dst for order in echoes for dst in order.dsts],
            numbers=[number for order in echoes for number in order.numbers],
        )
    probes = cast("Sequence[ProbeOrder]", orders[1:])
    own = first.blocks
    return first._replace(
        more=[
            ProbeDestination(one.id, one.dst, one.host, [] if one.blocks == own else one.blocks)
            for one in probes
        ]
    )


def _common_part(order: JoinableOrder) -> tuple[Any, ...]:
    """Give the properties that orders of a batch share; addresses share family and interface."""
    dst = order.dsts[0] if isinstance(order, EchoOrder) else order.dst
    way = (":" in dst, dst.partition("%")[2], order.src, order.first_ms, order.look_ms, order.looks)
    if isinstance(order, EchoOrder):
        return (*way, order.size)
    return (
        *way, order.proto, order.number, order.pace, order.min_ttl, order.ttl, order.size,
        order.sport,
    )  # fmt: skip


def _take_rows(waiting: Waiting, rows: list[PortOutcome], own_port: int | None) -> None:
    if waiting.done.done():
        return
    reply = waiting.reply
    reply.rows.extend(rows)
    reply.own_port = reply.own_port or own_port
    if waiting.heard is None:
        return
    try:
        waiting.heard(rows)
    except Exception as error:  # what one asker cannot read is not the others' loss
        waiting.done.set_exception(error)


def _settle_waiting(waiting: Waiting) -> None:
    if not waiting.done.done():
        waiting.done.set_result(waiting.reply)
