"""From the agents' words to the model's outcomes: the only reader of ``OutcomeKind``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.parts import IcmpFact, OutcomeKind
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


@dataclass(slots=True)
class ProbeReply:
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


@dataclass(frozen=True, slots=True)
class Reader:
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
            icmp=None if kind.icmp is None else self._read_icmp(kind.icmp),
            left_host=kind.left,
            answer=answer,
            answered_by=self.name_of(kind.by) if kind.by is not None else None,
            said=said,
            ttl=kind.ttl,
            attempts=row.looks,
            packets=kind.packets if answer is None else None,
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

    def _read_icmp(self, fact: IcmpFact) -> Icmp:
        origin: Literal["source", "destination", "router"] = "router"
        if fact.offender == self.destination:
            origin = "destination"
        elif fact.offender in self.own_addresses:
            origin = "source"
        return Icmp(fact.type, fact.code, fact.offender, origin, fact.ttl)


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
