"""Finds addresses that two machines have: both answer a neighbour that asks everybody for it.

The source's kernel keeps one of them, and a router another one, whoever answered first; and that
changes while a run lasts. A host may answer on several devices of its own, which is no fault.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from netprobe.model.evidence import CheckConclusion
from netprobe.model.notes import ConclusionNote
from netprobe.model.plan import PATH_MTU
from netprobe.probe.agents.neighbours import links_of, name_machines, word_answers
from netprobe.probe.checks.check import Scene
from netprobe.probe.flows.prober import Observation

# What else was concluded of flows that a second holder explains better.
EXPLAINED = (None, "unproved-machine", "refusing-host")

Pair = tuple[str, str]


def may_be_held_twice(scene: Scene) -> bool:
    """Tell whether it is known whose an answer would be, or doubted whether it is the host's.

    A host without an agent is doubted where the way onto it has failed.
    """
    return scene.agent.alive or scene.agent.host.vantage.kind != "none"


async def find_second_holder(address: str, scene: Scene) -> CheckConclusion | None:
    """Conclude that an address is held twice, or that one other machine has it alone; None: the
    destination itself has it, or nobody could ask. Raises AgentError."""
    if not may_be_held_twice(scene):
        return None
    links = await scene.fleet.holders.ask(address)
    own = links_of(scene.agent)
    names = name_machines(links, scene.fleet.agents(), own)
    words = word_answers(names, address)
    if names and not {*own}.isdisjoint(links):
        return CheckConclusion("held-twice", f"{words}, beside {scene.agent.host.name}")
    if len(names) > 1 and not scene.agent.alive:
        return CheckConclusion("held-twice", words)
    if len(names) == 1 and names[0] not in links:
        return CheckConclusion("other-machine", names[0])
    return None


async def look_for_second_holder(group: list[Observation], scene: Scene) -> list[Observation]:
    """Ask the network of an address who has it, where flows give a reason to doubt that, and
    conclude for all that nothing shows to have come to its own machine. Raises AgentError."""
    proven = {seen.task.pair for seen in group if is_proven(seen)}
    odd = [seen for seen in group if _is_odd(seen, scene, proven)]
    if not any(_is_doubt(seen, proven) for seen in odd):
        return group
    conclusion = await find_second_holder(odd[0].task.address, scene)
    if conclusion is None:
        return group
    # Where something shows it, the judge holds silence of whole ways against what else is known.
    shown = [seen for seen in odd if _is_answered(seen) or seen.task.pair in proven]
    told = {id(seen) for seen in shown or odd}
    return [conclude_machine(seen, conclusion) if id(seen) in told else seen for seen in group]


def is_proven(seen: Observation) -> bool:
    """Tell whether the destination's own agent answered, or saw the packet."""
    return seen.arrived or (seen.outcome is not None and seen.outcome.answer == "nonce")


def conclude_machine(seen: Observation, conclusion: CheckConclusion) -> Observation:
    """Give the flow with what was concluded of the machine that it met."""
    noted = replace(seen, conclusion=conclusion)
    return noted.noting("machine", ConclusionNote(conclusion.name), "bad")


def _is_odd(seen: Observation, scene: Scene, proven: Container[Pair]) -> bool:
    """Tell whether a second machine would explain a flow: not one that a service may answer, and
    no silence of one port among others that get through."""
    if seen.heard is None or is_proven(seen) or seen.concluded not in EXPLAINED:
        return False
    if _is_answered(seen):
        is_service = seen.listener.state != "ours" and bool(seen.ports) and scene.agent.alive
        return seen.task.denied or not is_service
    return seen.lost and (seen.came == "no" or seen.task.pair not in proven)


def _is_doubt(seen: Observation, proven: Container[Pair]) -> bool:
    return not seen.task.denied and (_is_answered(seen) or seen.task.pair not in proven)


def _is_answered(seen: Observation) -> bool:
    """Tell whether something answered, or refused, in the destination's name."""
    outcome = seen.heard
    assert outcome is not None
    if outcome.operation == PATH_MTU:
        # Of a listener's answers one would have shown the right machine.
        return seen.mtu is not None and seen.mtu.path is not None and seen.mtu.proof == "service"
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination"
    return outcome.answer is not None or outcome.failure == "refused"
