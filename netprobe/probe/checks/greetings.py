"""Asks open ports for banner and certificate, where no agent can tell which program holds them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable, Iterable

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.notes import GreetingNote
from netprobe.model.ports import Ports
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import SERVICES_AT_ONCE
from netprobe.protocols.services.greeting import GREETING_PROCESSES, hear_greeting
from netprobe.protocols.services.services import service_for
from netprobe.vantage.stream import Target

# A host has thousands of open ports, and none of them has to be there yet.
PORTS_ASKED = 8
# A look that no verdict depends on lasts no longer.
MOST_GLANCE_S = 0.7


class Greetings(Check):
    """Asks what accepted a connection before the installation to say who it is."""

    name = "greeting"

    def concerns(self, seen: Observation) -> bool:
        """A port that nothing shows the holder of; where an agent is, one that sshd may hold."""
        task, outcome, listener = seen.task, seen.outcome, seen.listener
        unseen = listener.state == "live" and not listener.processes and _may_greet(task)
        return (
            outcome is not None
            and outcome.answer == "unasked"
            and task.protocol == "tcp"
            and task.via is None
            and not (task.denied or task.existing)
            and service_for(task.probe) is None
            and (unseen or listener.state in ("unknown", "lost"))
            and seen.conclusion is None
        )

    def group(self, seen: Observation) -> Hashable:
        """All of a destination, of which a few ports are asked."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow what its port says of itself; rows that know a greeting come first."""
        if scene.prober.everything_runs or (scene.agent.hello and scene.agent.hello.kubelet):
            return group
        group = sorted(group, key=lambda seen: not _may_greet(seen.task))
        chosen = _choose_ports(group)
        slots = asyncio.Semaphore(SERVICES_AT_ONCE)
        found = await asyncio.gather(*(_ask_flow(one, chosen, scene, slots) for one in group))
        return [piece for pieces in found for piece in pieces]


def _may_greet(task: Task) -> bool:
    """Tell whether a row of the task lists a program that says who it is by itself."""
    return any(GREETING_PROCESSES & {*one.flow.block.requirement.process} for one in task.wants)


def _choose_ports(group: Iterable[Observation]) -> set[tuple[str, int]]:
    """Choose the first ports, each with its address."""
    found: dict[tuple[str, int], None] = {}
    for seen in group:
        for port in port_sets.each(seen.ports):
            if len(found) == PORTS_ASKED:
                return set(found)
            found[seen.task.address, port] = None
    return set(found)


def _choose_glance_s(task: Task, scene: Scene) -> float | None:
    """Choose how long a word of a port may take; None: a row knows programs by it.

    What no row knows by its greeting stays undecided, whatever it says.
    """
    if _may_greet(task):
        return None
    return scene.prober.measure_answer_s(task, MOST_GLANCE_S)


async def _ask_flow(
    seen: Observation, chosen: set[tuple[str, int]], scene: Scene, slots: asyncio.Semaphore
) -> list[Observation]:
    wanted = [port for address, port in sorted(chosen) if address == seen.task.address]
    ports = port_sets.intersect(seen.ports, port_sets.normalise((one, one) for one in wanted))
    agent, single = scene.fleet.agent(seen.task.source), list(port_sets.each(ports))
    glance_s = _choose_glance_s(seen.task, scene)
    try:
        asked = (_ask_port(agent, seen.task, port, slots, glance_s) for port in single)
        said = dict(zip(single, await asyncio.gather(*asked), strict=True))
    except AgentError:
        return [seen]  # that the connection opened stands
    pieces = []
    for words in dict.fromkeys(said.values()):
        some: Ports = port_sets.normalise((one, one) for one, told in said.items() if told == words)
        piece = replace(seen, ports=some, greeting=words)
        pieces.append(piece.noting(Greetings.name, GreetingNote(words)))
    rest = port_sets.subtract(seen.ports, ports)
    return [*pieces, replace(seen, ports=rest)] if rest else pieces


async def _ask_port(
    agent: AgentMethods, task: Task, port: int, slots: asyncio.Semaphore, glance_s: float | None
) -> str:
    target = Target(task.address, port, source_address(task))
    async with slots, contextlib.AsyncExitStack() as streams:
        stream = await streams.enter_async_context(agent.open_stream(target))
        if stream.opened.failure is not None:
            return "a second connection did not open"
        return await hear_greeting(stream, task.address, glance_s)
