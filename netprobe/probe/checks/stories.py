"""Asks the recorders of both ends what they saw of a flow's packets.

Makes the question that the recorders of both ends are asked about some flows of a pair.

Where several sources may send from one translated address, a packet is a source's own if its nonce
or sequence number says so; of the others nothing is concluded.

What follows: an answer or a refusal, of which the destination's recorder saw no request, is of
something on the way, ``[path]``; so is an echo reply, a live service, and an ICMP error with the
destination's address (``inconclusive`` where a service holds the port rightly: a proxy may be
there). If the request did not leave the source: ``[source]``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Iterable

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import EchoOrder, StoryOrder
from netprobe.agent.wire.parts import TranslatedRun
from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS, NONCES
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.notes import StoryNote
from netprobe.model.ports import PortRange, Ports
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.late_answers import came_late, wait_longer
from netprobe.probe.checks.lost_looks import ask_lossy, shows_loss
from netprobe.probe.checks.story_reading import NO_PORT, Told, cut_by_story, share_out
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task

# Of more ranges than that only what they have in common is told.
MOST_RANGES = 256

LOOPBACK = "lo"
# Of so many translated addresses the answers are looked for too.
MOST_TRANSLATED = 4
# A recorder knows packets of these protocols by their addresses alone.
NAMELESS = ("tcp", "icmp")
# A recorder gives the sequence numbers of so many ports of a range.
NUMBERED = 64


def name_packets(seen: Observation) -> str:
    """Give the packets that a flow's story is about, as ``StoryOrder.proto`` names them."""
    return NONCES if seen.unanswered else seen.task.protocol


def make_order(group: list[Observation], asker: str) -> StoryOrder:
    """Make the order about all these flows, which have one pair and the same kind of packets."""
    name, _, number = name_packets(group[0]).partition("/")
    numbers = {order for seen in group for order, _ in seen.orders}
    own_ports = {sport for seen in group for _, sport in seen.orders if sport is not None}
    return StoryOrder(
        0, name, int(number) if number else None, asker, group[0].task.address,
        list(_list_ranges(group)), sent=True, numbers=[] if name == "tcp" else sorted(numbers),
        own_ports=sorted(own_ports),
    )  # fmt: skip


def _list_ranges(group: list[Observation]) -> Ports:
    """List the port ranges that become results of their own, which have stories of their own."""
    blocks = [want.flow.block.ports for seen in group for want in seen.task.wants]
    wanted = _join_overlapping(entry for ports in set(blocks) for entry in ports)
    rest = [port_sets.subtract(seen.ports, wanted) for seen in group]
    known = [port_sets.intersect(seen.ports, wanted) for seen in group]
    ranges = tuple(sorted({piece for pieces in (*known, *rest) for piece in pieces}))
    return ranges if len(ranges) <= MOST_RANGES else port_sets.normalise(ranges)


def _join_overlapping(ranges: Iterable[PortRange]) -> Ports:
    """Join ranges that overlap; ports that different requirements list beside each other stay
    apart."""
    joined: list[PortRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


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
        source = scene.fleet.agent(group[0].task.source)
        if not source.records and not (scene.agent.records and scene.is_recorded):
            return group
        found = await self._read_stories(group, scene)
        # Nobody waited for these answers any more. Who waits longer sees whether they get through,
        # unless that look gets lost.
        found = await self._ask_again(found, came_late, wait_longer, scene)
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
            for piece in cut_by_story(some, one)
        ]


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
        found = await gather_all(_ask_about(some, asker, source, scene) for some in kinds)
        may_move = scene.origins.is_translated(task) or any(one.translated for one in found)
        waiting = scene.fleet.sees_waiting
        return [one._replace(may_move=may_move, sees_waiting=waiting) for one in found]

    told = await ask()
    if any(_is_deaf(one.source) or _is_deaf(one.destination) for one in told):
        await _send_controls(task, scene)
        told = await ask()
        if any(_is_deaf(one.destination, others=True) for one in told):
            await _ask_next_hop(asker, task, scene)
            told = await ask()
    return [part for some, one in zip(kinds, told, strict=True) for part in share_out(some, one)]


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
    group: list[Observation], asker: str, source: AgentMethods, scene: Scene
) -> Told:
    order = make_order(group, asker)
    at_source = await _ask_one(source, order)
    connected = await _find_connected(source, order) if order.proto == NONCES else ()
    if at_source is not None and order.proto == "tcp":
        # The packets of the run's TCP flows have no nonce; their sequence numbers name them.
        order = order._replace(numbers=_list_numbers(at_source))
    order = order._replace(sent=False)
    # A recorder that began later says of what was sent before that it did not come.
    at_destination = await _ask_one(scene.agent, order) if scene.is_recorded else None
    told = Told(at_source, at_destination, connected=connected)
    if at_destination is None or not at_destination.translated:
        return told
    task = group[0].task
    if order.proto == "tcp" and any(
        _find_shared(task, order, other, scene) for other in at_destination.translated
    ):
        order = order._replace(numbers=await _ask_all_numbers(source, order))
        again = await _ask_one(scene.agent, order)
        at_destination = again if again is not None and again.translated else at_destination
    return await _ask_translated(told, task, order, at_destination, scene)


def _list_numbers(told: StoryTold | None) -> list[int]:
    return [number for run in told.runs for number in run.numbers] if told is not None else []


async def _ask_all_numbers(source: AgentMethods, order: StoryOrder) -> list[int]:
    """Ask for the number of every port: those of a few ports show nothing of the others."""
    pieces = [
        (start, min(start + NUMBERED - 1, last))
        for first, last in order.ports
        for start in range(first, last + 1, NUMBERED)
    ]
    told = await _ask_one(source, order._replace(ports=pieces, sent=True, numbers=[]))
    return _list_numbers(told) or order.numbers


def _find_shared(task: Task, order: StoryOrder, moved: TranslatedRun, scene: Scene) -> Ports:
    """Find the ports to which other sources may have sent from a translated address, too."""
    if order.proto not in NAMELESS or moved.asker == order.asker:
        return ()
    rivals = scene.origins.list_rivals(task, moved.asker)
    return port_sets.union(ports if task.ports else NO_PORT for ports in rivals)


async def _ask_translated(
    told: Told, task: Task, order: StoryOrder, there: StoryTold, scene: Scene
) -> Told:
    """Ask the destination's recorder about the translated addresses, and whose packets came.

    What came from an address that it is not asked about, or tells nothing of, may be any packet.
    """
    first = there.translated[0].asker
    tied: list[Ports] = []
    shared: list[Ports] = []
    for other in there.translated[:MOST_TRANSLATED]:
        more = await _ask_one(scene.agent, order._replace(asker=other.asker, target=other.target))
        if more is None:
            break
        there = there._replace(
            runs=there.runs + more.runs, errors=there.errors + more.errors, heard=True
        )
        seen = port_sets.union(port_sets.normalise(run.ports) for run in more.runs)
        shared.append(port_sets.intersect(seen, _find_shared(task, order, other, scene)))
        tied.append(port_sets.normalise(other.ports))
    if len(tied) < len(there.translated):
        there = there._replace(full=True)
    several, known = port_sets.union(shared), port_sets.union(tied)
    return told._replace(
        destination=there,
        translated=None if first == order.asker else first,
        tied=port_sets.intersect(several, known),
        untied=port_sets.subtract(several, known),
    )


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
