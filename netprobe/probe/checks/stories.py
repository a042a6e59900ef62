"""Reads the story of a flow: what the recorders of both ends saw of its packets."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import NamedTuple

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import StoryOrder
from netprobe.agent.wire.parts import SeenError, SeenPackets, SeenRun
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Witness
from netprobe.model.ports import Ports
from netprobe.model.story import UNKNOWN, Story, StoryError, StoryPlace
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task

NO = StoryPlace("no")
# Of so many translated addresses the answers are looked for too.
MOST_TRANSLATED = 4


class Stories(Check):
    """Asks the recorders of both ends, once for each source, address and protocol."""

    name = "story"

    def concerns(self, seen: Observation) -> bool:
        """All flows that were probed directly, unless our own listener answered."""
        outcome = seen.outcome
        if outcome is None or seen.task.via is not None or seen.stood_for:
            return False
        return outcome.answer != "nonce"

    def group(self, seen: Observation) -> Hashable:
        """One question tells of all ports of a pair and protocol."""
        return (*seen.task.pair, seen.task.protocol)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow its story, cut where the ports of a flow differ in theirs."""
        source = scene.fleet.agent(group[0].task.source)
        if not source.records and not scene.agent.records:
            return group
        found = await self._read_stories(group, source, scene)
        late = [seen for seen in found if _came_late(seen)]
        if not late:
            return found
        # Nobody waited for these answers any more. Who waits longer sees whether they get through.
        again = await asyncio.gather(*(scene.prober.again(seen) for seen in late))
        waited = [one for some in again for one in some if one.outcome is not None]
        return [seen for seen in found if not _came_late(seen)] + await self._read_stories(
            waited, source, scene
        )

    async def _read_stories(
        self, group: list[Observation], source: AgentMethods, scene: Scene
    ) -> list[Observation]:
        told = await _ask_recorders(group, source, scene.agent)
        return [
            piece.noting(self.name, told=bool(told.source or told.destination))
            for seen in group
            for piece in _cut_by_story(seen, told)
        ]


def _came_late(seen: Observation) -> bool:
    """Tell whether an answer came to the source's interface and to nobody who waited."""
    return seen.silent and seen.story is not None and seen.story.source_in.seen == "yes"


class Told(NamedTuple):
    """What both recorders told of a pair and protocol; None: there is none, or it was lost.

    ``translated``: the address that the packets of the source come from, where it is another one.
    """

    source: StoryTold | None
    destination: StoryTold | None
    translated: str | None = None


async def _ask_recorders(
    group: list[Observation], source: AgentMethods, destination: AgentMethods
) -> Told:
    task = group[0].task
    asker = source_address(task) or (await source.route(task.address, None)).source
    if asker is None:
        return Told(None, None)
    order = _make_order(group, task, asker)
    at_source = await _ask_one(source, order)
    if at_source is not None and task.protocol == "tcp":
        # The packets of the run's TCP flows have no nonce; their sequence numbers name them.
        numbers = [number for run in at_source.runs for number in run.numbers]
        order = order._replace(numbers=numbers)
    order = order._replace(sent=False)
    at_destination = await _ask_one(destination, order)
    if at_destination is None or not at_destination.translated:
        return Told(at_source, at_destination)
    first = at_destination.translated[0]
    for other in at_destination.translated[:MOST_TRANSLATED]:
        moved = order._replace(asker=other.asker, target=other.target, numbers=[])
        more = await _ask_one(destination, moved)
        if more is not None:
            at_destination = at_destination._replace(
                runs=at_destination.runs + more.runs,
                errors=at_destination.errors + more.errors,
                heard=True,
            )
    return Told(at_source, at_destination, None if first.asker == asker else first.asker)


def _make_order(group: list[Observation], task: Task, asker: str) -> StoryOrder:
    name, _, number = task.protocol.partition("/")
    ports = port_sets.union(seen.ports for seen in group)
    numbers = [] if name == "tcp" else sorted({seen.order for seen in group})
    protocol_number = int(number) if number else None
    return StoryOrder(
        0, name, protocol_number, asker, task.address, list(ports), sent=True, numbers=numbers,
        own_ports=sorted({seen.sport for seen in group if seen.sport is not None}),
    )  # fmt: skip


async def _ask_one(agent: AgentMethods, order: StoryOrder) -> StoryTold | None:
    if not agent.records:
        return None
    try:
        told = await agent.tell_story(order)
    except AgentError:
        return None  # what was seen before stands
    return told if told.running else None


