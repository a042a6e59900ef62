"""A balancer: agents accept for its back ends, netprobe speaks for them, and sources dial it.

Each dial asks for a path of its own, so that it is known at which back end it arrived, whoever
ended TLS on the way (docs/rehearsal.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence

from msgspec import Struct

from netprobe.errors import AgentError
from netprobe.model.balanced import Removal
from netprobe.model.inventory import Health
from netprobe.model.plan import Block
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.rehearsals.back_end import FAILED, PlayedBackEnd, VisitLog
from netprobe.probe.rehearsals.back_end_ports import BackEndPorts, try_ports
from netprobe.probe.rehearsals.dials import BalancerDial, Dialling, make_sources
from netprobe.probe.rehearsals.failing import FailingBackEnds
from netprobe.probe.rehearsals.looking import look_at_pool
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage, TogetherRehearsal
from netprobe.probe.rehearsals.seen_pool import (
    always_reaches_one,
    describe_source,
    find_back_end,
    refuse_stopped,
)
from netprobe.protocols.services.own_authority import ALPN, BackEndIdentity, make_identities
from netprobe.protocols.services.tls import Hello

# So long one port of a balancer is played at most, but for what is on its way then.
TOTAL_S = 95.0


class BalancerRehearsal(TogetherRehearsal):
    """Plays the back ends of a balancer for all of its sources at once."""

    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """Open the ports that this host's back end would have, and close them."""
        if agent.host.name not in {host.name for host in block.back_ends}:
            return None
        wanted = {
            port: None
            for first, _ in block.ports
            for host, _ in block.destinations
            for port in host.list_back_ports(first)
        }
        try:
            await try_ports(agent, [*wanted])
        except NotPlayedError as error:
            return str(error)
        return None

    def list_ports(self, stage: Stage) -> tuple[int, ...]:
        """List the port that is balanced, and that of the health check."""
        return stage.flow.destination.list_back_ports(stage.port)

    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Play one port at one address of a balancer; all stages are of it."""
        first = stages[0]
        health = first.flow.destination.health_at(first.port)
        names = tuple(host.name for host in first.flow.block.back_ends)
        scene = BalancerScene(
            first, health, make_identities(names), VisitLog(secrets.token_hex(8)),
        )  # fmt: skip
        try:
            return await _play_scene(scene, stages)
        except NotPlayedError as error:
            if error.reason != "port-held":
                raise
            return await look_at_pool(stages, health, str(error))


async def _play_scene(scene: BalancerScene, stages: Sequence[Stage]) -> list[Played]:
    ends_at = scene.read_clock() + TOTAL_S
    async with contextlib.AsyncExitStack() as ports:
        hosts = await scene.open_back_ends(ports)
        dialling = scene.make_dialling(stages)
        await dialling.run()
        failing = scene.make_failing(dialling, hosts, ends_at)
        if failing is not None:
            await failing.run()
    await scene.refuse_lost()
    removals = failing.removals if failing is not None else ()
    return [scene.describe(stage, dialling, removals) for stage in stages]


class BalancerScene(Struct, frozen=True):
    """One port at one address of a balancer, while its back ends are played."""

    stage: Stage
    health: Health | None
    identities: Mapping[str, BackEndIdentity]
    log: VisitLog

    def read_clock(self) -> float:
        """Give the seconds of the one clock that all is compared by."""
        return asyncio.get_running_loop().time()

    async def open_back_ends(self, ports: contextlib.AsyncExitStack) -> dict[str, BackEndPorts]:
        """Let all back ends listen. Raises NotPlayedError and AgentError."""
        opened = {}
        numbers = self.stage.flow.destination.list_back_ports(self.stage.port)
        for host in self.stage.flow.block.back_ends:
            identity = self.identities[host.name]
            played = PlayedBackEnd(host.name, identity, self.health, self.log, self.read_clock)
            agent = self.stage.fleet.agent(host)
            opened[host.name] = await ports.enter_async_context(
                BackEndPorts(agent, played, numbers)
            )
        return opened

    async def refuse_lost(self) -> None:
        """Raise AgentError where the agent of a back end has gone: its port has closed with it."""
        for host in self.stage.flow.block.back_ends:
            await self.stage.fleet.agent(host).wait_ready()

    def make_failing(
        self, dialling: Dialling, hosts: Mapping[str, BackEndPorts], ends_at: float
    ) -> FailingBackEnds | None:
        """Let back ends fail what the balancer asks; None: nobody says what that is."""
        if self.health is None:
            return None
        sticks = any(always_reaches_one(one, (*hosts,)) for one in dialling.sources)
        return FailingBackEnds(dialling, hosts, ends_at, self.read_clock, not sticks)

    def make_dialling(self, stages: Sequence[Stage]) -> Dialling:
        """Let each source of the stages dial."""
        hello = Hello(self.stage.flow.block.sni or None, ALPN)
        names = tuple(self.identities)
        return Dialling(make_sources(stages), hello, names, self.log.path, self.find_back_end)

    @property
    def certificates(self) -> dict[str, bytes]:
        """The certificate of each back end."""
        return {name: one.certificate for name, one in self.identities.items()}

    def find_back_end(self, dial: BalancerDial) -> str | None:
        """Tell which back end a dial reached."""
        return find_back_end(dial, self.certificates, self.log)

    def describe(self, stage: Stage, dialling: Dialling, removals: Sequence[Removal]) -> Played:
        """Give what a source saw, or why nobody knows."""
        source = dialling.find_source(stage.flow.source.name)
        if isinstance(source.error, AgentError):
            return source.error
        if source.error is not None:
            raise source.error
        facts = describe_source(source, dialling, self.certificates, self.log, self.health)
        facts = facts._replace(removals=(*removals,), failing=self.word_failing())
        return refuse_stopped(facts, source) or facts

    def word_failing(self) -> str:
        """Say what a back end does that fails; empty: none did."""
        if self.health is None:
            return ""
        if self.health.kind == "tcp":
            return f"closed TCP port {self.health.port or self.stage.port}"
        return f"answered {self.health.path} with {FAILED}"
