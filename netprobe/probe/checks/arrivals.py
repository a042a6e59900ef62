"""What the destination's agent saw arrive, joined to what the sources saw."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from netprobe.agent.wire.parts import HalfOpen, OrderArrivals
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Witness
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Sighting
from netprobe.probe.flows.translated_sources import Origins, own_addresses


class Arrivals(Check):
    """Asks the listeners of the round what they saw."""

    name = "arrivals"
    needs = "agent"
    vital = True

    def concerns(self, seen: Sighting) -> bool:
        """All flows whose probes a listener of ours waits for."""
        return seen.part.ours

    def group(self, seen: Sighting) -> Hashable:
        """One question tells of all."""
        return None

    async def look(self, group: list[Sighting], scene: Scene) -> list[Sighting]:
        """Give every flow its witness."""
        assert scene.round is not None
        return await with_witnesses(group, scene.round)


async def with_witnesses(sightings: list[Sighting], round_: Round) -> list[Sighting]:
    """Ask the round's listeners about every order, and give each sighting its witness.

    Always asked, also when every probe was answered: the reply proves that the listeners were
    there to the end. Raises AgentError where they were not.
    """
    orders = sorted({sighting.order for sighting in sightings if sighting.part.ours})
    if not orders:
        return sightings
    reply = await round_.seen(orders)
    noted: dict[int, list[OrderArrivals]] = {}
    for item in reply.orders:
        noted.setdefault(item.order, []).append(item)
    half_open = reply.half_open
    for sighting in sightings:
        for item in noted.get(sighting.order, ()):
            round_.origins.note(sighting.task, item.senders)
    return [
        piece
        for sighting in sightings
        for piece in _witnessed(sighting, noted.get(sighting.order, []), half_open, round_.origins)
    ]


def _witnessed(
    sighting: Sighting,
    items: list[OrderArrivals],
    half_open: list[HalfOpen],
    origins: Origins,
) -> Iterator[Sighting]:
    """The sighting, cut by which of its ports the listener heard."""
    if sighting.listener.state != "ours" or sighting.outcome is None:
        yield sighting
        return
    rest = sighting.ports
    for item in items:
        heard = _heard(sighting, rest, item)
        if heard is not None:
            yield replace(sighting, ports=heard, witness=_witness(sighting, item))
            rest = port_sets.subtract(rest, heard)
            if not sighting.ports:
                return
    for sender, started in _half_open(sighting, half_open, origins).items():
        common = port_sets.intersect(rest, started)
        if common:
            witness = Witness(socket=True, seen_from=_strange(sighting, [sender]))
            yield replace(sighting, ports=common, witness=witness)
            rest = port_sets.subtract(rest, common)
    if rest or not sighting.ports:
        yield replace(sighting, ports=rest, witness=Witness())


def _heard(sighting: Sighting, rest: Ports, item: OrderArrivals) -> Ports | None:
    if not sighting.ports:
        return ()
    ports = port_sets.normalise(item.ports)
    return port_sets.intersect(rest, ports) or None


def _witness(sighting: Sighting, item: OrderArrivals) -> Witness:
    strange = _strange(sighting, item.senders)
    return Witness(socket=True, seen_from=strange, reply_failure=item.reply)


def _strange(sighting: Sighting, senders: Iterable[str]) -> str | None:
    """The first sender that is no address of the source."""
    own = own_addresses(sighting.task.source)
    return next((sender for sender in senders if own and sender not in own), None)


def _half_open(sighting: Sighting, entries: list[HalfOpen], origins: Origins) -> dict[str, Ports]:
    """Ports on which the listener's kernel holds a half-open connection of this source, by the
    address that it came from."""
    if sighting.task.protocol != "tcp":
        return {}
    # A host with several addresses has the same port on each; translated ones we do not know.
    to = None if sighting.listener.nat else sighting.task.address
    mine: dict[str, list[int]] = {}
    for entry in entries:
        if to in (None, entry.address) and origins.is_of(sighting.task, entry.port, entry.remote):
            mine.setdefault(entry.remote, []).append(entry.port)
    return {
        sender: port_sets.normalise((port, port) for port in ports)
        for sender, ports in mine.items()
    }
