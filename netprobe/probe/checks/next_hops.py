"""Finds packets that end at the source's own next hop: nobody answers its ARP requests.

The kernel gives up such a neighbour after three seconds and then tells every packet that waits, so
that each flow hears "host unreachable" after a time of its own, or nothing where the queue is full.
The neighbour table says it once, for all of them.

Tells whether a router's "host unreachable" means a dead host or a firewall that rejects.

An agent on the destination's own network knows whether anybody answers for the address there. Its
network may be another one with the same addresses (a container bridge, another site), or its switch
may keep hosts apart. It is believed where the router that gave the address up is its neighbour, or
where another agent answers it on that network, and the source reaches it there.

Where there is none, the time tells what the router did, though not whether the host is dead or a
router behind that one: a router gives up a dead neighbour after 3 s and then answers all packets
that wait. A probe that joins waiting packets gets the error early, as from a firewall. A firewall
answers each packet at once, often for one port only; but a router that has used up its rate of ICMP
errors answers late, as for a dead host.

What follows: where the source's own kernel says "host unreachable", and where packets vanish so,
the host is down, or a gateway is at fault (``next-hop-down``); a device without link is
``no-carrier``, ``[path, source]``. Where a router says it, and nothing tells more:
``[host, path]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import permutations

from msgspec.structs import replace

from netprobe.agent.wire.host_messages import Egress, Routed
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model.evidence import CheckConclusion, Outcome
from netprobe.model.icmp import is_late
from netprobe.model.notes import ConclusionNote, NextHopNote
from netprobe.model.story import TrailEntry
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.neighbours import find_neighbours, links_of
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.checks.distances import KINDS
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.reachability import (
    REFUSED_MS,
    is_answer,
    is_host_unreachable,
    is_own_kernels_word,
)
from netprobe.probe.flows.work import Task

UNANSWERED = ("failed", "incomplete")
# A neighbour is asked three times, a second apart; until then its entry is incomplete.
RESOLVING_S = 1.1
RESOLVING_LOOKS = 3
# The router's bucket of answers is full again after six seconds (docs/network-facts.md, section 4).
REFILL_S = 6.5
LOOK_MS = 4000
TRIES = 3
# Linux repeats a SYN every second at first (before 6.5: after 1 s and 3 s); a neighbour is given
# up after 3 s.
SYN_AGAIN_MS = 1000
SYN_WORD_MS = 200
GIVEN_UP_MS = 2500

# An agent, and its route to an address of its own network.
NearAgent = tuple[AgentMethods, Routed]


class NextHops(Check):
    """Asks the source's neighbour table about its next hop, once a source and address."""

    name = "next-hop"

    def concerns(self, seen: Observation) -> bool:
        """ "Host unreachable" from the source's own kernel, and silence."""
        outcome = seen.outcome
        return outcome is not None and (is_own_kernels_word(outcome) or seen.silent or seen.lost)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Conclude for the whole pair where nobody answers for the next hop."""
        task = group[0].task
        hop = await ask_next_hop(scene.fleet.agent(task.source), task.address, source_address(task))
        found = [_conclude_hop(seen, hop) for seen in group]
        note = NextHopNote(hop.dev, hop.next_hop, hop.neighbour)
        return [one.noting(self.name, note) if one.conclusion else one for one in found]


async def ask_next_hop(agent: AgentMethods, address: str, source: str | None) -> Egress:
    """Ask a host for its next hop to the address, until its neighbour entry says something."""
    hop = await agent.egress(address, source, CONTROL_PORTS[0])
    for _ in range(RESOLVING_LOOKS):
        if hop.neighbour != "incomplete":
            break
        await asyncio.sleep(RESOLVING_S)
        hop = await agent.egress(address, source, CONTROL_PORTS[0])
    return hop


async def ask_network(group: list[Observation], scene: Scene) -> str | None:
    """Find an agent on the network of a pair's address that gets no answer to its ARP requests.

    It gives the host's name; None where none is there for certain, or the address answers one.
    """
    task, fleet = group[0].task, scene.fleet
    own = {task.source.name, *(want.flow.destination.name for want in task.wants)}
    others = [agent for agent in fleet.agents() if agent.host.name not in own]
    near = await find_neighbours(task.address, others)
    hops = await asyncio.gather(*(ask_next_hop(one, task.address, None) for one, _ in near))
    if any(hop.neighbour == "known" for hop in hops):
        return None
    asked = [one for one, hop in zip(near, hops, strict=True) if hop.neighbour in UNANSWERED]
    routers = {seen.outcome.icmp.offender for seen in group
               if _is_late_error(seen) and seen.outcome and seen.outcome.icmp}  # fmt: skip
    for one, other in permutations(asked, 2):
        if await _hears_peer(one, other) and await _is_reached(other[1].source, task, scene):
            return one[0].host.name
    for agent, route in asked:
        if await _is_beside(agent, route, routers):
            return agent.host.name
    return None


async def _is_beside(agent: AgentMethods, route: Routed, routers: Iterable[str]) -> bool:
    """Tell whether one of the routers is the next hop of an agent, at the device of a route."""
    for router in routers:
        if (await agent.route(router, None)).dev == route.dev:
            for protocol, port in KINDS.items():
                walked = await agent.walk(protocol, router, port, None, 1)
                if any(hop.address == router for hop in walked.hops):
                    return True
    return False


async def _hears_peer(one: NearAgent, other: NearAgent) -> bool:
    """Tell whether the other's own device answers an agent, at the device of its route."""
    (agent, route), (peer, way) = one, other
    if way.source is None:
        return False
    hop = await ask_next_hop(agent, way.source, None)
    return hop.dev == route.dev and hop.neighbour == "known" and hop.link in links_of(peer)


