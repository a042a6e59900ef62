"""Finds the host that stops a silent flow's packets, where no recorder could see them.

Each kernel counts the packets that it stops as they come in, and those that it stops as they leave;
every program may read that (docs/network-facts.md, section 6). The check sends the flow's packets
in half of twelve moments, which chance draws after the first one; the others last as long. A host
that stops them counts all of them in each of these moments, and few in the others. A host that
counts none in two of these moments does not stop them, whatever other packets it stops.

What follows: whether the destination stops the request or its answer, the source the answer, or the
request did not come. A host is asked five times at most.

Of a datagram to a port that must not answer (quiet-holder) a recorder tells that it came, and not
whether the firewall behind it lets it in: there the destination's counters are asked, too.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address
from statistics import fmean, pstdev

from msgspec.structs import replace

from netprobe.agent.wire.failures import NETWORK_UNREACHABLE
from netprobe.agent.wire.host_messages import PacketCounts
from netprobe.model import ports as port_sets
from netprobe.model.evidence import NOT_COUNTED, StoppedPackets
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.checks.late_answers import wait_longer
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ROUND_TRIPS, Timing

# Moments in which the flow is asked, and as many in which it is not: a second in all.
MOMENTS = 6
# Looks at each port in such a moment.
LOOKS = 8
# Flows of more ports together are not asked again so often.
MOST_PORTS = 32
LEAST_LOOK_MS, MOST_LOOK_MS = 60, 500
# A watch on a busy machine ends then: the flows of others wait for it.
MOST_WATCH_S = 15.0
# A kernel sends a SYN-ACK that was stopped again after 1, 3, 7, 15 s. A watch that asks in the
# first halves of its slots meets none of its own; those that begin with an even second of one clock
# meet none of each other's.
SLOT_S = 2.0
# How many standard deviations of a mean the packets of others do not explain.
DEVIATIONS = 4
# So many moments without a count show that nothing was stopped.
FREE_MOMENTS = 2


class StoppedPacketsLook(Check):
    """Watches the counters of both ends for silent flows."""

    name = "stopped-packets"

    def concerns(self, seen: Observation) -> bool:
        """Silent flows whose packets may have left, and that may be asked many times at once; an
        agent sends an address one echo request at a time. Where the destination has no route back,
        nobody can be answered."""
        if seen.witness is not None and seen.witness.reply_failure == NETWORK_UNREACHABLE:
            return False
        silent = seen.silent and seen.has_left is not False
        at_once = seen.task.protocol in ("tcp", "udp") and not seen.part.paced
        return silent and at_once and seen.task.via is None and seen.conclusion is None

    def group(self, seen: Observation) -> Hashable:
        """What is asked together: flows of a pair by one protocol, of which as much is known."""
        return (*seen.task.pair, seen.task.protocol, seen.part.ours, has_reached(seen))

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow what the counters tell of it, as long as there are looks left."""
        source = scene.fleet.agent(group[0].task.source)
        ends = self._choose_ends(group[0], scene)
        if not ends or source is scene.agent or _is_of_source(group[0].task.address, source):
            return group
        return await self._look_at(group, ends, scene)

    def _choose_ends(self, seen: Observation, scene: Scene) -> list[AgentMethods]:
        """Choose the agents of whose packets no recorder tells."""
        source, there = scene.fleet.agent(seen.task.source), scene.agent
        has_seen = there.records and scene.is_recorded
        return [
            agent
            for agent, place, records in (
                (source, "source_in", source.records),
                (there, "destination_in", has_seen),
            )
            if agent.alive and not records and not _is_told(seen, place)
        ]

    async def _look_at(
        self, flows: list[Observation], ends: list[AgentMethods], scene: Scene
    ) -> list[Observation]:
        """Ask flows together; where the counters tell of some of them only, by halves."""
        ports = sum(_count_flows(seen) for seen in flows)
        if ports > MOST_PORTS or any(agent.counted_left <= 0 for agent in ends):
            return flows
        for agent in ends:
            agent.counted_left -= 1
        async with AsyncExitStack() as stack:
            # In one order everywhere: two that wait for each other would wait for ever.
            for agent in sorted(ends, key=lambda one: one.host.name):
                await stack.enter_async_context(agent.counting)
            watch = _Watch(flows, scene, ends)
            await watch.take_moments()
        if watch.is_mixed and ports > 1:
            halves = _halve_flows(flows)
            return [one for half in halves for one in await self._look_at(half, ends, scene)]
        if watch.answered:
            return await _ask_once_more(flows, scene)
        stopped = watch.conclude()
        if stopped == NOT_COUNTED:
            return flows
        return [replace(one, stopped=stopped).noting(self.name) for one in flows]


