"""All agents of one run, whoever they are: live ones, or others that answer as these would."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence

from netprobe.agent.wire.orders import RecordOrder
from netprobe.model.inventory import Host
from netprobe.model.result import HostReport
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.phases import Phases
from netprobe.probe.agents.templates import Templates

# Gets every host's report, once it is known.
Tell = Callable[[HostReport], None]


class Fleet:
    """The agents of a run by their hosts, and what they share. An agent's index is its place here.

    A subclass says how the agents begin and end.
    """

    def __init__(self, agents: Iterable[AgentMethods], templates: Templates, key: bytes) -> None:
        self.templates = templates
        self.phases = Phases()
        # Only one destination at a time runs the slow re-check: a router may apply one rate limit
        # to all destinations.
        self.slowly = asyncio.Lock()
        self.key = key
        self.order_ids = itertools.count(1)
        self._by_name = {agent.host.name: agent for agent in agents}
        for index, agent in enumerate(self._by_name.values()):
            agent.index = index
            agent.phases = self.phases

    def start(self, rate: int | None = None, record: RecordOrder | None = None) -> None:
        """Begin to start every agent; each settles on its own.

        Of ``rate`` (probes a second over all) each gets an equal share. ``record``: what the packet
        recorders look for; None: there are none.
        """

    def agent(self, host: Host) -> AgentMethods:
        """Give the agent of a host, in whatever state it is."""
        return self._by_name[host.name]

    def hosts(self) -> list[Host]:
        """Give every host of the run."""
        return [agent.host for agent in self._by_name.values()]

    def own_addresses(self, host: Host) -> set[str]:
        """Give the addresses of a host: those of the inventory, and what its agent said."""
        hello = self.agent(host).hello
        return host.listed_addresses.union(hello.addresses if hello is not None else ())

    def name_of(self, index: int) -> str | None:
        """Translate the index in an answer to the host's name."""
        names = list(self._by_name)
        return names[index] if 0 <= index < len(names) else None

    async def tell_losses(self) -> None:
        """Report the hosts whose recorder has missed packets, once more with that."""

    async def close(self) -> None:
        """End every agent, whatever it is doing."""


# Makes the fleet of a run: its hosts, and who is told of each.
MakeFleet = Callable[[Sequence[Host], Tell], Fleet]
