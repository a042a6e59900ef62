"""Tells whether the destination sent a reset, or something nearer forged it.

* The recorder knows the TTL that every reset arrived with, and so how many routers lowered it: one
  that lost fewer hops than other answers of the host was made nearer.
* Without a recorder, IP_MINTTL just above the TTL of genuine answers makes the kernel ignore these,
  and still see a reset from a nearer forger (docs/network-facts.md, section 2).
* Where the address never answered anything, and a router refuses in its place, that router may have
  made the resets too: it did where they come from no farther than its errors.
* Where no recorder tells what left the source, the source is asked port by port: what its own
  firewall makes comes in by its loopback device.
* Where nothing tells that TTL, a full one betrays the first hop: if the destination is behind a
  gateway that says "time exceeded" to a SYN with TTL 1, the gateway does not own the address, and
  whatever comes from the address has lost at least one.

What follows: a reset of something nearer is forged (``inconclusive`` where a walk on its port comes
farther than its TTL allows: routers may set the TTL). If no packet leaves the interface, the source
resets its own connects. Where a router may have made the only resets that were heard from an
address: ``[path]`` if they come from no farther than its errors, else ``[destination, path]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from netprobe.agent.wire.host_messages import OwnResets, OwnResetsOrder
from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion, Icmp, ResetOrigin
from netprobe.model.notes import HigherNote, ResetNote
from netprobe.model.ports import Ports
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.genuine import (
    INITIAL_TTLS,
    arrival_ttl,
    count_lost_hops,
    find_by_sample,
    find_genuine,
    find_refused,
    genuine_ttl,
)
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task

FORGED = ResetOrigin(forged=True)
OWN = ResetOrigin(forged=True, own=True)
LOOPBACK = "lo"


class ForgedResets(Check):
    """Checks resets, once a source and address; flows that were answered tell the genuine TTL."""

    name = "forged-resets"

    def concerns(self, seen: Observation) -> bool:
        """Resets, answers whose TTL is known to be the destination's, and routers' refusals.

        What the recorder of the destination saw or did not see come, it tells by itself.
        """
        doubtful = is_reset(seen) and seen.came == "unknown"
        icmp = seen.heard.icmp if seen.heard is not None else None
        return doubtful or icmp is not None or genuine_ttl(seen.heard) is not None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Tell forged resets from genuine ones, port by port."""
        resets = [seen for seen in group if is_reset(seen) and seen.came == "unknown"]
        if not resets:
            return group
        task = resets[0].task
        if task.address in {one.text for one in task.source.addresses}:
            return group
        looks = _ResetLooks(task, scene)
        known = await find_genuine(task, group, scene)
        if known.ttl is not None:
            pieces = await looks.with_ttl(resets, known.ttl)
        elif known.refusal is not None:
            pieces = await looks.beside_refusal(resets, known.refusal)
        else:
            pieces = await looks.without_ttl(resets)
        pieces = await looks.find_own(pieces)
        among = {id(seen) for seen in resets}
        others = [seen for seen in group if id(seen) not in among]
        return others + [piece.noting(self.name, looks.note) for piece in pieces]


async def is_forged(
    reset: Observation, group: Iterable[Observation], scene: Scene, looks: int | None = None
) -> bool | None:
    """Tell whether something nearer resets these ports when they are asked alone.

    None: nothing tells the TTL of genuine answers. ``looks``: as ``find_refused`` takes it.
    """
    ttl = (await find_genuine(reset.task, group, scene)).ttl
    if ttl is None:
        return None
    return bool(await find_refused(reset.task, reset.ports, ttl + 1, scene, looks))


