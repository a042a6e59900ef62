"""Whether one link of a bundle (ECMP, LAG) drops what it gets: some source ports fail every time.

What is answered only at a later look, from another source port, looks like loss. Routers and bonds
choose the link by a hash over addresses and ports, so a bad link stops the same source ports again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from netprobe.agent.wire.questions import UNKNOWN_MS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion
from netprobe.model.notes import BundleNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.checks.genuine import RANGE_SAMPLE, choose_sample
from netprobe.probe.checks.silence import LEAST_LOOK_MS
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ROUND_TRIPS, Timing

# With a quarter of them failing, a hundredth of all bundles would go unnoticed.
SOURCE_PORTS = 16
# Below the ports that Linux gives to connects by itself.
FIRST_PORT, LAST_PORT = 20000, 29999
# Ports that failed are asked so often again. Who passes does so at the first look: by loss alone
# fewer than 1 in 1,000 samples look so, whatever the loss is.
LOOKS = 6


class Bundles(Check):
    """Asks from a few source ports, and from the same ones again."""

    name = "bundle"
    needs = "agent"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """Flows to our listeners that were answered late; and silent datagrams, all of which came
        from one or two source ports."""
        outcome = seen.outcome
        if outcome is None or seen.conclusion is not None or seen.task.via is not None:
            return False
        if seen.part.mode != "nonce" or seen.listener.state != "ours" or not seen.ports:
            return False
        late = outcome.answer == "nonce" and outcome.attempts > 1
        return late or (seen.silent and seen.task.protocol == "udp")

    def group(self, seen: Observation) -> Hashable:
        """The flows that one hash spreads over the links."""
        return (*seen.task.pair, seen.task.protocol)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask one flow of the group, a late one where there is one; then those that are silent."""
        if scene.prober.wanted_looks == 1:
            return group
        seen = min(group, key=lambda one: one.silent)
        chosen = replace(seen, ports=(((seen.ports[0][0],) * 2),))
        first = _choose_first(chosen, scene.fleet.key)
        sports = range(first, first + SOURCE_PORTS)
        failed = await _find_failing(chosen, sports, 1, scene)
        if not failed or len(failed) == SOURCE_PORTS:
            return group
        # Those that failed go first: a limit of new connections would stop the others now.
        others = sorted(set(sports).difference(failed))
        if await _find_failing(chosen, [*failed, *others], LOOKS, scene) != failed:
            return group
        ports = port_sets.text(port_sets.normalise((port, port) for port in failed))
        said = f"{len(failed)} of {SOURCE_PORTS} source ports fail every time ({ports})"
        conclusion = CheckConclusion("bad-link", said)
        note = BundleNote(len(failed))
        # One after the other: each takes the same source ports.
        return [
            piece if is_stopped else
            replace(piece, conclusion=conclusion).noting(self.name, note, "bad")
            for one in group
            for is_stopped, piece in one.cut(await _find_stopped(one, sports, scene))
        ]  # fmt: skip


def _choose_first(seen: Observation, key: bytes) -> int:
    """Choose the first source port: one that differs from run to run, and not within a run."""
    flow = (*seen.task.pair, seen.task.protocol, seen.ports)
    seeded = random.Random(key + repr(flow).encode())  # it hides nothing
    return seeded.randrange(FIRST_PORT, LAST_PORT - SOURCE_PORTS)


async def _find_stopped(seen: Observation, sports: Sequence[int], scene: Scene) -> Ports:
    """Find the ports of a silent flow, or of a sample of it, that no source port gets through to:
    whatever stops those is no link."""
    if not seen.silent:
        return ()
    sample = replace(seen, ports=choose_sample(seen.ports, RANGE_SAMPLE))
    timing = _choose_timing(seen, 1, scene)
    found = await asyncio.gather(*(scene.prober.again(sample, timing, port) for port in sports))
    heard = port_sets.union(one.ports for some in found for one in some if not one.silent)
    return port_sets.subtract(sample.ports, heard)


async def _find_failing(
    seen: Observation, sports: Sequence[int], looks: int, scene: Scene
) -> list[int] | None:
    """Find the source ports that get no answer in so many looks; None where one needs several."""
    timing = _choose_timing(seen, looks, scene)
    found = await asyncio.gather(*(scene.prober.again(seen, timing, port) for port in sports))
    if any(_was_lost(some) for some in found):
        return None
    return sorted(
        port for port, some in zip(sports, found, strict=True) if all(one.silent for one in some)
    )


def _choose_timing(seen: Observation, looks: int, scene: Scene) -> Timing:
    slowest_ms = scene.prober.slowest_ms(seen.task)
    wait_ms = max(LEAST_LOOK_MS, round(ROUND_TRIPS * slowest_ms)) if slowest_ms else UNKNOWN_MS
    return Timing(wait_ms, wait_ms, looks)


def _was_lost(some: Iterable[Observation]) -> bool:
    """Tell whether an answer came only to a later look, or something else than an answer."""
    for one in some:
        if one.outcome is None or not (one.silent or one.outcome.answer == "nonce"):
            return True
        if one.outcome.answer == "nonce" and one.outcome.attempts > 1:
            return True
    return False
