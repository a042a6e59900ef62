"""Reads the story of a flow: what the recorders of both ends saw of its packets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import replace
from typing import NamedTuple

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import EchoOrder, StoryOrder
from netprobe.agent.wire.parts import SeenError, SeenPackets, SeenRun
from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS, NONCES
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.dataclass_json import Nanoseconds
from netprobe.model.evidence import Witness
from netprobe.model.notes import StoryNote
from netprobe.model.ports import Ports
from netprobe.model.story import UNKNOWN, Story, StoryError, StoryPlace
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.lost_looks import ask_lossy, came_late, shows_loss
from netprobe.probe.checks.refusers import is_in_its_name, with_refusal
from netprobe.probe.checks.story_order import make_order, name_packets
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task

NO = StoryPlace("no")
PLAIN = "plain"
LOOPBACK = "lo"
# Of so many translated addresses the answers are looked for too.
MOST_TRANSLATED = 4


class Stories(Check):
    """Asks the recorders of both ends, once for each source and address."""

    name = "story"

    def concerns(self, seen: Observation) -> bool:
        """All flows that were probed directly, unless our own listener answered."""
        outcome = seen.outcome
        if outcome is None or seen.task.via is not None or seen.stood_for:
            return False
        return outcome.answer != "nonce"

    def group(self, seen: Observation) -> Hashable:
        """A pair; one question tells of all ports of one of its protocols: of their SYNs, or of the
        nonces on connections that opened."""
        return seen.task.pair

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow its story, cut where the ports of a flow differ in theirs."""
        if not scene.fleet.agent(group[0].task.source).records and not scene.agent.records:
            return group
        found = await self._read_stories(group, scene)
        # Nobody waited for these answers any more. Who waits longer sees whether they get through,
        # unless that look gets lost.
        found = await self._ask_again(found, came_late, _wait_longer, scene)
        return await self._ask_again(found, shows_loss, ask_lossy, scene)

    async def _ask_again(
        self,
        found: list[Observation],
        is_doubted: Callable[[Observation], bool],
        ask: Callable[[list[Observation], Scene], Awaitable[list[Observation]]],
        scene: Scene,
    ) -> list[Observation]:
        """Ask the flows that are in doubt once more, and read their stories anew."""
        doubted = [seen for seen in found if is_doubted(seen)]
        if not doubted:
            return found
        asked = await ask(doubted, scene)
        if scene.round is not None:
            asked = await with_witnesses(asked, scene.round)
        rest = [seen for seen in found if not is_doubted(seen)]
        return rest + await self._read_stories(asked, scene)

    async def _read_stories(self, group: list[Observation], scene: Scene) -> list[Observation]:
        told = await ask_recorders(group, scene)
        return [
            piece.noting(self.name, StoryNote(bool(one.source or one.destination)))
            for some, one in told
            for seen in some
            for piece in _cut_by_story(seen, one)
        ]


async def _wait_longer(late: list[Observation], scene: Scene) -> list[Observation]:
    """Ask flows again, unhurriedly; where nobody can, what was seen before stands."""
    asked = await asyncio.gather(*(scene.prober.again(seen) for seen in late))
    return [
        one if one.outcome is not None else replace(seen, ports=one.ports)
        for seen, again in zip(late, asked, strict=True)
        for one in again
    ]


class Told(NamedTuple):
    """What both recorders told of a pair and protocol; None: there is none, or it was lost.

    ``translated``: the address that the packets of the source come from, where it is another one.
    ``connected``: ports of connections whose SYN left the source, if this is about their data.
    """

    source: StoryTold | None
    destination: StoryTold | None
    translated: str | None = None
    connected: Ports = ()


async def ask_recorders(
    group: list[Observation], scene: Scene
) -> list[tuple[list[Observation], Told]]:
    """Ask about all flows of a pair, by protocol.

    Where a recorder saw nothing of the source yet, something harmless shows whether it would have.
    """
    if not group:
        return []
    task = group[0].task
    source = scene.fleet.agent(task.source)
    route = await source.route(task.address, source_address(task))
    asker = source_address(task) or route.source
    # What goes from an address to itself never leaves the host.
    is_here = route.dev == LOOPBACK and task.source != scene.agent.host
    if asker is None or is_here:
        return [(group, Told(None, None))]
    kinds = group_by(group, name_packets)

    async def ask() -> list[Told]:
        return await asyncio.gather(
            *(_ask_about(some, asker, source, scene.agent) for some in kinds)
        )

    told = await ask()
    if any(_is_deaf(one.source) or _is_deaf(one.destination) for one in told):
        await _send_controls(task, scene)
        told = await ask()
        if any(_is_deaf(one.destination, others=True) for one in told):
            await _ask_next_hop(asker, task, scene)
            told = await ask()
    return list(zip(kinds, told, strict=True))


