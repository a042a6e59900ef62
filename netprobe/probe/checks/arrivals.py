"""What the destination's agent saw arrive, joined to what the sources saw.

What follows: a connection to our listener that opens, and brings no nonce back, is no pass. What
lets SYNs through may still drop packets with data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec.structs import replace

from netprobe.agent.wire.parts import HalfOpen, OrderArrivals, UnreachedPorts
from netprobe.model import ports as port_sets
from netprobe.model.evidence import UNDIALLED, Witness
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.checks.late_answers import wait_longer, was_made_late
from netprobe.probe.flows.listeners import Origins, Round
from netprobe.probe.flows.prober import Observation


class Arrivals(Check):
    """Asks the listeners of the round what they saw."""

    name = "arrivals"
    needs = "agent"
    vital = True

    def concerns(self, seen: Observation) -> bool:
        """All flows whose probes a listener of ours waits for."""
        return seen.part.ours

    def group(self, seen: Observation) -> Hashable:
        """One question tells of all."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow its witness; where answers were made too late, wait longer, once."""
        assert scene.round is not None
        found = await with_witnesses(group, scene.round)
        late = [seen for seen in found if was_made_late(seen)]
        if not late:
            return found
        again = await with_witnesses(await wait_longer(late, scene), scene.round)
        return [seen for seen in found if not was_made_late(seen)] + again


def is_heard(seen: Observation) -> bool:
    """Tell whether the listener has said that it was there and heard the probes."""
    return seen.witness is not None and seen.witness.socket


async def with_witnesses(observations: list[Observation], round_: Round) -> list[Observation]:
    """Ask the round's listeners about every order, and give each seen its witness.

    Always asked, also when every probe was answered: the reply proves that the listeners were
    there to the end. Raises AgentError where they were not.
    """
    orders = sorted({seen.order for seen in observations if seen.part.ours})
    if not orders:
        return observations
    reply = await round_.seen(orders, rest=not all(seen.proven for seen in observations))
    noted: dict[int, list[OrderArrivals]] = {}
    for item in reply.orders:
        noted.setdefault(item.order, []).append(item)
    half_open = reply.half_open
    for seen in observations:
        for item in noted.get(seen.order, ()):
            round_.origins.note(seen.task, item.senders)
    return [
        piece
        for seen in observations
        for part in _cut_by_own_dial(seen, reply.unreached)
        for piece in _cut_by_witness(part, noted.get(part.order, []), half_open, round_.origins)
    ]


def _cut_by_own_dial(
    seen: Observation, unreached: Iterable[UnreachedPorts]
) -> Iterator[Observation]:
    """Cut an observation by which of our listeners nothing has reached, the agent's own dial
    included."""
    rest = seen.ports
    for one in unreached if seen.listener.state == "ours" else ():
        protocol = one.proto if one.number is None else f"{one.proto}/{one.number}"
        if (protocol, one.address) != (seen.task.protocol, seen.task.address):
            continue
        lonely = port_sets.intersect(rest, port_sets.normalise(one.ports))
        if lonely or not seen.ports:
            yield replace(seen, ports=lonely, listener=replace(seen.listener, note=UNDIALLED))
            rest = port_sets.subtract(rest, lonely)
        if not rest:
            return
    yield replace(seen, ports=rest) if rest != seen.ports else seen


def _cut_by_witness(
    seen: Observation,
    items: list[OrderArrivals],
    half_open: list[HalfOpen],
    origins: Origins,
) -> Iterator[Observation]:
    """Cut an observation by which of its ports the listener heard."""
    if seen.listener.state != "ours" or seen.outcome is None:
        yield seen
        return
    rest = seen.ports
    for item in items:
        heard = _find_heard(seen, rest, item)
        if heard is not None:
            yield replace(seen, ports=heard, witness=_make_witness(seen, item, origins))
            rest = port_sets.subtract(rest, heard)
            if not seen.ports:
                return
    # What opened at the source is asked for by its nonce.
    started_here = {} if seen.unanswered else _half_open(seen, half_open, origins)
    for sender, started in started_here.items():
        common = port_sets.intersect(rest, started)
        if common:
            witness = Witness(socket=True, seen_from=_find_strange_sender(seen, [sender], origins))
            yield replace(seen, ports=common, witness=witness)
            rest = port_sets.subtract(rest, common)
    if rest or not seen.ports:
        yield replace(seen, ports=rest, witness=Witness())


def _find_heard(seen: Observation, rest: Ports, item: OrderArrivals) -> Ports | None:
    if not seen.ports:
        return ()
    ports = port_sets.normalise(item.ports)
    return port_sets.intersect(rest, ports) or None


def _make_witness(seen: Observation, item: OrderArrivals, origins: Origins) -> Witness:
    strange = _find_strange_sender(seen, item.senders, origins)
    return Witness(socket=True, seen_from=strange, reply_failure=item.reply)


def _find_strange_sender(seen: Observation, senders: Iterable[str], origins: Origins) -> str | None:
    """Find the first sender that is no address of the source."""
    own = origins.own(seen.task.source)
    return next((sender for sender in senders if own and sender not in own), None)


def _half_open(seen: Observation, entries: list[HalfOpen], origins: Origins) -> dict[str, Ports]:
    """Ports on which the listener's kernel has a connection of this source in SYN_RECV, by the
    address that it came from."""
    if seen.task.protocol != "tcp":
        return {}
    # A host with several addresses has the same port on each; translated ones we do not know.
    to = None if seen.listener.nat else seen.task.address
    mine: dict[str, list[int]] = {}
    for entry in entries:
        if to in (None, entry.address) and origins.is_of(seen.task, entry.port, entry.remote):
            mine.setdefault(entry.remote, []).append(entry.port)
    return {
        sender: port_sets.normalise((port, port) for port in ports)
        for sender, ports in mine.items()
    }
