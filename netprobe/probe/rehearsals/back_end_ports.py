"""The ports of a host that plays a back end: they open, and one may close for a while."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final, Self

from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.rehearsals.back_end import PlayedBackEnd
from netprobe.probe.rehearsals.rehearsal import NotPlayedError
from netprobe.vantage.accepting import PortPlace, Serve

# Connections that a back end holds at once, and the longest that it listens: a coordinator that is
# gone, and whose agent is not, must not leave a port open.
CONNECTIONS = 256
LONGEST_S = 120.0
ANYWHERE: Final = ("0.0.0.0", "::")  # a balancer may use any address of a host
HELD = "address-in-use"
NO_RIGHT = frozenset(("access-denied", "not-permitted"))


async def try_ports(agent: AgentMethods, ports: Sequence[int]) -> None:
    """Open ports and close them. Raises NotPlayedError and AgentError."""
    for port in ports:
        async with open_everywhere(agent, port, _refuse_all):
            pass


async def _refuse_all(*_: object) -> None:
    """Say nothing."""


@contextlib.asynccontextmanager
async def open_everywhere(agent: AgentMethods, port: int, serve: Serve) -> AsyncIterator[None]:
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


class BackEndPorts:
    """The open ports of a host that plays a back end. A context: it closes them."""

    def __init__(self, agent: AgentMethods, played: PlayedBackEnd, ports: Sequence[int]) -> None:
        self.played = played
        self._agent = agent
        self._ports = ports
        self._open: dict[int, contextlib.AsyncExitStack] = {}

    async def __aenter__(self) -> Self:
        """Open all ports. Raises NotPlayedError and AgentError."""
        try:
            for port in self._ports:
                await self._open_port(port)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for stack in self._open.values():
            await stack.aclose()
        self._open.clear()

    async def _open_port(self, port: int) -> None:
        stack = contextlib.AsyncExitStack()
        serve = partial(self.played.serve, port)
        await stack.enter_async_context(open_everywhere(self._agent, port, serve))
        self._open[port] = stack

    @property
    def is_closing(self) -> bool:
        """Whether it fails by closing a port: a check that only connects sees nothing else."""
        return self.played.health is not None and self.played.health.kind == "tcp"

    async def fail(self) -> None:
        """Answer the health check as a back end that is not ready."""
        if self.is_closing:
            # That of the health check is the last.
            await self._open.pop(self._ports[-1]).aclose()
        self.played.fails = True

    async def heal(self) -> None:
        """Answer it as before. Raises NotPlayedError and AgentError."""
        if self._ports[-1] not in self._open:
            await self._open_port(self._ports[-1])
        self.played.fails = False
