"""Live services asked who they are, over streams that the source's agent opens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Outcome
from netprobe.model.ports import PortRange
from netprobe.model.stream import Pipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.prober import Sighting, source_address
from netprobe.probe.flows.work import Task
from netprobe.protocols.services import SERVICES, Asked, Dial, Finding, identify
from netprobe.vantage.stream import Target

# TLS handshakes cost the service more than they cost us.
AT_ONCE = 8
# Nobody requires a service on more ports than these; of a range the first ones speak for the rest.
PORTS_ASKED = 32
# Only what may be the service's own answer needs an explanation.
_UNEXPECTED = ("other", "tls", "plaintext")


class Services:
    """Asks the services of one destination."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def check(self, sightings: list[Sighting]) -> list[Sighting]:
        """Every sighting; where a connection opened and nothing was asked, with who is there."""
        found = await asyncio.gather(*(self._one(sighting) for sighting in sightings))
        return [piece for pieces in found for piece in pieces]

    async def _one(self, sighting: Sighting) -> list[Sighting]:
        if not is_askable(sighting):
            return [sighting]
        ports = list(port_sets.each(sighting.ports))[:PORTS_ASKED]
        try:
            findings = await asyncio.gather(*(self._ask(sighting.task, port) for port in ports))
        except AgentError:
            # The source is gone: that the connection opened stands.
            return [sighting]
        by_finding: dict[Finding, list[PortRange]] = {}
        for port, finding in zip(ports, findings, strict=True):
            by_finding.setdefault(finding, []).append((port, port))
        asked = port_sets.normalise((port, port) for port in ports)
        rest = port_sets.subtract(sighting.ports, asked)
        pieces = [_piece(sighting, finding, some) for finding, some in by_finding.items()]
        return [*pieces, replace(sighting, ports=rest)] if rest else pieces

    async def _ask(self, task: Task, port: int) -> Finding:
        async with self._slots:
            agent = self._fleet.agent(task.source)
            target = Target(task.address, port, source_address(task))
            service = SERVICES[task.probe or ""]
            asked = Asked(task.address, port, task.server_name)
            return await identify(service, asked, dial_directly(agent, target))


def is_askable(sighting: Sighting) -> bool:
    """Whether a service that we know how to ask accepted the connection, no listener of ours."""
    task, outcome = sighting.task, sighting.outcome
    return (
        outcome is not None
        and outcome.answer == "unasked"
        and task.protocol == "tcp"
        and not task.denied
        and task.probe in SERVICES
        and task.server_name != ""
        and sighting.listener.state != "ours"
    )


def dial_directly(agent: AgentMethods, target: Target) -> Dial:
    """Connections to the service itself."""

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        async with agent.open_stream(target) as stream:
            yield stream if stream.opened.failure is None else None

    return dial


def _piece(sighting: Sighting, finding: Finding, some: list[PortRange]) -> Sighting:
    assert sighting.outcome is not None
    return replace(
        sighting,
        ports=port_sets.intersect(sighting.ports, port_sets.normalise(some)),
        outcome=with_finding(sighting.outcome, finding),
        warnings=warnings(sighting.task, finding),
    )


def with_finding(outcome: Outcome, finding: Finding) -> Outcome:
    """The outcome of a connection with what was found out behind it."""
    return replace(outcome, answer=finding.told, said=finding.said)


def warnings(task: Task, finding: Finding) -> tuple[str, ...]:
    """What a reader should know beside the verdict."""
    title = SERVICES[task.probe or ""].title
    if finding.told in _UNEXPECTED:
        return (f"{title} is expected there, and something else answered",)
    if finding.told != "service":
        words = {"closed": "it closed the connection", "reset": "the connection was reset"}
        what = words.get(finding.told, "it said nothing")
        return (f"{title} is expected there; when it was asked who it is, {what}",)
    return () if finding.note is None else (f"{title} answers, but {finding.note}",)
