"""Silent flows whose answers were made, or came, when their source waited no longer.

They are asked once more, with a longer wait. If the answers are late again, no firewall stopped
them: the judge says that a machine is too busy.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from netprobe.agent.wire.failures import HUNG_UP
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.silence import is_silent
from netprobe.probe.flows.prober import Observation


def came_late(seen: Observation) -> bool:
    """Tell whether an answer came to the source's interface after the source had given up."""
    return is_silent(seen) and seen.story is not None and seen.story.source_in.seen == "yes"


def was_made_late(seen: Observation) -> bool:
    """Tell whether our listener had an answer ready when the source had ended the connection."""
    witness = seen.witness
    return is_silent(seen) and witness is not None and witness.reply_failure in HUNG_UP


async def wait_longer(late: list[Observation], scene: Scene) -> list[Observation]:
    """Ask flows again with a longer wait; where an agent is lost, what was seen before stands."""
    asked = await asyncio.gather(*(scene.prober.again(seen) for seen in late))
    return [
        one if one.outcome is not None else replace(seen, ports=one.ports)
        for seen, again in zip(late, asked, strict=True)
        for one in again
    ]
