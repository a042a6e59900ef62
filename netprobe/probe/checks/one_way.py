"""One-way packets: what the listener has not seen after a short look is sent again, unhurried.

Nothing answers VXLAN and its like, so that waiting for silence would cost every pair of hosts two
looks, although the listener knows at once what came.
"""

from __future__ import annotations

import asyncio

from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Prober, Sighting


async def with_one_way(sightings: list[Sighting], prober: Prober, round_: Round) -> list[Sighting]:
    """The sightings, those of unseen packets replaced. Raises AgentError without a listener."""
    missing = [sighting for sighting in sightings if _is_missing(sighting)]
    if not missing:
        return sightings
    again = await asyncio.gather(*(prober.unhurried(sighting) for sighting in missing))
    found = await with_witnesses([sighting for some in again for sighting in some], round_)
    return [sighting for sighting in sightings if not _is_missing(sighting)] + found


def _is_missing(sighting: Sighting) -> bool:
    outcome, witness = sighting.outcome, sighting.witness
    if outcome is None or outcome.failure is not None or outcome.answer is not None:
        return False
    return sighting.part.one_way and witness is not None and not witness.socket
