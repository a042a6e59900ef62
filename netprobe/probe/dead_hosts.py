"""A router's "host unreachable" that came early: a firewall's word, or a dead host's?

A router gives up a dead neighbour after 3 s and then answers everything that waited: who asks while
somebody else's packets already wait hears it early, as from a firewall that rejects. A firewall
answers each packet at once, whenever it is asked, and is often about one port only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome
from netprobe.model.ports import Ports
from netprobe.probe.answered import DEAD_MS, REFUSED_MS, is_answer, is_host_unreachable
from netprobe.probe.sighting import Prober, Sighting
from netprobe.probe.suspects import CONTROL_PORTS
from netprobe.probe.work import Task

# The router's bucket of answers is full again after six seconds (network-facts section 4).
REFILL_S = 6.5
LOOK_MS = 4000
TRIES = 3


class DeadHosts:
    """Checks one destination's early "host unreachable" answers."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober

    async def check(self, sightings: list[Sighting]) -> list[Sighting]:
        """The sightings; what a dead host's answer is, has the time of one."""
        doubtful: dict[tuple[str, str], Task] = {}
        for sighting in sightings:
            if _is_early(sighting):
                pair = (sighting.task.source.name, sighting.task.address)
                doubtful.setdefault(pair, sighting.task)
        verdicts = await asyncio.gather(*(self._is_dead(task) for task in doubtful.values()))
        dead = {pair for pair, is_dead in zip(doubtful, verdicts, strict=True) if is_dead}
        return [
            _as_dead(sighting)
            if (sighting.task.source.name, sighting.task.address) in dead and _is_early(sighting)
            else sighting
            for sighting in sightings
        ]

    async def _is_dead(self, task: Task) -> bool:
        """Ask echo and a port that nobody needs, some times, with a full bucket at the router."""
        await asyncio.sleep(REFILL_S)
        try:
            for _ in range(TRIES):
                outcomes = await self._ask(task)
                if any(is_answer(one) or one.failure == "refused" for one in outcomes):
                    return False
                if any(_waited(one) for one in outcomes):
                    return True
        except AgentError:
            # The source is gone: its words stand as they were heard.
            return False
        return False

    async def _ask(self, task: Task) -> list[Outcome]:
        control: Ports = ((CONTROL_PORTS[0], CONTROL_PORTS[0]),)
        asked: Iterable[list[tuple[Ports, Outcome]]] = await asyncio.gather(
            self._prober.ask(task, "icmp", (), look_ms=LOOK_MS),
            self._prober.ask(task, "tcp", control, look_ms=LOOK_MS),
        )
        return [outcome for some in asked for _, outcome in some]


def _is_early(sighting: Sighting) -> bool:
    """A router's word that nothing else of this flow contradicts, sooner than a dead host takes."""
    outcome = sighting.outcome
    return (
        outcome is not None
        and sighting.listener.state != "ours"
        and outcome.icmp is not None
        and outcome.icmp.origin == "router"
        and is_host_unreachable(outcome)
        and (outcome.elapsed_ms or 0) < DEAD_MS
    )


def _waited(outcome: Outcome) -> bool:
    return is_host_unreachable(outcome) and (outcome.elapsed_ms or 0) >= REFUSED_MS


def _as_dead(sighting: Sighting) -> Sighting:
    assert sighting.outcome is not None
    return replace(sighting, outcome=replace(sighting.outcome, elapsed_ms=DEAD_MS))
