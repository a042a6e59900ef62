"""TTL walks of a destination's silent flows: one for each source, address and protocol.

A walk may begin while silence is still asked again, where routers have errors to spare: what they
say of a walk they cannot say of a flow (docs/network-facts.md, section 5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.orders import MAX_TTL
from netprobe.errors import AgentError
from netprobe.probe.agents.agent import WALKS
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.reachability import Answered

WALKED = ("tcp", "udp", "icmp")
# Early walks leave so many of a source's walks to flows that stay silent.
KEPT_WALKS = WALKS // 2

# Source, address and protocol.
_Way = tuple[str, str, str]


class Walks:
    """Walks of one destination's flows. ``early``: also beside the looks that ask silence again."""

    def __init__(self, fleet: Fleet, answered: Answered, *, early: bool = True) -> None:
        self._fleet = fleet
        self._answered = answered
        self._early = early
        # What has begun beside looks, with the port that is walked.
        self._begun: dict[_Way, tuple[int, asyncio.Task[Walked | None]]] = {}

    def begin(self, found: Iterable[Observation]) -> None:
        """Begin the walks of flows that were silent, where no look needs the routers' errors.

        Where datagrams are rationed the walk would take errors of the destination, too.
        """
        for seen in found if self._early else ():
            agent, way = self._fleet.agent(seen.task.source), _way_of(seen)
            if (
                seen.silent
                and not seen.part.paced
                and seen.task.via is None
                and seen.task.protocol in WALKED
                and way not in self._begun
                and agent.walks_left > KEPT_WALKS
                and self._answered.has_errors_to_spare(agent.host.name)
            ):
                self._begun[way] = first_port(seen), asyncio.create_task(self._walk_early(seen))

    def has_begun(self, pair: tuple[str, str]) -> bool:
        """Tell whether a walk of the pair has begun beside its looks: routers send errors about it
        that are none about its flows."""
        return any(way[:2] == pair for way in self._begun)

    async def find(self, group: list[Observation]) -> tuple[int, Walked] | None:
        """Give the port and the walk that stand for silent flows of one way; None: there is none.

        A walk that began early stands for them if the flow with its port is among them. Raises
        AgentError.
        """
        port, begun = self._begun.get(_way_of(group[0]), (0, None))
        if begun is not None and any(_has_port(seen, port) for seen in group):
            walked = await begun
            if walked is not None:
                return port, walked
        walked = await self._send_walk(group[0], waits=True)
        return None if walked is None else (first_port(group[0]), walked)

    def close(self) -> None:
        """Stop walking."""
        for _, task in self._begun.values():
            task.cancel()

    async def _walk_early(self, seen: Observation) -> Walked | None:
        try:
            return await self._send_walk(seen)
        except AgentError:
            return None  # who needs the walk learns of it

    async def _send_walk(self, seen: Observation, *, waits: bool = False) -> Walked | None:
        """Walk while the source has walks left. ``waits``: until what is still asked has the
        answers of routers that ration them."""
        task = seen.task
        agent = self._fleet.agent(task.source)
        if agent.walks_left <= 0:
            return None
        agent.walks_left -= 1
        source = source_address(task)
        route = await agent.route(task.address, source)
        if route.gateway is None:  # on the same network there is no router to find
            agent.walks_left += 1
            return None
        if waits and self._answered.hears_routers(agent.host.name):
            await agent.quiet()
        template = seen.part.template
        return await agent.walk(
            task.protocol, task.address, first_port(seen), source, MAX_TTL, template
        )


def first_port(seen: Observation) -> int:
    """Give the first port of a flow; 0 where its protocol has none."""
    return seen.ports[0][0] if seen.ports else 0


def _way_of(seen: Observation) -> _Way:
    return (*seen.task.pair, seen.task.protocol)


def _has_port(seen: Observation, port: int) -> bool:
    return not seen.ports or any(first <= port <= last for first, last in seen.ports)
