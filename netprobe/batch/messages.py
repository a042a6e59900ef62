"""Sorts what a host has written into marks, orders and answers, and refuses what no host writes.

The host's root wrote it: an order is one that the host can have had, and an answer is one to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from netprobe.agent.wire import orders
from netprobe.agent.wire.answers import Fault, HelloLine
from netprobe.agent.wire.batch import PhaseClock
from netprobe.agent.wire.host_messages import SocketsOrder
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.parts import ProbeBlock, Ranges
from netprobe.batch.checked_lines import BatchIdentity
from netprobe.probe.agents.rules import ANSWERS_TO

# What a script asks or a host asks itself; the rest is for a coordinator that listens.
SCRIPTED = ANSWERS_TO.keys() - {orders.KeptOrder, SocketsOrder}


class MessageSorter:
    """The messages of one file, taken one after the other. ``host``: the index of whose they are;
    ``asked``: how many ports its orders may ask."""

    def __init__(self, run: BatchIdentity, host: int, asked: int) -> None:
        self.hello: HelloLine | None = None
        self.marks: list[PhaseClock] = []
        self.orders: list[Any] = []
        self.answers: defaultdict[int, list[Any]] = defaultdict(list)
        self._run = run
        self._host = host
        self._asked_left = asked
        # By the ids of orders: their classes. A round of listeners and its end have one id.
        self._known: dict[int, list[type[Any]]] = {}

    def take(self, message: Any) -> None:
        """Take a message. Raises ValueError for what no host writes."""
        if isinstance(message, HelloLine):
            self.hello = message
        elif isinstance(message, PhaseClock):
            self.marks.append(message)
        elif type(message) in SCRIPTED:
            self._take_order(message)
        elif type(message).__name__ not in ANSWERS:
            raise ValueError(f"an order {type(message).__name__}")
        elif message_id(message) in self._known:
            self._take_answer(message)

    def _take_order(self, order: Any) -> None:
        known = self._known.setdefault(order.id, [])
        if type(order) in known:
            raise ValueError(f"order {order.id}, twice")
        if not self._run.may_have(self._host, order.id):
            raise ValueError(f"order {order.id}, which no script has")
        self._asked_left -= count_asked(order)
        if self._asked_left < 0:
            raise ValueError("orders that ask more than the plan does")
        known.append(type(order))
        self.orders.append(order)

    def _take_answer(self, answer: Any) -> None:
        kinds = self._known[answer.id]
        if not isinstance(answer, Fault) and not any(
            isinstance(answer, ANSWERS_TO[kind]) for kind in kinds
        ):
            raise ValueError(f"an answer {type(answer).__name__} to {kinds[0].__name__}")
        self.answers[answer.id].append(answer)


def message_id(message: Any) -> int | None:
    """Give the id of the order that an answer is of; None where it names none."""
    found: int | None = getattr(message, "id", None)
    return found


def count_asked(order: Any) -> int:
    """Count the ports that an order asks; without ports each destination is one. Raises ValueError
    for an order that asks in a way in which none does."""
    if isinstance(order, orders.EchoOrder):
        if not order.dsts or len(order.numbers) not in (0, len(order.dsts)):
            raise ValueError(f"{len(order.numbers)} numbers for {len(order.dsts)} destinations")
        return len(order.dsts)
    if isinstance(order, orders.ProbeOrder):
        own = _count_blocks(order.blocks)
        return own + sum(_count_blocks(one.blocks) if one.blocks else own for one in order.more)
    for ranges in _list_ranges(order):
        _count_ports(ranges)
    return 0


def _count_blocks(blocks: Sequence[ProbeBlock]) -> int:
    if not blocks:
        raise ValueError("a probe of nothing")
    return sum(_count_ports(block.ports) or 1 for block in blocks)


def _list_ranges(order: Any) -> Iterator[Ranges]:
    yield getattr(order, "ports", [])
    for block in getattr(order, "blocks", ()):
        yield block.ports


def _count_ports(ranges: Ranges) -> int:
    for first, last in ranges:
        if first > last:
            raise ValueError(f"ports {first}-{last}")
    return sum(last - first + 1 for first, last in ranges)
