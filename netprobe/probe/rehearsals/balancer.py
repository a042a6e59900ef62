"""A balancer: agents accept for its back ends, netprobe speaks for them, and sources dial it.

Each dial asks for a path of its own, so that it is known at which back end it arrived, whoever
ended TLS on the way (docs/rehearsal.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from netprobe.errors import AgentError
from netprobe.model.balanced import BalancerFacts
from netprobe.model.inventory import Health
from netprobe.model.plan import Block
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.rehearsals.back_end import PlayedBackEnd, VisitLog
from netprobe.probe.rehearsals.dials import OPEN_S, BalancerDial, Dialling, DiallingSource
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage, TogetherRehearsal
from netprobe.probe.rehearsals.seen_pool import describe_source, find_back_end
from netprobe.protocols.services.own_authority import ALPN, BackEndIdentity, make_identities
from netprobe.protocols.services.tls import Hello
from netprobe.vantage.accepting import PortPlace, Serve
from netprobe.vantage.stream import Target

# Connections that a back end holds at once, and the longest that it listens: a coordinator that is
# gone, and whose agent is not, must not leave a port open.
CONNECTIONS = 256
LONGEST_S = 120.0
ANYWHERE: Final = ("0.0.0.0", "::")  # a balancer may use any address of a host
HELD = "address-in-use"
NO_RIGHT = frozenset(("access-denied", "not-permitted"))


class BalancerRehearsal(TogetherRehearsal):
    """Plays the back ends of a balancer for all of its sources at once."""

    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """Open the ports that this host's back end would have, and close them."""
        if agent.host.name not in {host.name for host in block.back_ends}:
            return None
        wanted: dict[int, None] = {}
        for first, _ in block.ports:
            for host, _ in block.destinations:
                for port in _list_ports(first, host.health_at(first)):
                    wanted[port] = None
        try:
            for port in wanted:
                async with _open_port(agent, port, _refuse_all):
                    pass
        except NotPlayedError as error:
            return str(error)
        return None

    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Play one port at one address of a balancer; all stages are of it."""
        first = stages[0]
        health = first.flow.destination.health_at(first.port)
        names = tuple(host.name for host in first.flow.block.back_ends)
        scene = BalancerScene(
            first, health, make_identities(names), VisitLog(secrets.token_hex(8)),
        )  # fmt: skip
        async with contextlib.AsyncExitStack() as ports:
            await scene.open_back_ends(ports)
            dialling = scene.make_dialling(stages)
            await dialling.run()
        return [scene.describe(stage, dialling) for stage in stages]


async def _refuse_all(*_: object) -> None:
    """Say nothing."""


def _list_ports(port: int, health: Health | None) -> tuple[int, ...]:
    """List the ports of a back end: the one that is balanced, and that of the check."""
    if health is None or health.port in (None, port):
        return (port,)
    return (port, health.port or port)


@contextlib.asynccontextmanager
async def _open_port(agent: AgentMethods, port: int, serve: Serve) -> AsyncIterator[None]:
    """Let an agent listen at all addresses of its host: a balancer may use any of them.

    Raises NotPlayedError where its host does not let it, and AgentError.
    """
    async with contextlib.AsyncExitStack() as open_ones:
        failures = []
        for anywhere in ANYWHERE:
            place = PortPlace(anywhere, port, CONNECTIONS, LONGEST_S)
            failures.append(await open_ones.enter_async_context(agent.open_port(place, serve)))
        _refuse_shut(agent.host.name, port, failures)
        yield


def _refuse_shut(host: str, port: int, failures: Sequence[str | None]) -> None:
    """Raise NotPlayedError where a port is held, or open at no address."""
    if HELD in failures:
        words = "in use: back ends are played before the installation"
        raise NotPlayedError("port-held", f"TCP port {port} of {host} is {words}")
    if None in failures:
        return
    reason = "no-permission" if {*failures} & NO_RIGHT else "no-back-end"
    raise NotPlayedError(
        reason, f"{host}: the agent cannot listen at TCP port {port} ({failures[0]})"
    )


class BalancerScene(Struct, frozen=True):
    """One port at one address of a balancer, while its back ends are played."""

    stage: Stage
    health: Health | None
    identities: Mapping[str, BackEndIdentity]
    log: VisitLog

    async def open_back_ends(self, ports: contextlib.AsyncExitStack) -> None:
        """Let all back ends listen. Raises NotPlayedError and AgentError."""
        clock = asyncio.get_running_loop().time
        for host in self.stage.flow.block.back_ends:
            agent = self.stage.fleet.agent(host)
            identity = self.identities[host.name]
            played = PlayedBackEnd(host.name, identity, self.health, self.log, clock)
            for port in _list_ports(self.stage.port, self.health):
                serve = partial(played.serve, port)
                await ports.enter_async_context(_open_port(agent, port, serve))

    def make_dialling(self, stages: Sequence[Stage]) -> Dialling:
        """Let each source of the stages dial."""
        sources = {
            one.flow.source.name: DiallingSource(
                one.flow.source.name,
                one.fleet.agent(one.flow.source),
                Target(one.address, one.port, one.source_address, timeout_s=OPEN_S),
            )
            for one in stages
        }
        hello = Hello(self.stage.flow.block.sni or None, ALPN)
        return Dialling(
            sources.values(), hello, tuple(self.identities), self.log, self.find_back_end
        )

    def find_back_end(self, dial: BalancerDial) -> str | None:
        """Tell which back end a dial reached."""
        return find_back_end(dial, self.identities, self.log)

    def describe(self, stage: Stage, dialling: Dialling) -> Played:
        """Give what a source saw, or why nobody knows."""
        source = next(one for one in dialling.sources if one.name == stage.flow.source.name)
        if isinstance(source.error, AgentError):
            return source.error
        if source.error is not None:
            raise source.error
        facts = describe_source(source, dialling, self.identities, self.log, self.health)
        return _refuse_stopped(facts, source) or facts


def _refuse_stopped(facts: BalancerFacts, source: DiallingSource) -> NotPlayedError | None:
    """Give why a source shows nothing: no connection opens, and it is not its own reflection."""
    if any(dial.opened for dial in source.dials) or source.name in facts.unreflected:
        return None
    words = source.dials[-1].words if source.dials else "nothing was dialled"
    at = f"TCP port {source.target.port} of the balancer"
    return NotPlayedError("row-stopped", f"{at} opens no connection ({words}): first that")
