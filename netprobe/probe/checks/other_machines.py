"""Finds addresses for which another machine answers: a duplicate, or a wrong line of the inventory.

A nonce that our listener answered proves the machine; an echo reply, a refusal and an open port
prove none. Agents know their own addresses, and the source's neighbour table knows who answers ARP.

What follows: an address that the source has itself (``address-here``), that another machine has
(``other-machine``), or that nothing shows to be the destination's (``unproved-machine``) is a
finding, never a ``pass``. Of a host declared ``vantage: none`` the source may have it rightly: a
virtual address. Where another agent's network resolves it to the source, too, flows count as for
other sources, with a warning. Where two devices answer
for an address, when an agent on its network asks once in a run, two machines have it: what did not
come to its own machine is ``other-machine``.
Silence of a port that must not answer shows a drop only beside answers of the same machine: where
another one may have given them, that is concluded of the silence, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.model.evidence import CheckConclusion
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.neighbours import find_neighbours, links_of
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.held_addresses import (
    conclude_machine,
    is_proven,
    look_for_second_holder,
)
from netprobe.probe.checks.next_hops import ask_next_hop
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task

HELD_HERE = (
    "{source} has {address} itself: what it sends there does not leave it, which says nothing of "
    "the network"
)
CONCLUSIONS = ("address-here", "other-machine", "unproved-machine", "held-twice")


class OtherMachines(Check):
    """Asks who has an address whose answers carry no nonce of the destination's agent."""

    name = "machine"

    def concerns(self, seen: Observation) -> bool:
        """All flows: an answered nonce of one speaks for the others."""
        return seen.outcome is not None and seen.task.via is None

    def group(self, seen: Observation) -> Hashable:
        """All sources of one address: translations are there for all."""
        return seen.task.address

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Conclude for each source that got no nonce back."""
        proven = any(is_proven(seen) for seen in group)
        found: list[Observation] = []
        for pair in group_by(group, lambda seen: seen.task.pair):
            if any(is_proven(seen) for seen in pair):
                found += pair
            else:
                found += await _look_at_pair(pair, proven, scene)
        found = await look_for_second_holder(found, scene)
        return _doubt_silence(found)


async def _look_at_pair(pair: list[Observation], proven: bool, scene: Scene) -> list[Observation]:
    task = pair[0].task
    here = CheckConclusion("address-here", task.source.name)
    if _has_address(scene.fleet.agent(task.source), task.address, scene.agent):
        return [conclude_machine(seen, here) for seen in pair]
    if not scene.agent.alive:
        return await _look_without_agent(pair, here, scene)
    doubtful = [seen for seen in pair if _is_doubtful(seen)]
    if not doubtful:
        return pair
    conclusion = await _find_machine(pair, proven, scene)
    if conclusion is None:
        return pair
    among = {id(seen) for seen in doubtful}
    return [conclude_machine(seen, conclusion) if id(seen) in among else seen for seen in pair]


def _doubt_silence(group: list[Observation]) -> list[Observation]:
    """Conclude of ports that must not answer, and do not, what is known of their pair's answers."""
    known = {seen.task.pair: seen.conclusion for seen in group if seen.concluded in CONCLUSIONS}
    return [
        conclude_machine(seen, conclusion)
        if seen.task.denied and seen.lost and not seen.arrived
        and (conclusion := known.get(seen.task.pair)) is not None
        else seen
        for seen in group
    ]  # fmt: skip


async def _find_machine(
    pair: list[Observation], proven: bool, scene: Scene
) -> CheckConclusion | None:
    """Say who else answers for the pair's address, as far as anybody knows."""
    task, here = pair[0].task, scene.agent
    foreign = [seen.outcome.answered_by for seen in pair
               if seen.outcome is not None and seen.outcome.answer == "foreign"]  # fmt: skip
    others = [scene.fleet.agent(host) for host in scene.fleet.hosts() if host != here.host]
    hello = here.hello
    if foreign:
        return CheckConclusion("other-machine", foreign[0] or "another host")
    if hello is None or not hello.addresses:
        return None  # its kernel did not say
    # Every address of 127.0.0.0/8 is this host's own; its device lists one of them.
    if task.address not in hello.addresses and not ip_address(task.address).is_loopback:
        for other in others:
            if _has_address(other, task.address, here):
                return CheckConclusion("other-machine", other.host.name)
        said = f"{here.host.name} does not have {task.address}"
        return None if proven else CheckConclusion("unproved-machine", said)
    if any(seen.listener.state == "ours" for seen in pair) or not any(s.ports for s in pair):
        return await _find_by_link(task, others, scene)
    return None


async def _find_by_link(
    task: Task, others: list[AgentMethods], scene: Scene
) -> CheckConclusion | None:
    """Compare who answers the source's ARP or neighbour requests with the destination's devices."""
    agent, source = scene.fleet.agent(task.source), source_address(task)
    if (await agent.route(task.address, source)).gateway is not None:
        return None
    link = (await ask_next_hop(agent, task.address, source)).link
    if link is None or scene.agent.hello is None or link in scene.agent.hello.links:
        return None
    names = [one.host.name for one in others if one.hello is not None and link in one.hello.links]
    if names:
        return CheckConclusion("other-machine", names[0])
    # A router may answer for all its hosts (proxy ARP, as some clouds do).
    said = f"{link} answers ARP requests for {task.address}, and is no device of "
    return CheckConclusion("unproved-machine", said + scene.agent.host.name)


def _has_address(agent: AgentMethods, address: str, here: AgentMethods) -> bool:
    """Tell whether an agent's host has the address and is another machine than ``here``."""
    one, other = agent.hello, here.hello
    if one is None or other is None or address not in one.addresses:
        return False
    return one.machine != other.machine


async def _look_without_agent(
    pair: list[Observation], here: CheckConclusion, scene: Scene
) -> list[Observation]:
    """Tell of flows whose source has the address of a host without an agent.

    Of one that is to have none it may hold a virtual address, and have it rightly.
    """
    task = pair[0].task
    hello = scene.fleet.agent(task.source).hello
    declared = task.address in {one.text for one in task.source.addresses}
    if hello is None or task.address not in hello.addresses or declared:
        return pair
    if scene.agent.host.vantage.kind == "none" and await _is_holder(task, scene):
        said = HELD_HERE.format(source=task.source.name, address=task.address)
        return [replace(seen, warnings=(*seen.warnings, said)) for seen in pair]
    return [conclude_machine(seen, here) if _stays_here(seen) else seen for seen in pair]


async def _is_holder(task: Task, scene: Scene) -> bool:
    """Tell whether an agent on the address's network finds it at a device of the source."""
    source = scene.fleet.agent(task.source)
    others = [agent for agent in scene.fleet.agents() if agent is not source]
    for agent, _ in await find_neighbours(task.address, others):
        hop = await ask_next_hop(agent, task.address, None)
        if hop.neighbour == "known" and hop.link in links_of(source):
            return True
    return False


def _stays_here(seen: Observation) -> bool:
    """Tell whether the source itself answered a flow to its own address, and no service there."""
    outcome = seen.outcome
    served = seen.task.protocol != "icmp" and outcome is not None and outcome.answer is not None
    left = seen.story is not None and seen.story.source_out.seen == "yes"
    return not (served or left)


def _is_doubtful(seen: Observation) -> bool:
    """Whether something answered in the destination's name."""
    outcome = seen.heard
    assert outcome is not None
    if outcome.answer is not None or outcome.icmp is not None:
        return outcome.icmp is None or outcome.icmp.origin == "destination"
    return outcome.failure == "refused"