@dataclass
class _ResetLooks:
    """Looks at the resets of one pair again; ``note`` collects what the trail gets of it."""

    task: Task
    scene: Scene
    note: ResetNote = field(default_factory=ResetNote)

    async def with_ttl(self, resets: list[Observation], ttl: int) -> list[Observation]:
        """Resets with a TTL above that of genuine answers may have been made nearer."""
        self.note = ResetNote(answer_ttl=ttl)
        found: list[Observation] = []
        for group in group_by(resets, arrival_ttl):
            arrived = arrival_ttl(group[0])
            if arrived is None:
                found += await self._check_ports(group, ttl)
            else:
                nearer = count_lost_hops(arrived) < count_lost_hops(ttl)
                self.note = self.note._replace(min_ttl=ttl + 1, refused_again=nearer)
                found += [replace(piece, reset=ResetOrigin(nearer)) for piece in group]
        # A neighbour's resets arrive with a full TTL, and so do those of the own firewall.
        return [_blame_nearer(one) for one in found]

    async def beside_refusal(self, resets: list[Observation], refusal: Icmp) -> list[Observation]:
        """A router refuses the address, of which nothing genuine was ever heard."""
        ttl = refusal.ttl
        self.note = ResetNote(refused_by=refusal.offender, refusal_ttl=ttl)
        unknown = [seen for seen in resets if arrival_ttl(seen) is None]
        ports = port_sets.union(seen.ports for seen in unknown)
        near = await self._find_refused(ports, ttl) if ports and ttl is not None else ()
        for seen in resets if ttl is not None else ():
            arrived = arrival_ttl(seen)
            if arrived is not None and count_lost_hops(arrived) <= count_lost_hops(ttl or 0):
                near = port_sets.union((near, seen.ports))
        doubt = CheckConclusion("reset-unproved", refusal.offender)
        return [
            replace(piece, reset=FORGED) if is_near else replace(piece, conclusion=doubt)
            for seen in resets
            for is_near, piece in seen.cut(near)
        ]

    async def without_ttl(self, resets: list[Observation]) -> list[Observation]:
        """Nothing tells the destination's TTL: only a full one says something of whose it is."""
        task = self.task
        route = await self.scene.fleet.agent(task.source).route(task.address, source_address(task))
        if route.gateway in (None, task.address):
            return [_blame_nearer(one) for one in resets]
        full = await self._find_full(resets)
        forged = bool(full) and await self._first_hop_resets(full)
        pieces = [(is_full, piece) for seen in resets for is_full, piece in seen.cut(full)]
        return [
            replace(piece, reset=ResetOrigin(nearer or None, is_full))
            for is_full, piece in pieces
            for nearer in [is_full and (forged or not may_have_left(piece))]
        ]

    async def find_own(self, resets: list[Observation]) -> list[Observation]:
        """Find what the source's own firewall made, of what no recorder there saw leave."""
        untold = [one for one in resets if may_be_own(one)]
        if not untold:
            return resets
        agent = self.scene.fleet.agent(self.task.source)
        ports = port_sets.union(one.ports for one in untold)
        try:
            route = await agent.route(self.task.address, source_address(self.task))
            if route.dev == LOOPBACK:
                return resets  # an address of this machine: all that it says comes in there
            own = await _ask_own_resets(agent, self.task, ports)
        except AgentError:
            return resets  # what is known stands; the next round of a carried bundle asks it
        return [
            replace(piece, reset=OWN, conclusion=None) if is_own else piece
            for seen in resets
            for is_own, piece in (seen.cut(own) if may_be_own(seen) else [(False, seen)])
        ]

    async def _check_ports(self, group: list[Observation], ttl: int) -> list[Observation]:
        """No recorder tells what these resets arrived with: ask with a floor."""
        forged = await self._find_by_sample(group, ttl + 1)
        if forged and await self._start_higher(forged):
            return group
        # What this host or its first router makes arrives with a full TTL.
        full = await self._find_refused(forged, min(INITIAL_TTLS)) if forged else ()
        full = full if count_lost_hops(ttl) else port_sets.union(one.ports for one in group)
        return [
            replace(some, reset=ResetOrigin(nearer, None if is_full else False))
            for one in group
            for nearer, piece in one.cut(forged)
            for is_full, some in piece.cut(full)
        ]

    async def _find_refused(self, ports: Ports, min_ttl: int) -> Ports:
        """Find the ports whose resets arrive with at least this TTL, and note that."""
        refused = await find_refused(self.task, ports, min_ttl, self.scene)
        if self.note.min_ttl is None:
            self.note = self.note._replace(min_ttl=min_ttl, refused_again=bool(refused))
        return refused

    async def _find_full(self, resets: list[Observation]) -> Ports:
        """Find the ports whose resets no router has lowered the TTL of."""
        known = [one for one in resets if arrival_ttl(one) is not None]
        full = port_sets.union(one.ports for one in known if arrival_ttl(one) in INITIAL_TTLS)
        untold = [one for one in resets if arrival_ttl(one) is None]
        for ttl in INITIAL_TTLS if untold else ():
            here = await self._find_by_sample(untold, ttl)
            if not here:
                break
            if ttl < max(INITIAL_TTLS):
                some = [piece for one in untold for is_here, piece in one.cut(here) if is_here]
                here = port_sets.subtract(here, await self._find_by_sample(some, ttl + 1))
            full = port_sets.union((full, here))
        return full

    async def _find_by_sample(self, resets: list[Observation], min_ttl: int) -> Ports:
        """Find the ports whose resets arrive with at least this TTL, from a few of each range."""
        return await find_by_sample(
            port_sets.union(one.ports for one in resets),
            port_sets.union(one.task.ports for one in resets),
            lambda ports: self._find_refused(ports, min_ttl),
        )

    async def _first_hop_resets(self, ports: Ports) -> bool:
        """Tell whether a full TTL can only be the first hop's.

        A SYN that dies of its TTL there was not for that hop. A router that sets the TTL of all
        that it forwards gives a reset of an unused port a full one, too.
        """
        task = self.task
        control = ((CONTROL_PORTS[0],) * 2,)
        if await self._find_refused(control, min(INITIAL_TTLS)):
            return False
        agent = self.scene.fleet.agent(task.source)
        walked = await agent.walk("tcp", task.address, ports[0][0], source_address(task), 1)
        dies = any(hop.address for hop in walked.hops)
        self.note = self.note._replace(dies_at_first_hop=dies)
        return any(hop.ttl == 1 and hop.address not in (None, task.address) for hop in walked.hops)

    async def _start_higher(self, forged: Ports) -> bool:
        """Whether these resets start with another TTL than the answers: then nothing is known."""
        first = ((forged[0][0], forged[0][0]),)
        answers = await self.scene.prober.ask(self.task, "tcp", first, look_ms=CHECK_MS, min_ttl=65)
        higher = any(one.failure == "refused" for _, one in answers)
        self.note = self.note._replace(higher=HigherNote(65, higher))
        return higher


