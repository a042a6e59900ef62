"""From the agents' words to the model's outcomes: the only reader of ``OutcomeKind``.

Joins orders that one source gets at about the same time into one of many destinations.

The coordinator works on destinations side by side, and each asks every source by itself. An order
waits a moment here, so that alike orders for other destinations can join it: a source then gets one
frame for all of them, and its answer tells what is alike once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import IcmpFact, OutcomeKind, ProbeDestination
from netprobe.errors import AgentError
from netprobe.model.evidence import Answer, Icmp, Outcome, ServerClock
from netprobe.model.ports import Ports, each
from netprobe.protocols import Protocol
from netprobe.protocols.base import Reading
from netprobe.protocols.packets.ntp import compare_clocks

# The wire's words for what came back, where they need no reading of bytes.
ANSWERS: dict[str, Answer] = {
    "nonce": "nonce", "foreign": "foreign", "reflected": "reflected", "garbled": "other",
    "silent": "silent", "closed": "closed", "reset": "reset", "echo": "echo", "unasked": "unasked",
}  # fmt: skip

JoinableOrder = ProbeOrder | EchoOrder
# Gives the answers of an order, each with the places of the destinations that it completes. Raises
# AgentError.
SendOrder = Callable[[JoinableOrder], AsyncIterator[tuple[ProbeOutcomes | EchoOutcomes, list[int]]]]

# Orders of this time become one: far less than a silent host takes. Of a large run more can join,
# and nobody waits for a single one of them.
GATHER_PER_HOST_S = 0.001
LEAST_GATHER_S, MOST_GATHER_S = 0.002, 0.25
MOST = 4096


class PortOutcome(NamedTuple):
    """Neighbouring ports with one outcome; 0 and 0 where the protocol has none."""

    first: int
    last: int
    kind: OutcomeKind
    rtt_us: int | None
    looks: int

    @property
    def ports(self) -> Ports:
        """The ports; empty where the protocol has none."""
        return ((self.first, self.last),) if self.first else ()


# Is called with outcomes of an order as they arrive.
Heard = Callable[[list[PortOutcome]], None]


class ProbeReply(Struct):
    """The outcomes of a probe order; ``own_port`` is the UDP port that sent it."""

    rows: list[PortOutcome]
    own_port: int | None = None

    def offenders(self) -> Iterator[str]:
        """Give the senders of the ICMP errors that came back."""
        return (row.kind.icmp.offender for row in self.rows if row.kind.icmp is not None)


# A destination's place in the order, from 1, the outcomes there, and its probes' own UDP port.
PlaceOutcomes = tuple[int, list[PortOutcome], int | None]


def read_outcomes(answer: ProbeOutcomes | EchoOutcomes) -> Iterator[PlaceOutcomes]:
    """Read an answer by destination, as that of an order of its own."""
    if isinstance(answer, EchoOutcomes):
        for echoes in answer.runs:
            for place, rtt_us in zip(
                range(echoes.first, echoes.last + 1), echoes.rtts_us, strict=True
            ):
                row = PortOutcome(0, 0, answer.kinds[echoes.kind], rtt_us, echoes.looks)
                yield place, [row], None
        return
    ports = answer.own_ports or itertools.repeat(None)
    for index, (place, own_port) in enumerate(zip(each(tuple(answer.places)), ports)):  # noqa: B905
        rows = [
            PortOutcome(run.first, run.last, answer.kinds[run.kind], run.rtts_us[index], run.looks)
            for run in answer.runs
        ]
        yield place, rows, own_port


class Reader(Struct, frozen=True):
    """Reads the outcomes of one flow's order.

    ``transport`` is ``tcp``, ``udp``, ``icmp`` or ``ipproto``. ``own_addresses`` are the source's:
    they and ``destination`` tell who sent an ICMP error. ``name_of`` gives the host of an answer's
    index. ``unasked``: nothing particular was expected. ``blind``: see ``Outcome.blind``.
    """

    protocol: Protocol
    transport: str
    destination: str
    own_addresses: frozenset[str]
    name_of: Callable[[int], str | None]
    unasked: bool = False
    blind: bool = False

    def read(self, rows: Iterable[PortOutcome]) -> Iterator[tuple[PortOutcome, Outcome]]:
        """Read every run of ports with its outcome."""
        for row in rows:
            yield row, self._read_row(row)

    def _read_row(self, row: PortOutcome) -> Outcome:
        kind = row.kind
        answer, said, clock = self._read_answer(row)
        return Outcome(
            operation=kind.op,
            failure=kind.failure,
            icmp=kind.icmp and read_icmp(kind.icmp, self.destination, self.own_addresses),
            left_host=kind.left,
            answer=answer,
            answered_by=self.name_of(kind.by) if kind.by is not None else None,
            said=said,
            ttl=kind.ttl,
            attempts=row.looks,
            packets=kind.packets if answer is None or self.transport == "tcp" else None,
            rtt_ms=round(row.rtt_us / 1000, 3) if row.rtt_us is not None else None,
            elapsed_ms=kind.elapsed_ms if answer is None else None,
            blind=self.blind and kind.failure is not None and kind.icmp is None,
            clock=clock,
        )

    def _read_answer(
        self, row: PortOutcome
    ) -> tuple[Answer | None, str | None, ServerClock | None]:
        kind = row.kind
        if kind.answer is None:
            return None, None, None
        if kind.answer == "bytes":
            reading = self.protocol.read(self.transport, kind.data or b"")
            if reading.recognised:
                return "service", reading.said, _compare_clock(reading, row)
            # Without ``probe:`` nothing particular was expected, so that no answer is a wrong one.
            return ("unasked" if self.unasked else "other"), reading.said, None
        return ANSWERS[kind.answer], None, None


def read_icmp(fact: IcmpFact, destination: str | None, own: frozenset[str]) -> Icmp:
    """Read an ICMP error; ``own`` are the source's addresses."""
    by: Literal["source", "destination", "router"] = "source" if fact.offender in own else "router"
    by = "destination" if fact.offender == destination else by
    return Icmp(fact.type, fact.code, fact.offender, by, fact.ttl)


def _compare_clock(reading: Reading, row: PortOutcome) -> ServerClock | None:
    """Give what a time server said, with the source's offset where the agent told its clock.

    All packets are alike, so that it may answer the first one: the error is as large as that makes
    it. From the second look on the first packet's time is not known, and neither is an offset.
    """
    clock, came_us = reading.clock, row.kind.clock_us
    if clock is None or came_us is None or row.rtt_us is None or row.looks > 1:
        return clock
    late_ms = row.kind.elapsed_ms
    rtt_s = row.rtt_us / 1e6 if late_ms is None else late_ms / 1000
    return compare_clocks(clock, reading.times, came_us / 1e6, rtt_s)


def join_rows(
    rows: Iterable[tuple[PortOutcome, Outcome]],
) -> dict[Outcome, list[PortOutcome]]:
    """Give the rows of ports that ended alike together; round trips become their median."""
    rows = list(rows)
    if len(rows) == 1:
        ((row, outcome),) = rows
        return {outcome: [row]}
    alike: dict[Outcome, list[tuple[PortOutcome, Outcome]]] = {}
    for row, outcome in rows:
        alike.setdefault(replace(outcome, rtt_ms=None), []).append((row, outcome))
    found = {}
    for outcome, some in alike.items():
        times = sorted(one.rtt_ms for _, one in some if one.rtt_ms is not None)
        median = times[len(times) // 2] if times else None
        found[replace(outcome, rtt_ms=median)] = [row for row, _ in some]
    return found


class Waiting(Struct):
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
