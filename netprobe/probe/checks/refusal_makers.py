"""Tells whether the destination made what refuses a flow in its name.

A translation on the way gives all that comes back through it the destination's address: the errors
of routers behind it, and the refusals of another host or port (docs/network-facts.md, section 2).

* What a firewall rejects is looked at always, because its place is asked for.
* A refusal, which would pass, only where the run gives a reason to doubt its maker: its TTL is not
  that of genuine answers, or tells of fewer routers than there are on the way, or something on the
  way answers for the address elsewhere.
* A connection that a port accepts where no agent is has the same doubt by its TTL.
* A reset that seems to come from nearer, by its TTL, is doubtful where a walk on its port comes
  farther than that: something on the way may set the TTL of all that it forwards.
* The look is a walk on the flow's own port: where the last router before the destination still says
  "time exceeded" in its own name, no router has translated the packet. What that router itself
  makes in the destination's name looks the same to a walk, and comes from one hop nearer.

What follows: it is the destination's, if no router has translated the packet, and it comes from as
far as genuine answers. Else a refusal is ``inconclusive``, and the places are ``[destination,
path]``. What a recorder there saw needs no look.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from msgspec.structs import replace

from netprobe.agent.wire.questions import MAX_TTL
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import RefusalMaker, ResetOrigin
from netprobe.model.notes import MakerNote, ResetNote
from netprobe.model.ports import Ports
from netprobe.model.story import TrailStatus
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.distances import DistanceWalks
from netprobe.probe.checks.forged_resets import is_reset
from netprobe.probe.checks.genuine import (
    INITIAL_TTLS,
    arrival_ttl,
    choose_sample,
    count_lost_hops,
    find_by_sample,
    find_genuine,
    find_refused,
)
from netprobe.probe.checks.traceroute import WALKED
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task

# What a port or a protocol that nobody handles is answered with.
REFUSALS = {"udp": ("port-unreach",), "ipproto": ("port-unreach", "proto-unreach")}
# Where a listener of ours or a service waits, a refusal is no pass.
UNHELD = ("closed", "unknown", "lost")
# A Linux host sends six ICMP errors to an address, then one a second. This waits for the next one.
RATION_S = 1.1
# A source, another router, the last router, the destination: nearer ones have no router between.
LEAST_DISTANCE = 3
ELSEWHERE = "something else answers for it on other ports"
LOWER = "genuine answers of it arrive with TTL {ttl}, and this with a lower one"
NEAR = "no router on the way has lowered its TTL ({arrived})"
PASSED = "its TTL ({arrived}) is that of something nearer than a router on the way to the address"
HIGHER = "genuine answers of it arrive with TTL {ttl}, and this with a higher one"
FARTHER = "its TTL is that of something nearer, and a walk on this port comes farther than that"
OTHER = "genuine answers of it arrive with TTL {ttl}, and this with TTL {arrived}"


class RefusalMakers(Check):
    """Looks at refusals and rejections of which nobody at the destination knows more."""

    name = "refusal-maker"

    def concerns(self, seen: Observation) -> bool:
        """All flows that were probed directly: what answers on one port speaks for others."""
        return seen.outcome is not None and seen.task.via is None

    def group(self, seen: Observation) -> Hashable:
        """All sources of one address: translations are there for all."""
        return seen.task.address

    def is_due(self, group: list[Observation], scene: Scene) -> bool:
        """Only where somebody refuses or accepts a flow, and it matters who that is."""
        kinds = (_is_rejection, _is_refusal, _is_forged, _is_accepted)
        return any(is_kind(one) for one in group for is_kind in kinds)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Look at rejections first: they may show a translation, which makes refusals doubtful."""
        pairs = group_by(group, lambda one: one.task.pair)
        looks = [_MakerLooks.of(some[0].task, scene) for some in pairs]
        pairs = await gather_all(map(_MakerLooks.at_rejections, looks, pairs))
        elsewhere = any(_is_answered_elsewhere(one) for some in pairs for one in some)
        at_refusals = partial(_MakerLooks.at_refusals, elsewhere=elsewhere)
        pairs = await gather_all(map(at_refusals, looks, pairs))
        pairs = await gather_all(map(_MakerLooks.at_forged, looks, pairs))
        return [one for some in pairs for one in some]


