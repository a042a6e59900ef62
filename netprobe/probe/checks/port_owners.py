"""Asks again which process holds a port, after the port refused a probe.

A round begins with a look at all holders. If a service ends between that look and the probe, its
own kernel refuses the probe, as a firewall would. A holder that is there before and after the
probe rules this out.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.listeners import Round, spots
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import Task

CHANGED = (
    "holder-changed",
    "refused, but who holds the port on {name} changed with every look: a service that starts and "
    "ends, or another run of netprobe there",
)


class Checked(Struct, frozen=True):
    """The observations that stand, and those whose port has another holder now, or none."""

    standing: list[Observation]
    moved: list[Observation]


async def check_holders(
    fleet: Fleet, agent: AgentMethods, observations: Iterable[Observation]
) -> Checked:
    """Ask a destination's agent again, and tell the refusals apart whose holder has gone."""
    checked = Checked([], [])
    doubtful: list[Observation] = []
    for one in observations:
        (doubtful if _is_refused(one) else checked.standing).append(one)
    if not doubtful:
        return checked
    round_ = Round(agent, next(fleet.order_ids))
    try:
        now = await round_.held(spots(_task_of(one) for one in doubtful))
    except AgentError:
        # Nobody can tell; the ports are probed again, as those of a host without an agent.
        return Checked(checked.standing, doubtful)
    for one in doubtful:
        for ports, listener, _ in now.split(_task_of(one)):
            same = listener.owner == one.listener.owner
            (checked.standing if same else checked.moved).append(replace(one, ports=ports))
    return checked


def tasks_of(observations: Iterable[Observation]) -> list[Task]:
    """Collect the tasks to probe again, each flow once."""
    found: dict[tuple[object, ...], Task] = {}
    for one in observations:
        task = _task_of(one)
        key = (task.source.name, task.address, task.protocol, task.probe, task.server_name)
        known = found.get(key)
        ports = port_sets.normalise((*known.ports, *task.ports)) if known else task.ports
        found[key] = replace(task, ports=ports)
    return list(found.values())


def undecided(seen: Observation, name: str) -> Observation:
    """Give the refusal as untested: it proves nothing while the holder of the port changes."""
    reason, words = CHANGED
    return replace(seen, outcome=None, untested=(reason, words.format(name=name)))


def _is_refused(seen: Observation) -> bool:
    """Tell whether a port that somebody holds was refused as the kernel refuses a free one."""
    outcome = seen.heard
    if outcome is None or seen.listener.state != "live":
        return False
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination"
    return outcome.failure == "refused"


def _task_of(seen: Observation) -> Task:
    return replace(seen.task, ports=seen.ports)
