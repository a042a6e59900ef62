"""Whether something drops the first SYN of every connection and lets the second one through.

Loss drops first SYNs, too, but not all of them. So a flow that opened late is asked from fresh
source ports: by loss alone as many of the first SYNs would get through as of the second ones.

What follows: a warning, if each of 24 more connects starts a second late.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from msgspec.structs import replace

from netprobe.agent.wire.questions import UNKNOWN_MS
from netprobe.model import ports as port_sets
from netprobe.model.notes import SlowStartNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ROUND_TRIPS, Timing

# By loss alone fewer than 1 in 10,000 flows look so where a third of all connects gets lost, and
# fewer than 1 in 300 where half of them do. A firewall may know some source ports from before.
CONNECTS, MOST_QUICK, LEAST_REPEATED = 24, 5, 6


class SlowStarts(Check):
    """Connects again, several times at once, to what opened by a repeated SYN."""

    name = "slow-start"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """Connections that a repeated SYN opened."""
        return seen.opened_late and seen.task.via is None and not seen.task.denied

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask each flow of a pair."""
        if scene.prober.wanted_looks == 1:
            return group
        looked = await asyncio.gather(*(self._ask_flow(seen, scene) for seen in group))
        return [piece for pieces in looked for piece in pieces]

    async def _ask_flow(self, seen: Observation, scene: Scene) -> list[Observation]:
        """Give the flow, cut into ports with a slow start and others."""
        look_ms = UNKNOWN_MS + round(
            ROUND_TRIPS * (scene.prober.answered.fastest_ms(*seen.task.pair) or 0)
        )
        look = Timing(look_ms, look_ms, 1)
        found = await asyncio.gather(*(scene.prober.again(seen, look) for _ in range(CONNECTS)))
        pieces = [piece for some in found for piece in some]
        slow = _find_slow(pieces, seen.ports)
        note = SlowStartNote(CONNECTS, port_sets.text(slow))
        return [
            replace(one, slow_start=is_slow).noting(self.name, note, "bad" if is_slow else "ok")
            for is_slow, one in seen.cut(slow)
        ]


def _find_slow(pieces: list[Observation], ports: Ports) -> Ports:
    """Find the ports to which hardly any first SYN got through, and enough second ones did."""
    quick: Counter[int] = Counter()
    repeated: Counter[int] = Counter()
    for piece in pieces:
        if piece.outcome is not None and not piece.silent:
            opened = repeated if piece.opened_late else quick
            opened.update(port_sets.each(piece.ports))
    return port_sets.normalise(
        (port, port)
        for port in port_sets.each(ports)
        if quick[port] <= MOST_QUICK and repeated[port] >= LEAST_REPEATED
    )
