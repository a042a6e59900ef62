"""Finds paths that are too narrow for TCP: small segments arrive, and full-sized ones vanish.

Every connection would open there and then hang, so that no flow of such a pair is a pass.
"""

from __future__ import annotations

import asyncio

from netprobe.errors import AgentError
from netprobe.model.evidence import PathMtu
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.chance import Chance
from netprobe.probe.flows.mtu_ladder import MtuLadder, MtuProbe
from netprobe.probe.flows.prober import Observation, source_address

Pair = tuple[str, str]


class PathWidths:
    """Sends full-sized segments both ways, once for each source and address of a destination."""

    def __init__(self, fleet: Fleet, chance: Chance) -> None:
        self._fleet = fleet
        self._chance = chance
        self._measuring: dict[Pair, asyncio.Task[PathMtu | None]] = {}

    def begin(self, seen: Observation) -> None:
        """Start to measure the pair of a TCP flow that our listener answered, once."""
        pair = seen.task.pair
        if pair not in self._measuring:
            self._measuring[pair] = asyncio.create_task(self._measure_pair(seen))

    def is_wide(self, pair: Pair) -> bool:
        """Tell whether it is known by now that full-sized segments get through."""
        task = self._measuring.get(pair)
        return task is not None and task.done() and not task.cancelled() and task.result() is None

    async def find(self, seen: Observation) -> PathMtu | None:
        """Give what the path of such a flow carries; None where that is enough."""
        self.begin(seen)
        return await self._measuring[seen.task.pair]

    def close(self) -> None:
        """Stop measuring."""
        for task in self._measuring.values():
            task.cancel()

    async def _measure_pair(self, seen: Observation) -> PathMtu | None:
        task, port = seen.task, seen.ports[0][0]
        way = MtuProbe("nonce", "tcp", port, seen.part.mode, seen.part.template)
        ladder = MtuLadder(task, way, self._fleet, self._chance, None)
        agent = self._fleet.agent(task.source)
        try:
            needed = (await agent.route(task.address, source_address(task))).dev_mtu
            found = None if needed is None else await ladder.measure(needed)
        except AgentError:
            # Where nobody asks for the source any more, what it saw before stands.
            return ladder.doubt()
        return found if found and found.path != found.needed else None