async def _is_reached(address: str | None, task: Task, scene: Scene) -> bool:
    """Tell whether an address answers the source of a task."""
    if address is None or scene.prober.answered.has(task.source.name, address):
        return address is not None
    asked = replace(task, address=address)
    outcomes = await scene.prober.ask(asked, "icmp", (), look_ms=LOOK_MS)
    return any(is_answer(outcome) for _, outcome in outcomes)


def _conclude_hop(seen: Observation, hop: Egress) -> Observation:
    outcome, task = seen.outcome, seen.task
    assert outcome is not None
    if hop.next_hop is None or hop.dev is None:
        return seen
    if hop.neighbour in UNANSWERED or hop.carrier is False:
        if hop.carrier is False:
            conclusion = CheckConclusion("no-carrier", hop.dev)
        elif hop.next_hop != task.address:
            conclusion = CheckConclusion("next-hop-down", next_hop=hop.next_hop)
        else:
            conclusion = CheckConclusion("host-down", task.source.name)
        return replace(seen, conclusion=conclusion)
    early = is_own_kernels_word(outcome) and (outcome.elapsed_ms or 0) < REFUSED_MS
    # The neighbour is there: the source's own firewall says so.
    return replace(seen, conclusion=CheckConclusion("refusing-host")) if early else seen


class DeadHosts(Check):
    """Tells dead hosts from refusals; one flow of each pair stands for all.

    A host whose agent has the address lives. It may be cut off all the same: then the router's
    errors come late. An agent that lacks the address proves nothing.
    """

    name = "dead-host"

    def concerns(self, seen: Observation) -> bool:
        """A router's "host unreachable", and what else may be heard where a host is dead."""
        return _is_routers_word(seen) or _may_be_dead(seen)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Conclude once for the pair: the host is dead, its router says so, or it refuses."""
        task = group[0].task
        has_address = scene.round is not None and await _has_address(scene.agent, task.address)
        if has_address and not any(map(_is_late_error, group)):
            return group
        lives = scene.prober.answered.has(*task.pair)
        asker = None if lives else await ask_network(group, scene)
        if asker is not None:
            return [_conclude_down(seen, CheckConclusion("host-down", asker)) for seen in group]
        # Of others the scouts of the pair have told.
        words = [seen for seen in group if _is_routers_word(seen) and seen.conclusion is None]
        told = {id(seen) for seen in words}
        others = [seen for seen in group if id(seen) not in told]
        return others + (await self._read_words(words, scene) if words else [])

    async def _read_words(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Conclude from the time that a router's words took."""
        early = [seen for seen in group if not is_late(_elapsed_ms(seen))]
        first = (early or group)[0]
        looks: tuple[TrailEntry, ...] = ()
        if early:
            dead = await _is_dead(first.task, scene)
        else:
            dead, looks = await _is_no_refusal(first, scene)
        conclusion = CheckConclusion("router-gives-up" if dead else "refusing-host")
        asked = replace(first, trail=first.trail + looks)
        return [_conclude_down(asked if one is first else one, conclusion) for one in group]


