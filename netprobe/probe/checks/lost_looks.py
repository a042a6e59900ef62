"""Silent flows whose recorders show that no rule stops them: packets get lost."""

from __future__ import annotations

import asyncio

from netprobe.model.story import Story
from netprobe.probe.checks.check import Scene, group_by
from netprobe.probe.checks.silence import Silence, is_silent
from netprobe.probe.flows.prober import Observation


def _count_lost(seen: Observation) -> tuple[int, int]:
    """Count the packets that came through on the way there and back, and those that got lost.

    A rule stops all of them, or none.
    """
    story = seen.story or Story()
    came = lost = 0
    for left, right in (
        (story.source_out, story.destination_in),
        (story.destination_out, story.source_in),
    ):
        if left.seen == right.seen == "yes":
            came += right.count
            lost += max(0, left.count - right.count)
    return came, lost


def shows_loss(seen: Observation) -> bool:
    """Tell whether only some of a silent flow's requests came, or of their answers."""
    return is_silent(seen) and _count_lost(seen)[1] > 0


async def ask_lossy(lossy: list[Observation], scene: Scene) -> list[Observation]:
    """Ask silent flows again whose recorders show that only some of their packets came."""
    for came, lost in map(_count_lost, lossy):
        scene.prober.chance.note_answered(came)
        # What gets lost on the way there may get lost on the way back as well.
        scene.prober.chance.note_lost(2 * lost)
    groups = group_by(lossy, lambda seen: seen.task.protocol)
    asked = await asyncio.gather(*(Silence().look(group, scene) for group in groups))
    return [one for some in asked for one in some]