class QuietHolders(StoppedPacketsLook):
    """Watches the destination's counters for ports that must not answer, and keep quiet."""

    name = "quiet-holder"

    def concerns(self, seen: Observation) -> bool:
        """Silent datagrams whose port has a known holder, or a translation that may take them."""
        is_known = seen.listener.state in ("live", "closed")
        is_quiet = seen.task.protocol == "udp" and seen.lost and seen.came != "no"
        return seen.task.denied and is_known and is_quiet

    def group(self, seen: Observation) -> Hashable:
        """What is asked together: flows of a pair of which as much is known."""
        return (*seen.task.pair, seen.listener.state, seen.came)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Watch without a pace: a holder's silence is not that of an ICMP error's rate."""
        unpaced = [replace(one, part=replace(one.part, paced=False)) for one in group]
        found = await super().look(unpaced, scene)
        if found is unpaced:
            return group
        return [replace(one, part=replace(one.part, paced=True)) for one in found]

    def _choose_ends(self, seen: Observation, scene: Scene) -> list[AgentMethods]:
        """Choose the destination, unless nothing listens there, nor may anything yet."""
        hello = scene.agent.hello
        runs = scene.prober.everything_runs or (hello is not None and hello.kubelet)
        is_asked = scene.agent.alive and (runs or seen.listener.state == "live")
        return [scene.agent] if is_asked else []


async def _ask_once_more(flows: list[Observation], scene: Scene) -> list[Observation]:
    """Ask flows of which some look was answered meanwhile; what is silent again is as before."""
    asked = await asyncio.gather(*(wait_longer([seen], scene) for seen in flows))
    pairs = [(seen, one) for seen, some in zip(flows, asked, strict=True) for one in some]
    silent = [replace(seen, ports=one.ports) for seen, one in pairs if _is_unheard(one)]
    found = [one for _, one in pairs if not _is_unheard(one)]
    return silent + (found if scene.round is None else await with_witnesses(found, scene.round))


def _is_of_source(address: str, source: AgentMethods) -> bool:
    """Tell whether the source's machine has the address: then one kernel counts both ends."""
    return address in source.own_addresses or ip_address(address).is_loopback


def _is_told(seen: Observation, place: str) -> bool:
    """Tell whether a recorder has told of this place of the story."""
    return seen.story is not None and getattr(seen.story, place).seen != "unknown"


def _count_flows(seen: Observation) -> int:
    return port_sets.count(seen.ports) or 1


def _count_packets(seen: Observation) -> int:
    return _count_flows(seen) * ((seen.outcome and seen.outcome.packets) or 1)


