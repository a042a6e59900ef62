"""Asks live services who they are, over streams that the source's agent opens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import ServiceFinding
from netprobe.model.konnectivity import Pipe
from netprobe.model.notes import ServiceNote
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import SERVICES_AT_ONCE
from netprobe.protocols.services.identify import Asked, Service, identify
from netprobe.protocols.services.services import service_for
from netprobe.vantage.stream import Target

# Nobody requires a service on more ports than these; of a range the first ones speak for the rest.
PORTS_ASKED = 32
INTERCEPTED = "intercepted"


class Services(Check):
    """Asks services who they are, where a connection opened and nothing was asked."""

    name = "services"

    def concerns(self, seen: Observation) -> bool:
        """A service that we know how to ask, not our listener, accepted the connection.

        Who answers in its place is asked too: it may be a captive portal.
        """
        task, outcome = seen.task, seen.outcome
        return (
            outcome is not None
            and outcome.answer == "unasked"
            and task.protocol == "tcp"
            and not task.denied
            and service_for(task.probe) is not None
            and task.server_name != ""
            and seen.listener.state != "ours"
            and (seen.conclusion is None or seen.conclusion.name == INTERCEPTED)
        )

    def group(self, seen: Observation) -> Hashable:
        """All of a destination, which is asked by a few at a time."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow what is known of the service."""
        slots = asyncio.Semaphore(SERVICES_AT_ONCE)
        found = await asyncio.gather(*(self._ask_flow(seen, scene, slots) for seen in group))
        return [piece for pieces in found for piece in pieces]

    async def _ask_flow(
        self, seen: Observation, scene: Scene, slots: asyncio.Semaphore
    ) -> list[Observation]:
        ports = list(port_sets.each(seen.ports))[:PORTS_ASKED]
        agent, service = scene.fleet.agent(seen.task.source), service_for(seen.task.probe)
        assert service is not None
        try:
            findings = await asyncio.gather(
                *(_ask_port(agent, service, seen.task, port, slots) for port in ports)
            )
        except AgentError as error:
            # Nobody speaks for the source: that the connection opened stands.
            return [replace(seen, warnings=(*seen.warnings, f"the service was not asked: {error}"))]
        told = dict(zip(ports, findings, strict=True))
        rest = port_sets.subtract(seen.ports, port_sets.normalise((p, p) for p in ports))
        pieces = []
        for finding in dict.fromkeys(findings):
            some = port_sets.normalise((p, p) for p, one in told.items() if one == finding)
            piece = replace(seen, ports=some, service=finding)
            pieces.append(piece.noting(self.name, ServiceNote(finding.told, finding.said)))
        return [*pieces, replace(seen, ports=rest)] if rest else pieces


async def _ask_port(
    agent: AgentMethods, service: Service, task: Task, port: int, slots: asyncio.Semaphore
) -> ServiceFinding:
    target = Target(task.address, port, source_address(task))

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        async with agent.open_stream(target) as stream:
            yield stream if stream.opened.failure is None else None

    async with slots:
        return await identify(service, Asked(task.address, port, task.server_name), dial)
