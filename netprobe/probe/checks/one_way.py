"""Sends one-way packets again, with long timeouts, where the listener has not seen them.

Nobody answers VXLAN and similar protocols. Waiting for silence would cost every pair of hosts two
timeouts, although the listener knows at once what arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from netprobe.model.notes import SilenceNote
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import Timing

# Two looks of three packets each, beside the first three.
AGAIN = Timing(500, 500, 2)


class OneWay(Check):
    """Sends one-way packets again that did not reach the listener."""

    name = "one-way"
    needs = "agent"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """One-way packets without an error that the listener has not seen."""
        outcome, witness = seen.outcome, seen.witness
        if outcome is None or outcome.failure is not None or outcome.answer is not None:
            return False
        return seen.part.one_way and witness is not None and not witness.socket

    def group(self, seen: Observation) -> Hashable:
        """All at once: one question to the listeners tells of all."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Send them again, and ask the listeners what came."""
        assert scene.round is not None
        again = await asyncio.gather(*(_ask_again(seen, scene) for seen in group))
        found = await with_witnesses([one for some in again for one in some], scene.round)
        loss = round(scene.prober.chance.loss, 3)
        return [self._note_looks(one, loss) for one in found]

    def _note_looks(self, one: Observation, loss: float) -> Observation:
        if one.outcome is None:
            return one
        looks = one.outcome.packets or one.outcome.attempts
        return one.noting(self.name, SilenceNote(looks, loss))


async def _ask_again(seen: Observation, scene: Scene) -> list[Observation]:
    again = await scene.prober.again(seen, AGAIN)
    return [one.counting(seen.outcome) for one in again]
