"""Looks that met a pause at the other end: an agent that stands still answers nothing."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.errors import AgentError
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.room import gather_all
from netprobe.probe.settings import LOOK_S, Timing

# A look that is repeated has so much more time than an answer takes: a shorter pause hides none.
SPARE_S = LOOK_S
# A busy machine lets a process wait for less; a kernel answers meanwhile.
MACHINE_STILL_S = 1.0
# The packets of a look leave in so much of it, and in this time (``agent.probers.datagram.orders``;
# a kernel repeats a SYN after a second): what stands still for as long may miss them all.
SENT_PART, SENT_S = 0.4, 1.0
# Round trips of a busy machine say little of the network: no answer takes more.
MOST_ANSWER_S = LOOK_S
# A machine that is busy now may be idle half a minute later.
MOST_REPEATS = 3


class PatientProber(Prober):
    """Repeats a look where a pause of the destination's agent, of the stream to it or of this
    process could have hidden the answer, or the source says that one of its own did.

    A kernel answers while its agents stand still: it is asked once more, and its silence counts.
    What a listener of ours answers is asked until a look meets no pause; after ``MOST_REPEATS``
    nothing is known of it. Where the user says how many looks there are, no others make up for one
    whose packets a machine missed that stood still for a moment.
    """

    async def part(
        self, part: Part, timing: Timing | None = None, sport: int | None = None
    ) -> list[Observation]:
        """Run one order, and again what a pause may have hidden."""
        began_s = asyncio.get_running_loop().time()
        found = await super().part(part, timing, sport)
        shortest_ms = min(timing.first_ms or timing.look_ms, timing.look_ms) if timing else 0
        few = self.wanted_looks is not None and self._settings.places
        hidden = await self._find_hidden(found, began_s, shortest_ms / 1000, few=few)
        return await self._repeat_looks(found, hidden, sport)

    async def _repeat_looks(
        self, found: list[Observation], hidden: list[Observation], sport: int | None, count: int = 1
    ) -> list[Observation]:
        """Ask the hidden ones among these again, for the ``count``-th time."""
        again = await gather_all(self._repeat_look(one, sport, count) for one in hidden)
        rest = [one for one in found if not any(one is other for other in hidden)]
        return rest + [one for some in again for one in some]

    async def _repeat_look(
        self, seen: Observation, sport: int | None, count: int
    ) -> list[Observation]:
        began_s = asyncio.get_running_loop().time()
        part = seen.part.restrict(seen.task, seen.ports, seen.listener)
        look_s = SPARE_S + self.measure_answer_s(seen.task, MOST_ANSWER_S)
        look_ms = round(look_s * 1000)
        looks = await super().part(part, Timing(look_ms, look_ms, 1), sport)
        found = [replace(one, trail=seen.trail + one.trail, earlier=seen.orders) for one in looks]
        hidden = await self._find_hidden(found, began_s, look_s)
        missed = [one for one in hidden if _is_of_listener(one) or _is_spoilt(one)]
        if count < MOST_REPEATS:
            return await self._repeat_looks(found, missed, sport, count + 1)
        return [_mark_missed(one) if any(one is it for it in missed) else one for one in found]

    async def _find_hidden(
        self, found: list[Observation], began_s: float, look_s: float, *, few: bool = False
    ) -> list[Observation]:
        """Find the flows whose answer a pause since then could have hidden: what is left of their
        shortest look without it is shorter than an answer takes. An order may have had many looks,
        and may have waited: only what a pause took of one of them counts. ``few``: also where it
        could have hidden the packets of a look."""
        hidden = [one for one in found if _is_spoilt(one)]
        still_s = 0.0 if few else MACHINE_STILL_S
        for is_hidden_kind, least_s in ((_is_of_listener, 0.0), (_is_of_kernel, still_s)):
            silent = [one for one in found if is_hidden_kind(one)]
            there = silent and self._fleet.agent(silent[0].task.wants[0].flow.destination)
            if not there or not there.alive:
                continue
            must_s = self.measure_answer_s(silent[0].task, MOST_ANSWER_S)
            whole_s = max(look_s, must_s)
            about = f"for the agent of {there.host.name}"
            try:
                with self._fleet.phases.during("waiting", about):
                    lost_s = await there.count_lost(began_s, whole_s, least_s)
            except AgentError:
                return []  # who works on the destination learns of it, too
            spare_s = whole_s - must_s
            most_s = min(spare_s, SENT_PART * whole_s, SENT_S) if few else spare_s
            hidden += silent if lost_s > most_s else ()
        return hidden


def _is_spoilt(seen: Observation) -> bool:
    """Tell whether the source itself stood still while it looked, twice."""
    return seen.outcome is not None and seen.outcome.failure == STOOD_STILL


def _is_of_kernel(seen: Observation) -> bool:
    """Tell whether a kernel should have answered, and did not: it answers a SYN and an echo request
    unless its whole machine stands still."""
    return seen.silent and seen.task.protocol in ("tcp", "icmp")


def _is_of_listener(seen: Observation) -> bool:
    """Tell whether a listener of ours should have answered, and did not."""
    if not seen.part.ours or seen.part.one_way:
        return False
    return seen.unanswered or (seen.silent and seen.task.protocol not in ("tcp", "icmp"))


def _mark_missed(seen: Observation) -> Observation:
    assert seen.outcome is not None
    return replace(seen, outcome=replace(seen.outcome, failure=STOOD_STILL, answer=None))
