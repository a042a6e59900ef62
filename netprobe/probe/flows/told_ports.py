"""What a run that is stopped half-way knows of its flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from netprobe.model import ports as port_sets
from netprobe.model.evidence import Outcome
from netprobe.model.ports import Ports
from netprobe.probe.agents.templates import EMPTY
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.listeners import UNKNOWN
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import STOPPED, Task, TaskKey
from netprobe.protocols import protocol_for

UNCHECKED = "the run was stopped before what came was checked: {}"


def interrupted(
    tasks: Iterable[Task], proven: Iterable[Observation], unchecked: Iterable[Observation] = ()
) -> list[Observation]:
    """Keep what is proven of tasks that were stopped half-way, and mark the rest as stopped.

    ``unchecked`` is what came and needs a further look: the mark says what it was.
    """
    kept: dict[TaskKey, Ports] = {}
    found = []
    for one in proven:
        # A check may have asked a port again that had answered already.
        known = kept.get(one.task.key)
        fresh = port_sets.subtract(one.ports, known or ())
        if fresh or known is None:
            kept[one.task.key] = port_sets.union((known or (), fresh))
            found.append(replace(one, ports=fresh))
    heard: dict[TaskKey, list[Observation]] = {}
    for one in unchecked:
        heard.setdefault(one.task.key, []).insert(0, one)
    for task in tasks:
        if task.ports or task.key not in kept:
            rest = port_sets.subtract(task.ports, kept.get(task.key, ()))
            found += _mark_stopped(task, rest, heard.get(task.key, ()))
    return found


def _mark_stopped(task: Task, rest: Ports, heard: Iterable[Observation]) -> Iterator[Observation]:
    """Mark what is not proven of a task; the latest answer of each port counts."""
    for one in heard:
        fresh = port_sets.intersect(rest, one.ports)
        if one.outcome is not None and (fresh or not task.ports):
            words = UNCHECKED.format(_word_outcome(one.outcome))
            yield unprobed(task, fresh, untested=(STOPPED[0], words))
            rest = port_sets.subtract(rest, fresh)
            if not task.ports:
                return
    if rest or not task.ports:
        yield unprobed(task, rest, untested=STOPPED)


def _word_outcome(outcome: Outcome) -> str:
    if outcome.icmp is not None:
        return f"{outcome.icmp.word} from {outcome.icmp.offender}"
    if outcome.answer == "unasked":
        return "it opened" if outcome.operation == "connect" else "something answered"
    return outcome.said or outcome.answer or outcome.failure or "something came"


def unprobed(task: Task, ports: Ports, **facts: Any) -> Observation:
    """Make the observation of ports to which nothing was sent."""
    part = Part(task, ports, ((ports, UNKNOWN),), protocol_for(None), "connect", EMPTY, False)
    return Observation(task, part, ports, 0, outcome=None, listener=UNKNOWN, **facts)
