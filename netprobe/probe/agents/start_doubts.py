"""Why ssh failed at a host that is there: two machines may have its address, and it met the other.

Neighbours know: those that have an agent ask the network who has it. Other starts go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from netprobe.errors import AgentError
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.neighbours import (
    NEAREST,
    HolderAnswers,
    distance,
    name_machines,
    word_answers,
)

# The reasons of starts that may have met another machine.
DOUBTED = ("no-vantage", "start-timeout")
# So long the starts of neighbours are waited for.
NEIGHBOURS_S = 10.0
TWO_MACHINES = (
    "two machines have the address, and ssh may have met the wrong one: give one of them another "
    "address"
)


class StartDoubts:
    """The starts of a fleet, as far as they have been tried."""

    def __init__(self, agents: Sequence[AgentMethods]) -> None:
        self._agents = agents
        # Of a failed one the reason is perhaps not known yet.
        self._tried = {agent.host.name: asyncio.Event() for agent in agents}

    def note(self, agent: AgentMethods) -> None:
        """Note that the start of an agent has succeeded, or failed."""
        self._tried[agent.host.name].set()

    async def look_at(
        self, agent: AgentMethods, error: AgentError, holders: HolderAnswers
    ) -> AgentError:
        """Give the error of a failed start, with this cause where ssh may have met another
        machine."""
        self.note(agent)
        if agent.host.vantage.kind != "ssh" or error.reason not in DOUBTED:
            return error
        for address in sorted(agent.host.listed_addresses):
            await self._await_neighbours(address, agent)
            names = name_machines(await holders.ask(address), self._agents)
            if len(names) > 1:
                words = f"{word_answers(names, address)}: {TWO_MACHINES}"
                return error.with_cause("other-machine", words)
        return error

    async def _await_neighbours(self, address: str, agent: AgentMethods) -> None:
        """Wait until the agents that may be on the network of an address have started."""
        others = (one for one in self._agents if one.host.vantage.kind != "none")
        near = sorted(
            (one for one in others if one is not agent),
            key=lambda one: distance(address, one.own_addresses),
        )[:NEAREST]
        waits = [asyncio.create_task(self._tried[one.host.name].wait()) for one in near]
        if waits:
            _, late = await asyncio.wait(waits, timeout=NEIGHBOURS_S)
            for wait in late:
                wait.cancel()
