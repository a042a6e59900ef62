"""Finds packets that end at the source's own next hop: nobody answers its ARP requests.

The kernel gives up such a neighbour after three seconds and then tells every packet that waits, so
that each flow hears "host unreachable" after a time of its own, or nothing where the queue is full.
The neighbour table says it once, for all of them.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from dataclasses import replace

from netprobe.agent.wire.host_messages import Egress
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model.evidence import CheckConclusion
from netprobe.model.notes import NextHopNote
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.reachability import REFUSED_MS, is_own_kernels_word
from netprobe.probe.flows.work import Task

UNANSWERED = ("failed", "incomplete")
# A neighbour is asked three times, a second apart; until then its entry is incomplete.
RESOLVING_S = 1.1
RESOLVING_LOOKS = 3
# So many agents are asked whether they are on the destination's network, the nearest first.
NEAREST = 4


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


async def ask_network(task: Task, fleet: Fleet) -> str | None:
    """Find an agent on the network of the task's address that gets no answer to its ARP requests.

    It gives the host's name; None where none is there, or the address answers.
    """
    own = {task.source.name, *(want.flow.destination.name for want in task.wants)}
    others = [fleet.agent(host) for host in fleet.hosts() if host.name not in own]
    near = sorted(
        (agent for agent in others if agent.alive),
        key=lambda agent: distance(task.address, fleet.own_addresses(agent.host)),
    )[:NEAREST]
    routes = await asyncio.gather(*(agent.route(task.address, None) for agent in near))
    for agent, route in zip(near, routes, strict=True):
        if route.failure is None and route.gateway is None and route.source != task.address:
            hop = await ask_next_hop(agent, task.address, None)
            return agent.host.name if hop.neighbour in UNANSWERED else None
    return None


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


def distance(address: str, others: Iterable[str]) -> int:
    """Give how far the nearest of the others is, as the size of the network that holds both."""
    here = ipaddress.ip_address(address)
    known = [ipaddress.ip_address(one) for one in others]
    return min(
        ((int(one) ^ int(here)).bit_length() for one in known if one.version == here.version),
        default=here.max_prefixlen + 1,
    )
