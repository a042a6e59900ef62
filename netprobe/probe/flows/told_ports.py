"""What a run that is stopped half-way knows of its flows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.flows.prober import Observation, unprobed
from netprobe.probe.flows.work import STOPPED, Task, TaskKey


def interrupted(tasks: Iterable[Task], proven: Iterable[Observation]) -> list[Observation]:
    """Keep what is proven of tasks that were stopped half-way, and mark the rest as stopped."""
    kept: dict[TaskKey, Ports] = {}
    found = []
    for one in proven:
        # A check may have asked a port again that had answered already.
        known = kept.get(one.task.key)
        fresh = port_sets.subtract(one.ports, known or ())
        if fresh or known is None:
            kept[one.task.key] = port_sets.union((known or (), fresh))
            found.append(replace(one, ports=fresh))
    for task in tasks:
        flow = task.key
        rest = port_sets.subtract(task.ports, kept.get(flow, ()))
        if rest or not (task.ports or flow in kept):
            found.append(unprobed(task, rest, untested=STOPPED))
    return found
