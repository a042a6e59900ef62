"""Which ports of which flows have been told already; each is told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.flows.prober import Observation, unprobed
from netprobe.probe.flows.work import STOPPED, Task, TaskKey


def interrupted(tasks: Iterable[Task], proven: Iterable[Observation]) -> list[Observation]:
    """Keep what is proven of tasks that were stopped half-way, and mark the rest as stopped."""
    kept: dict[TaskKey, Ports] = {}
    # A check may have asked a port again that had answered already.
    found = []
    for one in cut_known(proven, kept):
        note_ports(one, kept)
        found.append(one)
    for task in tasks:
        flow = task.key
        rest = port_sets.subtract(task.ports, kept.get(flow, ()))
        if rest or not (task.ports or flow in kept):
            found.append(unprobed(task, rest, untested=STOPPED))
    return found


def cut_known(seen: Iterable[Observation], known: Mapping[TaskKey, Ports]) -> Iterator[Observation]:
    """Give the observations without the ports of their flows that are known already."""
    for one in seen:
        flow = one.task.key
        if flow not in known:
            yield one
        elif rest := port_sets.subtract(one.ports, known[flow]):
            yield replace(one, ports=rest)


def note_ports(seen: Observation, known: dict[TaskKey, Ports]) -> None:
    """Note the ports of this flow as told."""
    flow = seen.task.key
    known[flow] = port_sets.union((known.get(flow, ()), seen.ports))
