"""Looks that met a pause at the other end: an agent that stands still answers nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.errors import AgentError
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.settings import LEAST_LOOK_S, LOOK_S, ROUND_TRIPS, Timing

# A look that is repeated has so much time that a short pause hides no answer.
UNHURRIED = Timing(round(LOOK_S * 1000), round(LOOK_S * 1000), 1)


class PatientProber(Prober):
    """Repeats a look once where a pause of the destination's agent, of the stream to it or of this
    process could have hidden the answer of a listener of ours. Where the repeat met one too,
    nothing is known."""

    async def part(
        self, part: Part, timing: Timing | None = None, sport: int | None = None
    ) -> list[Observation]:
        """Run one order, and once more what a pause may have hidden."""
        began_s = asyncio.get_running_loop().time()
        found = await super().part(part, timing, sport)
        shortest_ms = min(timing.first_ms or timing.look_ms, timing.look_ms) if timing else 0
        hidden = await self._find_hidden(found, began_s, shortest_ms / 1000)
        again = await asyncio.gather(*(self._repeat_look(one, sport) for one in hidden))
        rest = [one for one in found if not any(one is other for other in hidden)]
        return rest + [one for some in again for one in some]

    async def _repeat_look(self, seen: Observation, sport: int | None) -> list[Observation]:
        began_s = asyncio.get_running_loop().time()
        part = seen.part.restrict(seen.task, seen.ports, seen.listener)
        found = await super().part(part, UNHURRIED, sport)
        hidden = await self._find_hidden(found, began_s, LOOK_S)
        return [
            replace(
                _mark_missed(one) if any(one is other for other in hidden) else one,
                trail=seen.trail + one.trail,
                earlier=seen.orders,
            )
            for one in found
        ]

    async def _find_hidden(
        self, found: list[Observation], began_s: float, look_s: float
    ) -> list[Observation]:
        """Find the flows whose answer a pause since then could have hidden: what is left of their
        shortest look without it is shorter than an answer takes. An order may have had many looks,
        and may have waited: only what a pause took of one of them counts."""
        silent = [one for one in found if _may_be_hidden(one)]
        if not silent:
            return []
        there = self._fleet.agent(silent[0].task.wants[0].flow.destination)
        slowest_s = (self.slowest_ms(silent[0].task) or 0.0) / 1000
        must_s = max(LEAST_LOOK_S, ROUND_TRIPS * slowest_s)
        look_s = max(look_s, must_s)
        try:
            lost_s = await there.count_lost(began_s, look_s)
        except AgentError:
            return []  # who works on the destination learns of it, too
        return silent if lost_s > look_s - must_s else []


def _may_be_hidden(seen: Observation) -> bool:
    """Tell whether a listener of ours should have answered, and did not; a SYN and an echo request
    are answered by the kernel, also while the agent stands still."""
    if not seen.part.ours or seen.part.one_way:
        return False
    return seen.unanswered or (seen.silent and seen.task.protocol not in ("tcp", "icmp"))


def _mark_missed(seen: Observation) -> Observation:
    assert seen.outcome is not None
    return replace(seen, outcome=replace(seen.outcome, failure=STOOD_STILL, answer=None))
