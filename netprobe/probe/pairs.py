"""Probes the flows between one source and one address; of a dead host only a few."""

from __future__ import annotations

import asyncio
from functools import partial

from netprobe.probe.checks import DOWN, PART_CHECKS, SCOUT_CHECKS
from netprobe.probe.checks.check import Scene, run_checks
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.rationed import probe_part
from netprobe.probe.flows.room import gather_some
from netprobe.probe.flows.scouts import Scouts


async def probe_pair(parts: list[Part], scene: Scene) -> list[Observation]:
    """Probe the parts of one pair; where nobody vouches for the host, a few flows go first."""
    scouts = None if scene.agent.alive else Scouts(parts, scene.prober)
    if scouts is None or not scouts.first:
        found = await gather_some([partial(_probe_part, part, scene) for part in parts])
        return [seen for some in found for seen in some]
    if await scouts.are_dead():
        scouts.seen = await run_checks(SCOUT_CHECKS, scouts.conclude(), scene)
        if all(seen.concluded in DOWN for seen in scouts.seen):
            return [*scouts.seen, *scouts.stand_for_rest(scouts.seen[0])]
    found = await asyncio.gather(
        _follow_scouts(scouts, scene), *(_probe_part(part, scene) for part in scouts.rest)
    )
    return [seen for some in found for seen in some]


async def _follow_scouts(scouts: Scouts, scene: Scene) -> list[Observation]:
    """Wait for the scouts of a host that lives, and ask again what stayed silent."""
    return await run_checks(PART_CHECKS, await scouts.wait(), scene)


async def _probe_part(part: Part, scene: Scene) -> list[Observation]:
    """Probe, and ask again what stayed silent: no other source has to be waited for."""
    return await run_checks(PART_CHECKS, await probe_part(part, scene.prober), scene)
