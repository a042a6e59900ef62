"""What one host's results say of its probes: port by port, the first look first.

A merge asks as a live run does, and knows other ids and other cuts of ports than the host had. So a
look is found by what was sent: the n-th request for a port gets the n-th look at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.failures import NO_ANSWER, STOOD_STILL
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, list_singles
from netprobe.agent.wire.parts import NumberedTemplate, OutcomeKind
from netprobe.agent.wire.questions import UNANSWERED
from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import PortOutcome, read_outcomes
from netprobe.probe.flows.chance import LEAST_LOOKS

# So many packets at least stay without an answer before silence is more than loss: a port that was
# asked once, by a host that had no time to ask again, is not known to be silent.
ENOUGH = LEAST_LOOKS

# The bytes that a template's number stands for; None: the number is not known.
ReadTemplate = Mapping[int, NumberedTemplate]


class LookKey(NamedTuple):
    """What was sent, apart from ports and timing; ``request`` is the template's."""

    proto: str
    number: int | None
    dst: str
    src: str | None
    mode: str
    request: bytes
    size: int | None
    min_ttl: int | None
    ttl: int | None
    sport: int | None


@dataclass(slots=True)
class RecordedLook:
    """One order's look at some ports. ``left``: the rows that nobody has asked for yet."""

    order: int
    rows: list[PortOutcome]
    own_port: int | None
    left: list[PortOutcome] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is asked for yet."""
        self.left = list(self.rows)

    def take(self, ports: Ports) -> list[PortOutcome]:
        """Take the rows of these ports; ``((0, 0),)`` where there are none."""
        taken: list[PortOutcome] = []
        rest: list[PortOutcome] = []
        for row in self.left:
            here = ((row.first, row.last),)
            common = port_sets.intersect(here, ports)
            taken += [row._replace(first=first, last=last) for first, last in common]
            others = port_sets.subtract(here, common)
            rest += [row._replace(first=first, last=last) for first, last in others]
        self.left = rest
        return taken


class TakenLook(NamedTuple):
    """What was found of an order: rows, the ids of the looks with their ports, and what is not
    there, or was asked too seldom."""

    rows: list[PortOutcome]
    own_port: int | None
    orders: list[tuple[int, Ports]]
    missing: list[tuple[LookKey, Ports]]
    is_doubtful: bool = False


class HostLooks:
    """All looks of one host, by what was sent."""

    def __init__(self) -> None:
        self._looks: dict[LookKey, list[RecordedLook]] = {}

    def add(self, order: Any, answers: tuple[Any, ...], templates: ReadTemplate) -> None:
        """Note what came of an order."""
        singles = _list_singles(order)
        told: list[tuple[list[PortOutcome], list[int]]] = [([], []) for _ in singles]
        for answer in answers:
            if isinstance(answer, ProbeOutcomes | EchoOutcomes):
                for place, rows, own_port in read_outcomes(answer):
                    told[place - 1][0].extend(rows)
                    told[place - 1][1].extend(() if own_port is None else (own_port,))
        for one, (rows, own_ports) in zip(singles, told, strict=True):
            for key, ports in keys_of(one, templates):
                some = RecordedLook(one.id, rows, None).take(ports)
                if some:
                    look = RecordedLook(one.id, some, next(iter(own_ports), None))
                    self._looks.setdefault(key, []).append(look)

    def take(self, order: Any, templates: ReadTemplate) -> TakenLook:
        """Take the next look at each port of an order for one destination."""
        rows: list[PortOutcome] = []
        orders: list[tuple[int, Ports]] = []
        missing: list[tuple[LookKey, Ports]] = []
        own_port = None
        is_doubtful = False
        for key, wanted in keys_of(order, templates):
            rest = wanted
            for look in self._looks.get(key, ()):
                some = look.take(rest)
                if some:
                    ports = port_sets.normalise((row.first, row.last) for row in some)
                    rest = port_sets.subtract(rest, ports)
                    rows += some
                    orders.append((look.order, ports))
                    own_port = own_port or look.own_port
                if not rest:
                    break
            doubtful: Ports = ()
            if getattr(order, "pace", None) is None and key.size is None:
                doubtful = self.find_doubtful(key, rows)
                rows = _drop_ports(rows, doubtful)
                is_doubtful = is_doubtful or bool(doubtful)
            if rest or doubtful:
                missing.append((key, port_sets.normalise((*rest, *doubtful))))
        return TakenLook(rows, own_port, orders, missing, is_doubtful)

    def find_doubtful(self, key: LookKey, rows: Iterable[PortOutcome]) -> Ports:
        """Find the ports that stayed silent at too few looks to be believed, in all rounds."""
        silent = [row for row in rows if _is_silent(key, row.kind)]
        # One answer at any look shows that the port is not silent.
        asked: list[tuple[int, int, int]] = [
            (
                row.first,
                row.last,
                max(row.kind.packets or 0, row.looks) if _is_silent(key, row.kind) else ENOUGH,
            )
            for look in (self._looks.get(key, ()) if silent else ())
            for row in look.rows
        ]
        return port_sets.normalise(
            (port, port)
            for row in silent
            for port in range(row.first, row.last + 1)
            if sum(packets for first, last, packets in asked if first <= port <= last) < ENOUGH
        )

    def keys_to(self, dst: str) -> list[LookKey]:
        """Give what was sent to an address."""
        return [key for key in self._looks if key.dst == dst]

    def find(self, key: LookKey, ports: Ports) -> list[PortOutcome]:
        """Give the first look at each of these ports, whoever has asked for it."""
        found: list[PortOutcome] = []
        for look in self._looks.get(key, ()):
            fresh = RecordedLook(look.order, look.rows, None)
            some = fresh.take(ports)
            found += some
            ports = port_sets.subtract(
                ports, port_sets.normalise((row.first, row.last) for row in some)
            )
        return found


def _list_singles(order: ProbeOrder | EchoOrder) -> Sequence[ProbeOrder | EchoOrder]:
    """Give the orders for one destination each that an order stands for."""
    if isinstance(order, ProbeOrder):
        return list_singles(order)
    numbers = order.numbers or [order.id] * len(order.dsts)
    return [
        order._replace(id=number, dsts=[dst])
        for number, dst in zip(numbers, order.dsts, strict=True)
    ]


def _drop_ports(rows: list[PortOutcome], ports: Ports) -> list[PortOutcome]:
    if not ports:
        return rows
    return [
        row._replace(first=first, last=last)
        for row in rows
        for first, last in port_sets.subtract(((row.first, row.last),), ports)
    ]


def _is_silent(key: LookKey, kind: OutcomeKind) -> bool:
    """Tell whether nothing came, or no nonce on a connection that opened."""
    opened = key.proto == "tcp" and key.mode == "nonce" and kind.answer in UNANSWERED
    return kind.failure in (NO_ANSWER, STOOD_STILL) or opened


def keys_of(order: Any, templates: ReadTemplate) -> Iterator[tuple[LookKey, Ports]]:
    """Give what an order for one destination sends, with the ports; ``((0, 0),)``: it has none."""
    if isinstance(order, EchoOrder):
        yield _echo_key(order, order.dsts[0]), ((0, 0),)
        return
    assert isinstance(order, ProbeOrder)
    for block in order.blocks:
        known = templates.get(block.template)
        key = LookKey(
            order.proto, order.number, order.dst, order.src, block.mode,
            known.request if known is not None else b"", order.size, order.min_ttl, order.ttl,
            order.sport,
        )  # fmt: skip
        yield key, port_sets.normalise(block.ports) or ((0, 0),)


def _echo_key(order: EchoOrder, dst: str) -> LookKey:
    return LookKey(
        "icmp", None, dst, order.src, "echo", b"", order.size, None, None, None
    )  # fmt: skip