def _is_in_its_name(seen: Observation) -> bool:
    """Tell whether an ICMP error has the destination's address, and no recorder knows more."""
    icmp = seen.heard.icmp if seen.heard is not None else None
    return icmp is not None and icmp.origin == "destination" and _is_open(seen)


def _is_open(seen: Observation) -> bool:
    """Tell whether neither a recorder nor a check has said whose word it is, and it matters."""
    if seen.task.address in {one.text for one in seen.task.source.addresses}:
        return False
    return seen.came == "unknown" and seen.conclusion is None and not seen.task.denied


def _name_error(seen: Observation) -> str:
    return "" if seen.heard is None or seen.heard.icmp is None else seen.heard.icmp.word


def _is_unhandled(seen: Observation) -> bool:
    """Tell whether the error is that of a port or a protocol that nobody handles."""
    return _name_error(seen) in REFUSALS.get(seen.task.protocol.partition("/")[0], ())


def _is_rejection(seen: Observation) -> bool:
    """Tell whether a firewall rejects it; "host unreachable" is a router's error as well."""
    if not _is_in_its_name(seen) or _is_unhandled(seen) or seen.listener.nat:
        return False
    return _name_error(seen) != "host-unreach"


def _is_refusal(seen: Observation) -> bool:
    """Tell whether it would pass as refused by the destination."""
    if seen.listener.state not in UNHELD:
        return False
    if is_reset(seen):
        return _is_open(seen) and seen.reset.forged is not True
    return _is_in_its_name(seen) and _is_unhandled(seen)


def _is_forged(seen: Observation) -> bool:
    """Tell whether it is a reset from nearer than the destination, by its TTL alone."""
    is_held = seen.listener.state not in UNHELD
    return not is_held and is_reset(seen) and seen.reset.forged is True and _is_open(seen)


def _is_accepted(seen: Observation) -> bool:
    """Tell whether a port accepts before the installation, and nobody there knows who holds it."""
    accepted = seen.outcome is not None and seen.outcome.answer == "unasked"
    unwatched = seen.listener.state in ("unknown", "lost") and not seen.task.existing
    return accepted and unwatched and _is_open(seen) and _read_ttl(seen) is not None


def _is_answered_elsewhere(seen: Observation) -> bool:
    """Tell whether something else than the destination is known to answer for its address."""
    foreign = seen.outcome is not None and seen.outcome.answer == "foreign"
    translated = any(note.translated for note in seen.notes(MakerNote))
    return foreign or translated or seen.concluded == "intercepted"


def _read_ttl(seen: Observation) -> int | None:
    """Give the TTL that a refusal or an answer arrived with, where anybody knows it."""
    heard = seen.heard
    if heard is not None and heard.icmp is not None:
        return heard.icmp.ttl
    return arrival_ttl(seen) or (heard.ttl if heard is not None else None)