def _is_deaf(told: StoryTold | None, *, others: bool = False) -> bool:
    """Tell whether a recorder saw nothing of the source; ``others``: and of nobody else."""
    return told is not None and not told.heard and not (others and told.awake)


async def _send_controls(task: Task, scene: Scene) -> None:
    """Send an echo request and a SYN to a port that nobody uses, from the address of the flows."""
    control = ((CONTROL_PORTS[0],) * 2,)
    await asyncio.gather(
        scene.prober.ask(task, "icmp", (), look_ms=CHECK_MS),
        scene.prober.ask(task, "tcp", control, look_ms=CHECK_MS),
    )


async def _ask_next_hop(asker: str, task: Task, scene: Scene) -> None:
    """Let the destination ask its next hop for an echo: the answer comes in as requests would."""
    with contextlib.suppress(AgentError):
        hop = (await scene.agent.route(asker, task.address)).gateway or asker
        number = next(scene.fleet.order_ids)
        await scene.agent.probe(
            EchoOrder(number, [hop], task.address, CHECK_MS, CHECK_MS, 1, size=None, numbers=[])
        )


async def _ask_about(
    group: list[Observation], asker: str, source: AgentMethods, destination: AgentMethods
) -> Told:
    order = make_order(group, asker)
    at_source = await _ask_one(source, order)
    connected = await _find_connected(source, order) if order.proto == NONCES else ()
    if at_source is not None and order.proto == "tcp":
        # The packets of the run's TCP flows have no nonce; their sequence numbers name them.
        numbers = [number for run in at_source.runs for number in run.numbers]
        order = order._replace(numbers=numbers)
    order = order._replace(sent=False)
    at_destination = await _ask_one(destination, order)
    if at_destination is None or not at_destination.translated:
        return Told(at_source, at_destination, connected=connected)
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
    translated = None if first.asker == asker else first.asker
    return Told(at_source, at_destination, translated, connected)


async def _find_connected(source: AgentMethods, order: StoryOrder) -> Ports:
    """Find the ports to which the source sent SYNs.

    What a connection carries stays in a host whose peer gives no window, as SYN proxies do.
    """
    told = await _ask_one(source, order._replace(proto="tcp", numbers=[]))
    runs = told.runs if told is not None else ()
    return port_sets.union(port_sets.normalise(run.ports) for run in runs if run.requests)


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
    # Datagrams without a nonce are known by the source's own address and port only, and nonces on
    # connections by what plain ones begin with.
    named = seen.task.protocol in ("tcp", "icmp") or seen.part.ours
    named = named and (seen.part.protocol.name == PLAIN or not seen.unanswered)
    known = named or seen.sport is not None
    sure_source = known and _is_sure(told.source, named=True)
    # A translation may hide where SYNs come from whose numbers nobody at the source recorded.
    numbered = told.source is not None or (seen.part.ours and seen.task.protocol == "udp")
    sure_destination = known and _is_sure(told.destination, named=named and numbered)
    errors = tuple(_list_errors(seen, told))
    # An error that came to the interface is an answer, too, whatever the own firewall did with it.
    # Of answers to empty datagrams the recorder does not know how they begin.
    known = named or seen.part.mode == "bytes"
    sure_answer = sure_source and known and not any(error.arrived for error in errors)
    came = _place_of(at_destination and at_destination.requests, sure_destination)
    if came == UNKNOWN and is_in_its_name(seen, told.destination, errors):
        came = NO
    held_back = seen.unanswered and bool(port_sets.intersect(seen.ports, told.connected))
    story = Story(
        source_out=_place_of(at_source and at_source.requests, sure_source and not held_back),
        destination_in=came,
        socket=_socket_place(seen, at_destination, sure_destination),
        destination_out=_place_of(_answer_of(seen, at_destination), sure_destination),
        source_in=_place_of(_answer_of(seen, at_source), sure_answer),
        prober=_prober_place(seen),
        errors=(*errors, *_list_resets(seen, at_source, at_destination, sure=sure_destination)),
    ).settled()
    witness = seen.witness
    moved = told.translated is not None and came.seen == "yes"
    if moved and (witness is None or witness.seen_from is None):
        witness = replace(witness or Witness(), seen_from=told.translated)
    return with_refusal(replace(seen, story=story, witness=witness))


