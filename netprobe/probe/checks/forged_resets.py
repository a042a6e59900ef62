"""Tells whether the destination sent a reset, or something nearer forged it.

* The recorder knows the TTL that every reset arrived with, and so how many routers lowered it: one
  that lost fewer hops than other answers of the host was made nearer.
* Without a recorder, IP_MINTTL just above the TTL of genuine answers makes the kernel ignore these,
  and still see a reset from a nearer forger (docs/network-facts.md, section 2).
* Where nothing tells that TTL, a full one betrays the first hop: if the destination is behind a
  gateway that says "time exceeded" to a SYN with TTL 1, the gateway does not own the address, and
  whatever comes from the address has lost at least one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.genuine import (
    INITIAL_TTLS,
    arrival_ttl,
    count_lost_hops,
    find_by_sample,
    find_ttl,
    genuine_ttl,
)
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import CHECK_MS, CONTROL_PORTS


class ForgedResets(Check):
    """Checks resets, once a source and address; flows that were answered tell the genuine TTL."""

    name = "forged-resets"

    def concerns(self, seen: Observation) -> bool:
        """Resets, and answers whose TTL is known to be the destination's."""
        return _is_reset(seen) or genuine_ttl(seen.outcome) is not None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Tell forged resets from genuine ones, port by port."""
        resets = [seen for seen in group if _is_reset(seen)]
        if not resets:
            return group
        task = resets[0].task
        if task.address in {one.text for one in task.source.addresses}:
            return group
        looks = _ResetLooks(task, scene)
        ttl = await find_ttl(task, group, scene)
        pieces = await (looks.without_ttl(resets) if ttl is None else looks.with_ttl(resets, ttl))
        others = [seen for seen in group if not _is_reset(seen)]
        return others + [piece.noting(self.name, **looks.facts) for piece in pieces]


async def is_genuine(reset: Observation, group: Iterable[Observation], scene: Scene) -> bool:
    """Tell whether nothing nearer resets this connection when it is asked alone."""
    ttl = await find_ttl(reset.task, group, scene)
    if ttl is None:
        return False
    again = await scene.prober.ask(
        reset.task, "tcp", reset.ports, look_ms=CHECK_MS, min_ttl=ttl + 1
    )
    return not any(one.failure == "refused" and not one.icmp for _, one in again)


@dataclass
class _ResetLooks:
    """The looks at the resets of one pair; ``facts`` are what the trail says of them."""

    task: Task
    scene: Scene
    facts: dict[str, Any] = field(default_factory=dict)

    async def with_ttl(self, resets: list[Observation], ttl: int) -> list[Observation]:
        """Resets with a TTL above that of genuine answers may have been made nearer."""
        self.facts["answer_ttl"] = ttl
        found: list[Observation] = []
        for group in group_by(resets, arrival_ttl):
            arrived = arrival_ttl(group[0])
            if arrived is None:
                found += await self._check_ports(group, ttl)
            else:
                nearer = count_lost_hops(arrived) < count_lost_hops(ttl)
                self.facts |= {"min_ttl": ttl + 1, "refused_again": nearer}
                found += [piece.amending(forged=nearer) for piece in group]
        # A neighbour's resets arrive with a full TTL, and so do those of the own firewall.
        return [one if may_have_left(one) else one.amending(forged=True) for one in found]

    async def without_ttl(self, resets: list[Observation]) -> list[Observation]:
        """Nothing tells the destination's TTL: only a full one says something of whose it is."""
        task = self.task
        route = await self.scene.fleet.agent(task.source).route(task.address, source_address(task))
        if route.gateway in (None, task.address):
            return [one if may_have_left(one) else one.amending(forged=True) for one in resets]
        full = await self._find_full(resets)
        forged = bool(full) and await self._first_hop_resets(full)
        return [
            piece.amending(
                full_ttl=is_full,
                forged=True if is_full and (forged or not may_have_left(piece)) else None,
            )
            for seen in resets
            for is_full, piece in seen.cut(full)
        ]

    async def _check_ports(self, group: list[Observation], ttl: int) -> list[Observation]:
        """No recorder tells what these resets arrived with: ask with a floor."""
        forged = await self._find_by_sample(group, ttl + 1)
        if forged and await self._start_higher(forged):
            return group
        return [piece.amending(forged=nearer) for one in group for nearer, piece in one.cut(forged)]

    async def _find_refused(self, ports: Ports, min_ttl: int) -> Ports:
        """Find the ports whose resets arrive with at least this TTL."""
        found = await self.scene.prober.ask(
            self.task, "tcp", ports, look_ms=CHECK_MS, min_ttl=min_ttl
        )
        refused = port_sets.union(
            some for some, one in found if one.failure == "refused" and not one.icmp
        )
        self.facts.setdefault("min_ttl", min_ttl)
        self.facts.setdefault("refused_again", bool(refused))
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
            # Ask twice: if a reset got lost, the TTL would wrongly look undiminished.
            for _ in range(2 if ttl < max(INITIAL_TTLS) else 0):
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
        self.facts["dies_at_first_hop"] = any(hop.address for hop in walked.hops)
        return any(hop.ttl == 1 and hop.address not in (None, task.address) for hop in walked.hops)

    async def _start_higher(self, forged: Ports) -> bool:
        """Whether these resets start with another TTL than the answers: then nothing is known."""
        first = ((forged[0][0], forged[0][0]),)
        answers = await self.scene.prober.ask(self.task, "tcp", first, look_ms=CHECK_MS, min_ttl=65)
        higher = any(one.failure == "refused" for _, one in answers)
        self.facts["higher"] = {"min_ttl": 65, "refused": higher}
        return higher


def may_have_left(seen: Observation) -> bool:
    """Tell whether the request may have left the source: no recorder says that it did not."""
    return seen.story is None or seen.story.source_out.seen != "no"


def _is_reset(seen: Observation) -> bool:
    outcome = seen.outcome
    return (
        outcome is not None
        and outcome.failure == "refused"
        and outcome.icmp is None
        and not outcome.blind
    )
