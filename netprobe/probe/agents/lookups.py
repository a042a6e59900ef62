"""The names that hosts resolve in one run: each is asked once, so that a dead name server is waited
for once."""

from __future__ import annotations

import asyncio
from contextvars import Context

from netprobe.agent.wire.host_messages import Resolved
from netprobe.probe.agents.agent import AgentMethods

# An agent has so many threads that resolve: a name that waits there for one has less time.
LOOKUPS_AT_ONCE = 32


class Lookups:
    """What the agents of a run are asked to resolve, and what came of it."""

    def __init__(self) -> None:
        self._begun: dict[tuple[AgentMethods, str], asyncio.Task[Resolved]] = {}
        self._turns: dict[AgentMethods, asyncio.Semaphore] = {}

    def begin(self, agent: AgentMethods, name: str) -> asyncio.Task[Resolved]:
        """Give what resolves a name on the agent's host, for all who wait; anew where that failed.

        It waits for the agent's start.
        """
        known = self._begun.get((agent, name))
        if known is None or (known.done() and known.exception() is not None):
            # Several destinations may wait for it: in the phases it is a piece of its own.
            known = asyncio.create_task(self._resolve_in_turn(agent, name), context=Context())
            # A run may be stopped before it fails: then asyncio logs no exception.
            known.add_done_callback(lambda one: one.cancelled() or one.exception())
            self._begun[agent, name] = known
        return known

    async def resolve(self, agent: AgentMethods, name: str) -> Resolved:
        """Resolve a name as programs on the agent's host do. Raises AgentError."""
        return await asyncio.shield(self.begin(agent, name))

    async def _resolve_in_turn(self, agent: AgentMethods, name: str) -> Resolved:
        await agent.wait_ready()
        turn = self._turns.setdefault(agent, asyncio.Semaphore(LOOKUPS_AT_ONCE))
        with agent.phases.during("waiting", f"for {agent.host.name} to resolve {name}"):
            async with turn:
                return await agent.resolve(name)