def _prober_place(seen: Observation) -> StoryPlace:
    """Tell whether an answer reached the prober; a refusal may be this host's own."""
    answer = seen.outcome and seen.outcome.answer
    if seen.silent or (seen.unanswered and answer == "silent"):
        return NO
    return StoryPlace("yes") if answer is not None and not seen.unanswered else UNKNOWN


def _is_sure(told: StoryTold | None, *, named: bool) -> bool:
    """Tell whether what this recorder did not see did not come.

    It must have seen something of the asker; of anybody where packets are ``named`` by more than
    addresses. What is harmless did not come either then.
    """
    if told is None or told.lost or told.full:
        return False
    return told.heard or (named and told.awake)


def _place_of(packets: SeenPackets | None, sure: bool) -> StoryPlace:
    if packets is None:
        return NO if sure else UNKNOWN
    first_ns = Nanoseconds(packets.first_ns)
    return StoryPlace("yes", packets.most, first_ns, packets.device, packets.ttl)


def _answer_of(seen: Observation, run: SeenRun | None) -> SeenPackets | None:
    """Give the answers, or the resets where nothing else was there and our listener is not."""
    if run is None or seen.listener.state == "ours":
        return run and run.answers
    return run.answers or run.resets


def _socket_place(seen: Observation, at_destination: SeenRun | None, sure: bool) -> StoryPlace:
    """Tell whether the request reached a socket: the listener's word, or a SYN-ACK that left.

    A connection whose SYN-ACK gets lost is never accepted: the listener does not know of it.
    """
    witness = seen.witness
    answers = at_destination.answers if at_destination is not None else None
    if seen.task.protocol == "tcp" and answers is not None:
        return StoryPlace("yes")  # how often is not known: the kernel repeats SYN-ACKs
    if witness is None or seen.listener.state != "ours":
        return UNKNOWN
    if witness.socket:
        return StoryPlace("yes")
    return NO if sure or seen.task.protocol != "tcp" else UNKNOWN


def _list_errors(seen: Observation, told: Told) -> Iterator[StoryError]:
    """List the errors about the flow; one that left the destination and arrived is one error."""
    destination = seen.task.wants[0].flow.destination.name
    left = [error for error in _errors_about(seen, told.destination) if error.outgoing]
    at_source = list(_errors_about(seen, told.source))
    arrived = [error for error in at_source if not (error.outgoing or error.local)]
    for error in left:
        if not any(_is_same(error, other, seen.task.address) for other in arrived):
            yield _make_error(seen, error, destination, arrived=False)
    for error in arrived:
        known = any(_is_same(other, error, seen.task.address) for other in left)
        forged = (
            not known
            and error.sender == seen.task.address
            and _is_sure(told.destination, named=True)
        )
        made = _make_error(seen, error, destination if known else None)
        yield replace(made, not_left=destination) if forged else made
    for error in at_source:
        if error.local:
            yield _make_error(seen, error, seen.task.source.name, arrived=False)


def _is_same(left: SeenError, arrived: SeenError, address: str) -> bool:
    """Tell whether an error that left is the one that arrived; translation gives it our address."""
    same = (left.type, left.code) == (arrived.type, arrived.code)
    return same and arrived.sender in (left.sender, address)


def _errors_about(seen: Observation, told: StoryTold | None) -> Iterator[SeenError]:
    for error in told.errors if told is not None else ():
        if not seen.ports or _common_ports(seen, error):
            yield error


def _common_ports(seen: Observation, error: SeenError) -> Ports:
    return port_sets.intersect(seen.ports, port_sets.normalise(error.ports))


def _make_error(
    seen: Observation, error: SeenError, left: str | None, *, arrived: bool = True
) -> StoryError:
    quoted = _name_packet(seen, _common_ports(seen, error) if seen.ports else ())
    return StoryError(
        error.sender, error.type, error.code, error.ttl, error.packets, quoted, left,
        arrived=arrived,
    )  # fmt: skip


def _name_packet(seen: Observation, ports: Ports) -> str:
    return f"{seen.task.protocol} {port_sets.text(ports)}".strip()


def _list_resets(
    seen: Observation, at_source: SeenRun | None, at_destination: SeenRun | None, *, sure: bool
) -> Iterator[StoryError]:
    """Tell of the resets: where they arrived, whether the destination's recorder saw them leave."""
    came = at_source and at_source.resets
    left = at_destination and at_destination.resets
    first = came or left
    if first is not None:
        name = seen.task.wants[0].flow.destination.name
        yield StoryError(
            seen.task.address, None, None, first.ttl, first.most, _name_packet(seen, seen.ports),
            left=name if left is not None else None,
            not_left=name if left is None and sure else None,
            arrived=came is not None,
        )  # fmt: skip