def _conclude_down(seen: Observation, conclusion: CheckConclusion) -> Observation:
    note = ConclusionNote(conclusion.name)
    return replace(seen, conclusion=conclusion).noting(DeadHosts.name, note)


async def _has_address(agent: AgentMethods, address: str) -> bool:
    """Tell whether the destination's own agent is where the flows go to."""
    return (await agent.route(address, None)).source == address


async def _is_no_refusal(seen: Observation, scene: Scene) -> tuple[bool, tuple[TrailEntry, ...]]:
    """Ask a flow again while nothing else is sent: a firewall refuses it at once, each time, or
    just after a SYN was repeated.

    It gives the entries of these looks too.
    """
    ports = seen.ports and ((seen.ports[0][0], seen.ports[0][0]),)
    asked = replace(seen, ports=ports, trail=())
    looks: tuple[TrailEntry, ...] = ()
    await scene.fleet.agent(seen.task.source).quiet()
    await scene.fleet.phases.pause(REFILL_S, "until routers answer again")
    for _ in range(TRIES):
        again = await scene.prober.again(asked)
        looks += tuple(entry for one in again for entry in one.trail)
        if any(one.outcome is None or not _is_routers_word(one) or _has_waited(one.outcome)
               for one in again):  # fmt: skip
            return True, looks
    return False, looks


async def _is_dead(task: Task, scene: Scene) -> bool:
    """Ask echo and an unused port a few times, when the router may send ICMP errors again."""
    await scene.fleet.phases.pause(REFILL_S, "until routers answer again")
    for _ in range(TRIES):
        outcomes = await _ask_controls(task, scene)
        if any(is_answer(one) or one.failure == "refused" for one in outcomes):
            return False
        if any(_has_waited(one) for one in outcomes):
            return True
    return False


async def _ask_controls(task: Task, scene: Scene) -> list[Outcome]:
    echo, control = await asyncio.gather(
        scene.prober.ask(task, "icmp", (), look_ms=LOOK_MS),
        scene.prober.ask(task, "tcp", ((CONTROL_PORTS[0],) * 2,), look_ms=LOOK_MS),
    )
    return [outcome for _, outcome in echo + control]


def _is_routers_word(seen: Observation) -> bool:
    """Tell whether a router said "host unreachable"."""
    outcome = seen.heard
    return (
        outcome is not None
        and outcome.icmp is not None
        and outcome.icmp.origin == "router"
        and is_host_unreachable(outcome)
    )


def _is_late_error(seen: Observation) -> bool:
    return _is_routers_word(seen) and is_late(_elapsed_ms(seen))


def _may_be_dead(seen: Observation) -> bool:
    """Tell whether nothing shows that the host itself sent anything.

    Its packets are lost, or somebody refuses them in its name.
    """
    outcome = seen.heard
    if outcome is None or seen.listener.state == "ours" or seen.conclusion is not None:
        return False
    in_its_name = outcome.icmp is not None and outcome.icmp.origin == "destination"
    if in_its_name:
        return is_host_unreachable(outcome)
    is_reset = outcome.failure == "refused" and outcome.icmp is None and seen.reset.forged is None
    return seen.silent or is_reset


def _elapsed_ms(seen: Observation) -> int:
    return (seen.outcome and seen.outcome.elapsed_ms) or 0


def _has_waited(outcome: Outcome) -> bool:
    """Tell whether the error came late, as it does for a dead host."""
    elapsed_ms = outcome.elapsed_ms or 0
    # Just after a repeated SYN it may be a refusal for which the first one found no answer left.
    repeated = outcome.operation == "connect" and elapsed_ms % SYN_AGAIN_MS <= SYN_WORD_MS
    return is_host_unreachable(outcome) and elapsed_ms >= (GIVEN_UP_MS if repeated else REFUSED_MS)