async def _ask_own_resets(agent: AgentMethods, task: Task, ports: Ports) -> Ports:
    """Ask which of these ports the source's own firewall resets. Raises AgentError."""
    order = OwnResetsOrder(0, task.address, source_address(task), list(ports))
    return tuple((await agent.request(order, OwnResets)).ports)


def _blame_nearer(seen: Observation) -> Observation:
    """Give a reset of what never left the source as one that was made there."""
    return seen if may_have_left(seen) else replace(seen, reset=seen.reset._replace(forged=True))


def may_have_left(seen: Observation) -> bool:
    """Tell whether the request may have left the source: no recorder says that it did not."""
    return seen.story is None or seen.story.source_out.seen != "no"


def may_be_own(seen: Observation) -> bool:
    """Tell whether the source's own firewall may have made a reset.

    Not one whose TTL a router has lowered, nor one to a request that a recorder there saw leave.
    Where no recorder tells the TTL, a few ports have stood for the others: each is asked.
    """
    ttl = arrival_ttl(seen)
    if ttl is not None and (ttl not in INITIAL_TTLS or seen.reset.forged is True):
        return False
    return seen.story is None or seen.story.source_out.seen == "unknown"


def is_reset(seen: Observation) -> bool:
    outcome = seen.heard
    return (
        outcome is not None
        and outcome.failure == "refused"
        and outcome.icmp is None
        and not outcome.blind
    )
