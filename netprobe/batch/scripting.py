"""From the notes of a dry run, or from what a merge left open, to the script of every host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from netprobe.agent.wire import host_messages, orders
from netprobe.agent.wire.parts import ListenBlock
from netprobe.batch.expected import Expected
from netprobe.batch.ideal import IdealFleet, Note
from netprobe.model import ports as port_sets
from netprobe.model.inventory import Host
from netprobe.probe.settings import Timing

PROBES = (orders.ProbeOrder, orders.EchoOrder)
# What a source sends a second time because only the other end knows whether it came.
ONE_WAY_AGAIN = Timing(500, 500, 2)
# Probes of one size that a look at the width of a path sends, in ms.
SIZED_MS = 600

PhaseOrders = list[tuple[str, list[Any]]]


class HostOrders(Struct):
    """One host's orders by what they are about, in the order in which they were noted."""

    listening: list[Any] = field(default_factory=list)
    denied: list[Any] = field(default_factory=list)
    probes: list[Any] = field(default_factory=list)
    further: list[Any] = field(default_factory=list)
    telling: list[Any] = field(default_factory=list)

    def has_any(self) -> bool:
        """Tell whether the host has anything to do."""
        return any((self.listening, self.denied, self.probes, self.further, self.telling))


class Scripting:
    """Sorts the notes of a round into phases. ``left_out``: probes that no host can carry out,
    because their port must not be listened at and somebody else needs a listener there."""

    def __init__(self, hosts: Sequence[Host], number: Callable[[], int]) -> None:
        self._hosts = list(hosts)
        self._number = number
        self._orders = {host.name: HostOrders() for host in hosts if host.may_start}
        self.left_out: list[Note] = []

    def sort_dry_run(self, fleet: IdealFleet) -> Mapping[str, PhaseOrders]:
        """Give each host's phases for the first round."""
        self._sort_notes(fleet.notes)
        first: list[Any] = [orders.TemplatesOrder(fleet.templates.after(0))]
        if fleet.record is not None:
            first.append(fleet.record)
        if fleet.rate is not None:
            first.append(orders.RateOrder(fleet.rate / max(1, len(self._orders))))
        self._add_one_way_looks()
        self._add_other_widths()
        self._add_expectations()
        return {name: self._make_phases(some, first) for name, some in self._orders.items()}

    def sort_outstanding(
        self, notes: Sequence[Note], first: Sequence[Any]
    ) -> Mapping[str, PhaseOrders]:
        """Give the phases of a further round, for the hosts that have anything to do in it.

        ``first``: what each of them is told before.
        """
        fresh: dict[tuple[Any, ...], Note] = {}
        for note in notes:
            order = note.order._replace(id=0)
            fresh.setdefault((note.host, repr(order)), note)
        numbered = [
            Note(note.host, _take_number(note.order, self._number())) for note in fresh.values()
        ]
        self._sort_notes(numbered)
        busy = {name: some for name, some in self._orders.items() if some.has_any()}
        self._add_expectations()
        return {name: self._make_phases(some, first) for name, some in busy.items()}

    def _sort_notes(self, notes: Sequence[Note]) -> None:
        opened = _find_opened(notes)
        known: dict[str, set[str]] = {}
        for place, note in enumerate(notes):
            mine = self._orders.get(note.host)
            content = repr(note.order._replace(id=0))
            told = known.setdefault(note.host, set())
            # Who asks twice for what does not change gets the same answer.
            if mine is None or (content in told and not isinstance(note.order, PROBES)):
                continue
            told.add(content)
            self._sort_note(mine, place, note, opened)

    def _sort_note(
        self, mine: HostOrders, place: int, note: Note, opened: Mapping[str, OpenedPorts]
    ) -> None:
        order = note.order
        if isinstance(order, orders.HeldOrder):
            # A live run gives it the number of its round, whose listeners have answered by then.
            mine.listening.append(order._replace(id=self._number()))
        elif isinstance(order, orders.ListenOrder):
            mine.listening.append(order)
        elif isinstance(order, orders.SeenOrder | orders.CloseOrder | orders.KeptOrder):
            return
        elif isinstance(order, orders.StoryOrder):
            mine.telling.append(order)
        elif not isinstance(order, orders.ProbeOrder) or order.host is None:
            (mine.probes if _is_first_look(order) else mine.further).append(order)
        else:
            there = opened.get(self._hosts[order.host].name)
            if there is None or place > there.place:
                (mine.probes if _is_first_look(order) else mine.further).append(order)
            elif there.waits_for(order):
                self.left_out.append(note)
            else:
                mine.denied.append(order)

    def _add_one_way_looks(self) -> None:
        """Send one-way packets again: who sends them does not know whether they came."""
        for mine in self._orders.values():
            for order in list(mine.probes):
                one_way = isinstance(order, orders.ProbeOrder) and order.blocks[0].mode == "send"
                if one_way and order.pace is None:
                    first_ms, look_ms, looks = ONE_WAY_AGAIN
                    mine.further.append(
                        order._replace(
                            id=self._number(), first_ms=first_ms, look_ms=look_ms, looks=looks
                        )
                    )

    def _add_other_widths(self) -> None:
        """Ask for a path's width by all packets that may tell it: the first kind may be stopped."""
        for mine in self._orders.values():
            wanted = {
                order.dst: order.size
                for order in mine.further
                if isinstance(order, orders.ProbeOrder) and order.size and order.proto != "tcp"
            }
            for dst, size in wanted.items():
                answered = [
                    order
                    for order in mine.probes
                    if isinstance(order, orders.ProbeOrder)
                    and (order.dst, order.proto, order.blocks[0].mode) == (dst, "udp", "nonce")
                ]
                for order in answered:
                    (block,) = order.blocks
                    port = block.ports[0][0]
                    mine.further.append(
                        order._replace(
                            id=self._number(), blocks=[block._replace(ports=[(port, port)])],
                            first_ms=SIZED_MS, look_ms=SIZED_MS, looks=1, size=size, host=None,
                        )
                    )  # fmt: skip
                src = next((order.src for order in answered), None)
                number = self._number()
                mine.further.append(
                    orders.EchoOrder(
                        number, [dst], src, SIZED_MS, SIZED_MS, 1, size=size, numbers=[number]
                    )
                )

    def _add_expectations(self) -> None:
        """Let every destination tell of the packets that were sent to it."""
        for mine in self._orders.values():
            for order in mine.listening:
                if isinstance(order, orders.ListenOrder):
                    mine.telling.insert(
                        0, orders.SeenOrder(self._number(), order.id, [], rest=True)
                    )
                    mine.further += [
                        host_messages.RouteOrder(self._number(), address, None)
                        for address in dict.fromkeys(block.address for block in order.blocks)
                    ]
        expected = Expected(self._hosts)
        for name, mine in self._orders.items():
            for order in (*mine.denied, *mine.probes, *mine.further):
                expected.note_probe(name, order)
        for name, mine in self._orders.items():
            mine.telling += expected.list_questions(name, mine.telling, self._number)

    def _make_phases(self, some: HostOrders, first: Sequence[Any]) -> PhaseOrders:
        phases: PhaseOrders = [("listen", [*first, *some.listening])]
        if some.denied:
            phases.append(("denied", some.denied))
        phases += [("go", part) for part in (some.probes, some.further) if part]
        return [*phases, ("tell", some.telling)]


