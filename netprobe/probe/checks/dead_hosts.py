"""A router's "host unreachable" that came early, or late: a firewall's word, or a dead host's?

A router gives up a dead neighbour after 3 s and then answers everything that waited: who asks while
somebody else's packets already wait hears it early, as from a firewall that rejects. A firewall
answers each packet at once, whenever it is asked, and is often about one port only; but where the
router answers others already, or is starved, its word comes late, as for a dead host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome
from netprobe.model.ports import Ports
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.suspects import CONTROL_PORTS
from netprobe.probe.flows.prober import Prober, Sighting
from netprobe.probe.flows.reachability import DEAD_MS, REFUSED_MS, is_answer, is_host_unreachable
from netprobe.probe.flows.work import Task

# The router's bucket of answers is full again after six seconds (network-facts section 4).
REFILL_S = 6.5
LOOK_MS = 4000
TRIES = 3
# Linux repeats a SYN every second at first (before 6.5: after 1 s and 3 s); a neighbour is given
# up after 3 s.
SYN_AGAIN_MS = 1000
SYN_WORD_MS = 200
GIVEN_UP_MS = 2500


class DeadHosts:
    """Checks one destination's "host unreachable" answers; of each pair one flow stands for all."""

    def __init__(self, fleet: Fleet, prober: Prober) -> None:
        self._fleet = fleet
        self._prober = prober

    async def check(self, sightings: list[Sighting]) -> list[Sighting]:
        """The sightings; a dead host's answer has the time of one, and a refusal its own."""
        words = [one for one in sightings if _is_routers_word(one)]
        early = {_pair(one): one for one in reversed(words) if _elapsed_ms(one) < DEAD_MS}
        late = {_pair(one): one for one in reversed(words) if _pair(one) not in early}
        verdicts = await asyncio.gather(
            *(self._is_dead(one.task) for one in early.values()),
            *(self._is_no_refusal(one) for one in late.values()),
        )
        dead = dict(zip((*early, *late), verdicts, strict=True))
        heard = {id(one) for one in words}
        return [_timed(one, dead[_pair(one)]) if id(one) in heard else one for one in sightings]

    async def _is_no_refusal(self, sighting: Sighting) -> bool:
        """Ask a flow again while nothing else is out: a firewall refuses it at once, each time."""
        ports = sighting.ports and ((sighting.ports[0][0], sighting.ports[0][0]),)
        await self._fleet.agent(sighting.task.source).quiet()
        await asyncio.sleep(REFILL_S)
        for _ in range(TRIES):
            again = await self._prober.again(replace(sighting, ports=ports))
            if not all(_is_routers_word(one) and _elapsed_ms(one) < REFUSED_MS for one in again):
                return True
        return False

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


def _pair(sighting: Sighting) -> tuple[str, str]:
    return (sighting.task.source.name, sighting.task.address)


def _is_routers_word(sighting: Sighting) -> bool:
    """A router's "host unreachable", where no listener of ours shows that the host is up."""
    outcome = sighting.outcome
    return (
        outcome is not None
        and sighting.listener.state != "ours"
        and outcome.icmp is not None
        and outcome.icmp.origin == "router"
        and is_host_unreachable(outcome)
    )


def _elapsed_ms(sighting: Sighting) -> int:
    return (sighting.outcome and sighting.outcome.elapsed_ms) or 0


def _waited(outcome: Outcome) -> bool:
    """Whether the word kept us waiting, as a dead host's does."""
    elapsed_ms = outcome.elapsed_ms or 0
    # Just after a repeated SYN it may be a refusal for which the first one found no answer left.
    repeated = outcome.operation == "connect" and elapsed_ms % SYN_AGAIN_MS <= SYN_WORD_MS
    return is_host_unreachable(outcome) and elapsed_ms >= (GIVEN_UP_MS if repeated else REFUSED_MS)


def _timed(sighting: Sighting, dead: bool) -> Sighting:
    """The sighting with a time that tells what it is."""
    assert sighting.outcome is not None
    known_ms = (
        max(DEAD_MS, _elapsed_ms(sighting)) if dead else min(REFUSED_MS - 1, _elapsed_ms(sighting))
    )
    return replace(sighting, outcome=replace(sighting.outcome, elapsed_ms=known_ms))