@dataclass
class _MakerLooks:
    """The looks at one pair. ``walks`` measure its distance; ``repeated`` has the excluded protocol
    of each measurement that was made twice. ``ttl``: that of genuine answers, where it is known."""

    task: Task
    scene: Scene
    walks: DistanceWalks
    repeated: set[str] = field(default_factory=set)
    ttl: int | None = None

    @classmethod
    def of(cls, task: Task, scene: Scene) -> Self:
        """Make the looks at the pair of a task."""
        return cls(task, scene, DistanceWalks(task, scene))

    async def at_rejections(self, group: list[Observation]) -> list[Observation]:
        """Tell whose firewall rejects flows; all others stay as they are."""
        if any(map(_is_rejection, group)):
            self.ttl = await self._find_ttl(group)
        found: list[Observation] = []
        for seen in group:
            found += await self._cut_by_maker(seen, "") if _is_rejection(seen) else [seen]
        return found

    async def at_forged(self, group: list[Observation]) -> list[Observation]:
        """Doubt resets that only their TTL calls forged, where packets come farther than that."""
        found: list[Observation] = []
        for seen in group:
            found += await self._cut_by_walks(seen) if _is_forged(seen) else [seen]
        return found

    async def _cut_by_walks(self, seen: Observation) -> list[Observation]:
        """Split the flow into resets whose walks come farther than their TTL says, and the rest."""
        distance = await self._measure_distance(seen.task.protocol)
        if distance is None or distance < LEAST_DISTANCE:
            return [seen]
        # A reset that the last router made has lost one hop more than these.
        near = await self._find_near(seen, distance - LEAST_DISTANCE)
        for port in port_sets.each(choose_sample(near)) if near else ():
            if not (await self._walk_to_port(seen, port)).own:
                return [seen]
        note = MakerNote(own=False, distance=distance)
        return [
            self._conclude_maker(replace(piece, reset=ResetOrigin()), FARTHER, note)
            if is_near
            else piece
            for is_near, piece in seen.cut(near)
        ]

    async def _measure_distance(self, protocol: str) -> int | None:
        """Measure the distance where walks may be made; None: nothing tells it."""
        if self.scene.fleet.agent(self.task.source).walks_left <= 0:
            return None
        try:
            return await self.walks.count_hops(_choose_excluded(protocol))
        except AgentError:
            return None

    async def _find_near(self, seen: Observation, most_lost: int) -> Ports:
        """Find the ports whose resets have lost so many hops at most."""
        arrived = arrival_ttl(seen)
        if arrived is not None:
            return seen.ports if count_lost_hops(arrived) <= most_lost else ()
        floor = min(INITIAL_TTLS) - most_lost
        try:
            return await find_by_sample(
                seen.ports, seen.task.ports,
                lambda ports: find_refused(seen.task, ports, floor, self.scene),
            )  # fmt: skip
        except AgentError:
            return ()

    async def at_refusals(self, group: list[Observation], *, elsewhere: bool) -> list[Observation]:
        """Tell who refused the flows of which there is a reason to doubt it."""
        refusals = [one for one in group if _is_refusal(one) or _is_accepted(one)]
        if not refusals:
            return group
        found = [one for one in group if not (_is_refusal(one) or _is_accepted(one))]
        self.ttl = self.ttl or await self._find_ttl(group)
        for seen in refusals:
            for doubt, piece in await self._find_doubts(seen):
                why = doubt or (ELSEWHERE if elsewhere else "")
                # What has passed too few routers came by a shorter way back, if packets to its port
                # get as far as others.
                by_least = self.ttl is None and bool(doubt)
                found += await self._cut_by_maker(piece, why, by_least=by_least) if why else [piece]
        return found

    async def _find_ttl(self, group: list[Observation]) -> int | None:
        """Find the TTL of genuine answers; what refuses may be somebody else's word."""
        known = [note.answer_ttl for one in group for note in one.notes(ResetNote)]
        if known:
            return next((ttl for ttl in known if ttl is not None), None)
        answered = [one for one in group if one.heard is not None and one.heard.icmp is None]
        try:
            return (await find_genuine(self.task, answered, self.scene)).ttl
        except AgentError:
            return None

    async def _find_doubts(self, seen: Observation) -> list[tuple[str, Observation]]:
        """Split the flow by the reason that its TTL gives to doubt its maker; empty: none."""
        arrived, ttl = _read_ttl(seen), self.ttl
        if ttl is None:
            # Of resets another check has told it.
            known = arrived is not None and not is_reset(seen)
            return [(await self._doubt_nearness(arrived) if known and arrived else "", seen)]
        if arrived is not None:
            alike = count_lost_hops(arrived) == count_lost_hops(ttl)
            return [("" if alike else OTHER.format(ttl=ttl, arrived=arrived), seen)]
        if is_reset(seen) and any(n.higher and n.higher.refused for n in seen.notes(ResetNote)):
            return [(HIGHER.format(ttl=ttl), seen)]
        if not is_reset(seen) or seen.reset.forged is None:
            return [("", seen)]
        try:
            alike_ports = await find_by_sample(
                seen.ports, seen.task.ports,
                lambda ports: find_refused(seen.task, ports, ttl, self.scene),
            )  # fmt: skip
        except AgentError:
            return [("", seen)]
        return [
            ("" if is_alike else LOWER.format(ttl=ttl), piece)
            for is_alike, piece in seen.cut(alike_ports)
        ]

    async def _doubt_nearness(self, arrived: int) -> str:
        """Doubt what has passed fewer routers than there are on the way to the address."""
        lost = count_lost_hops(arrived)
        try:
            if not lost:
                return NEAR.format(arrived=arrived) if await self._is_behind_gateway() else ""
            least = await self._find_least_distance()
            return PASSED.format(arrived=arrived) if lost < least - 1 else ""
        except AgentError:
            return ""

    async def _find_least_distance(self) -> int:
        """Find the smallest TTL that may reach the address; 0 where no walk may be made."""
        if self.scene.fleet.agent(self.task.source).walks_left <= 0:
            return 0
        return await self.walks.count_hops(or_least=True) or 0

    async def _is_behind_gateway(self) -> bool:
        agent = self.scene.fleet.agent(self.task.source)
        route = await agent.route(self.task.address, source_address(self.task))
        return route.gateway not in (None, self.task.address)

    async def _cut_by_maker(
        self, seen: Observation, doubt: str, *, by_least: bool = False
    ) -> list[Observation]:
        """Split the flow into what the destination is shown to refuse itself, and the rest."""
        if self._is_of_last_router(seen):
            return [self._conclude_maker(seen, doubt, MakerNote(own=False))]
        if not seen.ports or seen.task.protocol not in WALKED:
            return [self._conclude_maker(seen, doubt, await self._walk_to_port(seen, 0))]
        sample = choose_sample(seen.ports)
        notes = {
            port: await self._walk_to_port(seen, port, by_least=by_least)
            for port in port_sets.each(sample)
        }
        own = port_sets.normalise((port, port) for port, note in notes.items() if note.own)
        if sample != seen.ports:
            # A few stand for a range, which is the destination's if all of them are.
            own = seen.ports if own == sample else ()
        others = [note for note in notes.values() if not note.own]
        return [
            self._conclude_maker(piece, doubt, next(iter(notes.values())) if is_own else others[0])
            for is_own, piece in seen.cut(own)
        ]

    def _is_of_last_router(self, seen: Observation) -> bool:
        """Tell whether the last router may have made it: it comes from one hop nearer."""
        arrived = _read_ttl(seen)
        if arrived is None or self.ttl is None:
            return False
        return count_lost_hops(arrived) == count_lost_hops(self.ttl) - 1

    def _conclude_maker(self, seen: Observation, doubt: str, note: MakerNote) -> Observation:
        maker = RefusalMaker(note.own, doubt)
        status: TrailStatus = "ok" if note.own else "doubt"
        return replace(seen, maker=maker).noting(RefusalMakers.name, note, status)

    async def _walk_to_port(
        self, seen: Observation, port: int, *, by_least: bool = False
    ) -> MakerNote:
        """Walk on the flow's own port, and hold it against the distance of the destination.

        ``by_least``: of an address that answers no walk, against the least distance it may have.
        """
        protocol, source = seen.task.protocol, source_address(self.task)
        agent = self.scene.fleet.agent(self.task.source)
        try:
            route = await agent.route(self.task.address, source)
            if route.gateway in (None, self.task.address):
                return MakerNote(own=True)  # nothing is between that translates
            if protocol not in WALKED or agent.walks_left <= 0:
                return MakerNote(own=False)
            if self.scene.prober.answered.hears_routers(self.task.source.name):
                await agent.quiet()
            distance = await self._find_exact_distance(seen)
            if distance is None and by_least:
                distance = await self._find_least_distance() or None
            if distance is None:
                return MakerNote(own=False)
            agent.walks_left -= 1
            walked = await agent.walk(
                protocol, self.task.address, port, source, MAX_TTL, seen.part.template
            )
        except AgentError:
            return MakerNote(own=False)
        hops = {ttl: address for ttl, address in walked.hops if address is not None}
        reached = [ttl for ttl, address in hops.items() if address == self.task.address]
        early = len(reached) > 1 or any(ttl < distance for ttl in reached)
        return MakerNote(distance == 1 or (distance - 1 in hops and not early), early, distance)

    async def _find_exact_distance(self, seen: Observation) -> int | None:
        """Find the TTL that reaches the address, by other packets than the flow's."""
        beside = _choose_excluded(seen.task.protocol)
        distance = await self.walks.count_hops(beside, exact=True)
        if distance is None and _name_error(seen) and beside not in self.repeated:
            # The host sends errors, but earlier questions may have used up its ration.
            self.repeated.add(beside)
            await self.scene.fleet.phases.pause(RATION_S, "until a host sends errors again")
            self.walks.forget_inexact()
            distance = await self.walks.count_hops(beside, exact=True)
        return distance


def _choose_excluded(protocol: str) -> str:
    """Give the protocol that must not be asked for the distance: the flow's own may be translated;
    of UDP another port is asked."""
    return "icmp" if protocol == "icmp" else ""