class OpenedPorts(Struct, frozen=True):
    """When a destination opens its first listeners, and all that it opens."""

    place: int
    blocks: tuple[ListenBlock, ...]

    def waits_for(self, order: orders.ProbeOrder) -> bool:
        """Tell whether a listener is to wait at one of the order's ports."""
        return any(
            (mine.proto, mine.address) == (order.proto, order.dst)
            and port_sets.intersect(
                port_sets.normalise(mine.ports), port_sets.normalise(block.ports)
            )
            for mine in self.blocks
            for block in order.blocks
        )


def _find_opened(notes: Iterable[Note]) -> dict[str, OpenedPorts]:
    places: dict[str, int] = {}
    blocks: dict[str, list[ListenBlock]] = {}
    for place, note in enumerate(notes):
        if isinstance(note.order, orders.ListenOrder):
            places.setdefault(note.host, place)
            blocks.setdefault(note.host, []).extend(note.order.blocks)
    return {name: OpenedPorts(place, tuple(blocks[name])) for name, place in places.items()}


def _is_first_look(order: Any) -> bool:
    """Tell the probes of the plan from further looks, which must not take the routers' answers."""
    if isinstance(order, orders.EchoOrder):
        return order.size is None and order.numbers != []
    if isinstance(order, orders.ProbeOrder):
        return order.host is not None and order.size is None
    return isinstance(order, host_messages.ResolveOrder)


def _take_number(order: Any, number: int) -> Any:
    if isinstance(order, orders.EchoOrder):
        return order._replace(id=number, numbers=[number] if order.numbers else [])
    return order._replace(id=number)
