"""All agents of one run, whoever they are: live ones, or others that answer as these would."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from netprobe.agent.wire.orders import RecordOrder
from netprobe.model.inventory import Host
from netprobe.model.result import HostReport
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.lookups import Lookups
from netprobe.probe.agents.neighbours import HolderAnswers
from netprobe.probe.agents.phases import Phases
from netprobe.probe.agents.templates import Templates

# Gets every host's report, once it is known.
TellHost = Callable[[HostReport], None]


class Fleet:
    """Agents by their hosts, and what they share. An agent's index is its place here.

    A context: its agents begin with it and end with it, and runs over them follow one another.
    ``tell`` gets every host's report once it is known, and ``reports`` holds the last one of each.
    A subclass says how the agents begin and end. ``side_by_side``: whether several looks at a flow
    may be out at once.
    """

    side_by_side = True
    # Whether a destination is asked while half-open connections still wait in its kernel.
    sees_waiting = True

    def __init__(
        self, agents: Iterable[AgentMethods], templates: Templates, key: bytes, tell: TellHost
    ) -> None:
        self.templates = templates
        self.reports: dict[str, HostReport] = {}
        self._tell = tell
        self.phases = Phases()
        # Only one destination at a time runs the slow re-check: a router may apply one rate limit
        # to all destinations.
        self.slowly = asyncio.Lock()
        self.key = key
        self.order_ids = itertools.count(1)
        self._by_name = {agent.host.name: agent for agent in agents}
        self._hosts = [agent.host for agent in self._by_name.values()]
        self.holders = HolderAnswers(self.agents())
        self.lookups = Lookups()
        for index, agent in enumerate(self._by_name.values()):
            agent.index = index
            agent.phases = self.phases

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin to start every agent; each settles on its own."""

    def begin_run(self, rate: int | None = None, record: RecordOrder | None = None) -> None:
        """Begin a run: times, limits, answers and packets of an earlier one are forgotten.

        Of ``rate`` (probes a second over all) each gets an equal share. ``record``: what the packet
        recorders look for; None: there are none.
        """
        self.phases = Phases()
        self.holders = HolderAnswers(self.agents())
        self.lookups = Lookups()
        for agent in self._by_name.values():
            agent.begin_run(self.phases, records=record is not None)

    def agent(self, host: Host) -> AgentMethods:
        """Give the agent of a host, in whatever state it is."""
        return self._by_name[host.name]

    def hosts(self) -> list[Host]:
        """Give every host of the run."""
        return self._hosts

    def agents(self) -> list[AgentMethods]:
        """Give the agents of all hosts, in whatever state they are."""
        return list(self._by_name.values())

    def own_addresses(self, host: Host) -> frozenset[str]:
        """Give the addresses of a host: those of the inventory, and what its agent said."""
        return self.agent(host).own_addresses

    def name_of(self, index: int) -> str | None:
        """Translate the index in an answer to the host's name."""
        return self._hosts[index].name if 0 <= index < len(self._hosts) else None

    async def tell_losses(self) -> None:
        """Report the hosts whose recorder has missed packets, once more with that."""

    async def close(self) -> None:
        """End every agent, whatever it is doing."""

    def report_host(self, report: HostReport) -> None:
        """Keep a host's report, and tell it."""
        self.reports[report.name] = report
        self._tell(report)