def _halve_flows(flows: list[Observation]) -> list[list[Observation]]:
    if len(flows) > 1:
        return [flows[::2], flows[1::2]]
    each = list(port_sets.each(flows[0].ports))
    first = port_sets.normalise((port, port) for port in each[: len(each) // 2])
    return [[piece] for _, piece in flows[0].cut(first)]


@dataclass
class _Watch:
    """How far the counters of the ends moved, in moments in which flows were asked (``asked``) and
    in others. ``sent``: the fewest packets of a moment, of which a look at UDP takes several.
    ``reached``: their packets came to a socket of ours. ``is_mixed``: a counter counts some of what
    was asked."""

    flows: Sequence[Observation]
    scene: Scene
    ends: Sequence[AgentMethods]
    asked: list[list[PacketCounts]] = field(default_factory=list)
    rested: list[list[PacketCounts]] = field(default_factory=list)
    sent: float = math.inf
    reached: bool = False
    answered: bool = False

    async def take_moments(self) -> None:
        """Ask the flow in half of the moments, and rest in the others, each for as long as asking
        takes on this machine: packets of others come all the time. Raises AgentError.

        What takes too long tells nothing.
        """
        order = [True] * (MOMENTS - 1) + [False] * MOMENTS
        random.shuffle(order)
        loop, rest_s = asyncio.get_running_loop(), 0.0
        ends_at = loop.time() + SLOT_S + MOST_WATCH_S
        is_tcp = self.flows[0].task.protocol == "tcp"
        if is_tcp and has_reached(self.flows[0]):
            await asyncio.sleep(-loop.time() % SLOT_S)
        begun_at = loop.time()
        before = await self._count_packets()
        if all(one.stopped is None for one in before):
            return  # no kernel says anything
        for is_asked in (True, *order):
            into_s = (loop.time() - begun_at) % SLOT_S
            if is_tcp and rest_s < SLOT_S / 2 < into_s + rest_s:
                await asyncio.sleep(SLOT_S - into_s)
                before = await self._count_packets()
            if is_asked:
                begun = loop.time()
                await self._ask_flows()
                rest_s = max(rest_s, loop.time() - begun)
            else:
                await asyncio.sleep(rest_s)
            if loop.time() > ends_at:
                self.asked.clear()
                return
            after = await self._count_packets()
            (self.asked if is_asked else self.rested).append(_subtract_counts(before, after))
            before = after

    async def _count_packets(self) -> list[PacketCounts]:
        address = self.flows[0].task.address
        return await asyncio.gather(*(agent.packet_counts(address) for agent in self.ends))

    def _choose_look_ms(self) -> int:
        # What was lost, or opened late, does not tell how far the other end is.
        fastest_ms = self.scene.prober.answered.fastest_ms(*self.flows[0].task.pair) or 0
        return min(MOST_LOOK_MS, max(LEAST_LOOK_MS, round(ROUND_TRIPS * fastest_ms)))

    async def _ask_flows(self) -> None:
        timing = Timing(self._choose_look_ms(), self._choose_look_ms(), 1)
        looks = (
            self.scene.prober.again(seen, timing, patient=False)
            for seen in self.flows
            for _ in range(LOOKS)
        )
        found = [one for some in await asyncio.gather(*looks) for one in some]
        self.sent = min(self.sent, sum(map(_count_packets, found)))
        self.answered = self.answered or not all(map(_is_unheard, found))
        if self.scene.round is not None:
            found = await with_witnesses(found, self.scene.round)
            self.reached = self.reached or any(map(has_reached, found))

    @property
    def is_mixed(self) -> bool:
        """Whether a counter that counts at all tells nothing of these flows together."""
        there = self.scene.agent
        counters = [*(("stopped", one) for one in self.ends), ("held", there), ("segments", there)]
        return any(
            self._is_stopped(agent, name) is None
            and min(self._list_moves(agent, name, self.asked), default=0) >= LOOKS / 2
            for name, agent in counters
        )

    def conclude(self) -> StoppedPackets:
        """Tell where the packets are stopped."""
        first = self.flows[0]
        source, there = self.scene.fleet.agent(first.task.source), self.scene.agent
        is_tcp = first.task.protocol == "tcp"
        taken = is_tcp and self._is_stopped(there, "segments") is True
        reached = taken or self.reached or has_reached(first)
        request = None if reached else self._is_stopped(there, "stopped")
        if request is False and first.came != "yes" and not self._would_be_noticed():
            request = None
        # What listens there for others may have made no reply.
        reply = self._is_stopped(there, "held") if reached and first.part.ours else None
        if reply is False and ":" in first.task.address:
            reply = None  # an IPv6 reset of its own firewall is counted as it leaves, not before
        return StoppedPackets(request, reply, self._is_stopped(source, "stopped"), taken)

    def _is_stopped(self, agent: AgentMethods, counter: str) -> bool | None:
        """Tell whether a counter of a host counts all of the flows' packets, or none of them.

        None: it does not tell, or counts some of them. Loss takes from one port, too; of several
        ports one may be another case than the others.
        """
        asked, rested = (self._list_moves(agent, counter, one) for one in (self.asked, self.rested))
        if not asked or not rested:
            return None
        if sum(moved <= LOOKS / 8 for moved in asked) >= FREE_MOMENTS:
            return False
        ports = sum(_count_flows(seen) for seen in self.flows)
        least = LOOKS / 2 if ports == 1 else self.sent * 0.98
        more = fmean(asked) - fmean(rested)
        # The packets of others are spread over all moments alike, as far as chance goes.
        spread = max(pstdev(asked), pstdev(rested))
        by_chance = DEVIATIONS * spread * math.sqrt(2 / MOMENTS)
        counts_all = min(asked) >= least and more >= max(least, by_chance)
        return True if counts_all else None

    def _list_moves(
        self, agent: AgentMethods, counter: str, moments: Iterable[Sequence[PacketCounts]]
    ) -> list[int]:
        if agent not in self.ends:
            return []
        moves = [getattr(moment[self.ends.index(agent)], counter) for moment in moments]
        return [] if None in moves else moves

    def _would_be_noticed(self) -> bool:
        """Tell whether requests that get past the destination's firewall come to a listener of
        ours; those of TCP may be answered, and forgotten, before it is asked."""
        if not self.flows[0].part.ours:
            return False
        if self.flows[0].task.protocol != "tcp":
            return True
        return self._is_stopped(self.scene.agent, "segments") is False


def _is_unheard(seen: Observation) -> bool:
    """Tell whether nothing came back: no answer, or no error to what is sent without one."""
    outcome = seen.outcome
    sent = outcome is not None and outcome.failure is None and outcome.answer is None
    return seen.silent or sent


def has_reached(seen: Observation) -> bool:
    """Tell whether the packets came to a socket of ours."""
    return seen.witness is not None and seen.witness.socket


def _subtract_counts(
    before: Sequence[PacketCounts], after: Sequence[PacketCounts]
) -> list[PacketCounts]:
    return [
        PacketCounts(
            later.id,
            *(
                None if one is None or other is None else other - one
                for one, other in zip(first[1:], later[1:], strict=True)
            ),
        )
        for first, later in zip(before, after, strict=True)
    ]
