"""Asks UDP ports where no listener of ours answers: kernels send few ICMP errors a second.

What empties a kernel's bucket is its errors (net/ipv4/icmp.c: 6 to an address, then one a second).
So a few ports go first. Where nothing at all comes back from them, nothing is rationed: all others
are asked at once. Where something comes back, the pace of ``Part.paced`` keeps the bucket filled.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from netprobe.model import ports as port_sets
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import UDP_BURST, Timing


async def probe_tasks(
    tasks: Iterable[Task], listeners: Listeners, prober: Prober
) -> list[Observation]:
    """Probe all tasks at once; agents that are lost make their own tasks untested."""
    found = await gather_all(probe_part(part, prober) for part in prober.cut(tasks, listeners))
    return [seen for some in found for seen in some]


async def probe_part(part: Part, prober: Prober) -> list[Observation]:
    """Probe a part, as fast as its destination answers.

    Where an error comes from ports that were asked at once, it may have taken the place of others:
    the silent ones are asked again at the pace.
    """
    few, rest = _cut_first(part)
    if not rest.ports:
        return await prober.part(part)
    looks = prober.choose_timing(part)
    first = await prober.part(few, looks._replace(looks=1))
    silent = [one for one in first if one.lost]
    if len(silent) < len(first):
        again, others = await gather_all((_ask_again(silent, prober, looks), prober.part(rest)))
        return [*_drop_silent(first, silent), *again, *others]
    free = [replace(one, part=replace(one.part, paced=False)) for one in silent]
    unpaced = replace(rest, paced=False)
    again, others = await gather_all((_ask_again(free, prober, looks), prober.part(unpaced, looks)))
    found = [replace(one, part=replace(one.part, paced=True)) for one in (*again, *others)]
    silent = [one for one in found if one.lost]
    if len(silent) == len(found):
        return found
    return [*_drop_silent(found, silent), *await _ask_again(silent, prober, looks)]


def _cut_first(part: Part) -> tuple[Part, Part]:
    """Cut off as many ports as get their ICMP errors at once; the rest has none if few suffice."""
    if not part.paced:
        return part, replace(part, ports=())
    few = port_sets.normalise(
        (port, port) for port in islice(port_sets.each(part.ports), UDP_BURST)
    )
    return replace(part, ports=few), replace(part, ports=port_sets.subtract(part.ports, few))


async def _ask_again(
    silent: list[Observation], prober: Prober, timing: Timing
) -> list[Observation]:
    """Ask the silent ports once more; their looks so far count."""
    asked = await gather_all(prober.again(one, timing) for one in silent)
    return [
        later.counting(before.outcome)
        for before, some in zip(silent, asked, strict=True)
        for later in some
    ]


def _drop_silent(found: list[Observation], silent: list[Observation]) -> list[Observation]:
    return [one for one in found if not any(one is other for other in silent)]
