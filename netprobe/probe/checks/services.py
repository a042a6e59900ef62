"""Asks live services who they are, over streams that the source's agent opens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.ports import PortRange
from netprobe.model.stream import Pipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.service_findings import AT_ONCE, service_warnings
from netprobe.probe.flows.work import Task
from netprobe.protocols.services import SERVICES, Asked, ServiceFinding, identify
from netprobe.vantage.stream import Target

# Nobody requires a service on more ports than these; of a range the first ones speak for the rest.
PORTS_ASKED = 32


class Services(Check):
    """Asks services who they are, where a connection opened and nothing was asked."""

    name = "services"

    def concerns(self, seen: Observation) -> bool:
        """A service that we know how to ask, not our listener, accepted the connection."""
        task, outcome = seen.task, seen.outcome
        return (
            outcome is not None
            and outcome.answer == "unasked"
            and task.protocol == "tcp"
            and not task.denied
            and task.probe in SERVICES
            and task.server_name != ""
            and seen.listener.state != "ours"
            and seen.conclusion is None
        )

    def group(self, seen: Observation) -> Hashable:
        """All of a destination, which is asked by a few at a time."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow what is known of the service."""
        slots = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(self._ask_flow(seen, scene, slots) for seen in group))
        return [piece for pieces in found for piece in pieces]

    async def _ask_flow(
        self, seen: Observation, scene: Scene, slots: asyncio.Semaphore
    ) -> list[Observation]:
        ports = list(port_sets.each(seen.ports))[:PORTS_ASKED]
        agent = scene.fleet.agent(seen.task.source)
        try:
            findings = await asyncio.gather(
                *(_ask_port(agent, seen.task, port, slots) for port in ports)
            )
        except AgentError:
            return [seen]  # the source is gone: that the connection opened stands
        by_finding: dict[ServiceFinding, list[PortRange]] = {}
        for port, finding in zip(ports, findings, strict=True):
            by_finding.setdefault(finding, []).append((port, port))
        rest = port_sets.subtract(seen.ports, port_sets.normalise((p, p) for p in ports))
        pieces = [self._take_finding(seen, finding, some) for finding, some in by_finding.items()]
        return [*pieces, replace(seen, ports=rest)] if rest else pieces

    def _take_finding(
        self, seen: Observation, finding: ServiceFinding, some: list[PortRange]
    ) -> Observation:
        ports = port_sets.intersect(seen.ports, port_sets.normalise(some))
        found = replace(seen, ports=ports, warnings=service_warnings(seen.task, finding))
        found = found.amending(answer=finding.told, said=finding.said)
        return found.noting(self.name, told=finding.told, said=finding.said)


async def _ask_port(
    agent: AgentMethods, task: Task, port: int, slots: asyncio.Semaphore
) -> ServiceFinding:
    target = Target(task.address, port, source_address(task))

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        async with agent.open_stream(target) as stream:
            yield stream if stream.opened.failure is None else None

    async with slots:
        asked = Asked(task.address, port, task.server_name)
        return await identify(SERVICES[task.probe or ""], asked, dial)