def _cut_by_story(seen: Observation, told: Told) -> Iterator[Observation]:
    """Give the flow, cut into ports of which both recorders saw the same."""
    if not seen.ports:
        yield _with_story(seen, told, _find_run(told.source), _find_run(told.destination))
        return
    for ports, at_source in _split_ports(seen.ports, told.source):
        for some, at_destination in _split_ports(ports, told.destination):
            yield _with_story(replace(seen, ports=some), told, at_source, at_destination)


def _split_ports(ports: Ports, told: StoryTold | None) -> Iterator[tuple[Ports, SeenRun | None]]:
    """Give the ports by the run that tells of them; the last ones nobody saw anything of."""
    rest = ports
    for run in told.runs if told is not None else ():
        common = port_sets.intersect(rest, port_sets.normalise(run.ports))
        if common:
            yield common, run
            rest = port_sets.subtract(rest, common)
    if rest:
        yield rest, None


def _find_run(told: StoryTold | None) -> SeenRun | None:
    return told.runs[0] if told is not None and told.runs else None


def _with_story(
    seen: Observation, told: Told, at_source: SeenRun | None, at_destination: SeenRun | None
) -> Observation:
    # Datagrams without a nonce are known by the source's own port only.
    named = seen.task.protocol in ("tcp", "icmp") or seen.part.ours
    sure_source = _is_sure(told.source) and (named or seen.sport is not None)
    sure_destination = _is_sure(told.destination) and named
    errors = tuple(_list_errors(seen, told))
    # An error that came to the interface is an answer, too, whatever the own firewall did with it.
    sure_answer = sure_source and not any(error.left is None for error in errors)
    story = Story(
        source_out=_place_of(at_source and at_source.requests, sure_source),
        destination_in=_place_of(at_destination and at_destination.requests, sure_destination),
        socket=_socket_place(seen, at_destination, sure_destination),
        destination_out=_place_of(_answer_of(at_destination), sure_destination),
        source_in=_place_of(_answer_of(at_source), sure_answer),
        prober=_prober_place(seen),
        errors=errors,
    ).settled()
    witness = seen.witness
    came = at_destination is not None and at_destination.requests is not None
    if told.translated is not None and came and (witness is None or witness.seen_from is None):
        witness = replace(witness or Witness(), seen_from=told.translated)
    return replace(seen, story=story, witness=witness)


def _prober_place(seen: Observation) -> StoryPlace:
    """Tell whether an answer reached the prober; a refusal may be this host's own."""
    answered = seen.outcome is not None and seen.outcome.answer is not None
    return StoryPlace("yes") if answered else NO if seen.silent else UNKNOWN


def _is_sure(told: StoryTold | None) -> bool:
    """Tell whether what this recorder did not see did not come."""
    return told is not None and told.heard and not told.lost and not told.full


def _place_of(packets: SeenPackets | None, sure: bool) -> StoryPlace:
    if packets is None:
        return NO if sure else UNKNOWN
    return StoryPlace("yes", packets.most, packets.first_ns, packets.device, packets.ttl)


def _answer_of(run: SeenRun | None) -> SeenPackets | None:
    """Give the answers, or the resets where there was nothing else."""
    return run and (run.answers or run.resets)


def _socket_place(seen: Observation, at_destination: SeenRun | None, sure: bool) -> StoryPlace:
    """Tell whether the request reached a socket: the listener's word, or a SYN-ACK that left.

    A connection whose SYN-ACK gets lost is never accepted: the listener does not know of it.
    """
    witness = seen.witness
    accepted = seen.task.protocol == "tcp" and at_destination is not None
    if accepted and at_destination is not None and at_destination.answers is not None:
        return StoryPlace("yes", at_destination.answers.most)
    if witness is None or seen.listener.state != "ours":
        return UNKNOWN
    if witness.socket:
        return StoryPlace("yes")
    return NO if sure or seen.task.protocol != "tcp" else UNKNOWN


def _list_errors(seen: Observation, told: Told) -> Iterator[StoryError]:
    destination = seen.task.wants[0].flow.destination.name
    for error in _errors_about(seen, told.destination):
        if error.outgoing:
            yield _make_error(error, destination)
    for error in _errors_about(seen, told.source):
        if not error.outgoing or error.local:
            yield _make_error(error, seen.task.source.name if error.local else None)


def _errors_about(seen: Observation, told: StoryTold | None) -> Iterator[SeenError]:
    for error in told.errors if told is not None else ():
        if not seen.ports or port_sets.intersect(seen.ports, port_sets.normalise(error.ports)):
            yield error


def _make_error(error: SeenError, left: str | None) -> StoryError:
    return StoryError(error.sender, error.type, error.code, error.ttl, error.packets, left)
