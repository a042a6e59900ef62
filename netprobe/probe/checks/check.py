"""Defines follow-up checks, and runs them in one loop.

A check looks again at some flows of one destination, after their first probes. It never changes
what was measured: its conclusions are fields of their own, and only the judge says what they mean.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import FAULT, AgentError, bug_words
from netprobe.model.story import TrailEntry
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.listeners import Origins, Round
from netprobe.probe.flows.mtu_ladder import PathWidths
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.room import gather_some

# What a check may need: an agent at the destination (its round of listeners), or none there.
Need = Literal["agent", "no-agent"]


class Scene(Struct, frozen=True):
    """One destination while its flows are checked. ``round`` is None without an agent there;
    ``is_recorded``: its recorder ran before their first packet."""

    fleet: Fleet
    agent: AgentMethods
    prober: Prober
    origins: Origins
    widths: PathWidths
    round: Round | None = None
    is_recorded: bool = True

    def meets(self, need: Need | None) -> bool:
        """Tell whether the scene has what a check needs."""
        return need is None or (need == "agent") == (self.round is not None)


class Check(ABC):
    """A follow-up look. ``name`` is what the trail calls it."""

    name: ClassVar[str]
    needs: ClassVar[Need | None] = None
    # Whether the flows mean nothing without it: then a bug of an agent is the loss of that agent.
    vital: ClassVar[bool] = False
    # Whether it probes our listeners: then the loss of the destination's agent spoils what it saw.
    probes_listeners: ClassVar[bool] = False

    @abstractmethod
    def concerns(self, seen: Observation) -> bool:
        """Whether the check looks at this flow, or needs to know of it."""

    def group(self, seen: Observation) -> Hashable:
        """Flows with one key are looked at together: those of one source and address."""
        return seen.task.pair

    def is_due(self, group: list[Observation], scene: Scene) -> bool:
        """Tell whether a group needs a look; of one that needs none nothing is asked."""
        return True

    @abstractmethod
    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Look at one group, and give it back with what was found.

        Raises AgentError where an agent is gone; then the group stays as it was.
        """


async def run_checks(
    checks: Sequence[Check], seen: list[Observation], scene: Scene
) -> list[Observation]:
    """Run one check after the other over all flows of a destination.

    Raises AgentError where the loss of the destination's own agent spoils what was seen.
    """
    for check in checks:
        if scene.meets(check.needs):
            seen = await apply_check(check, seen, scene)
    return seen


async def apply_check(check: Check, seen: Iterable[Observation], scene: Scene) -> list[Observation]:
    """Run one check; its groups are looked at side by side."""
    found: list[Observation] = []
    concerned: list[Observation] = []
    for one in seen:
        (concerned if check.concerns(one) else found).append(one)
    if not concerned:
        return found
    due: list[list[Observation]] = []
    for group in group_by(concerned, check.group):
        if check.is_due(group, scene):
            due.append(group)
        else:
            found += group
    looked = await gather_some([partial(_look_at_group, check, some, scene) for some in due])
    return found + [one for group in looked for one in group]


def group_by(
    seen: Iterable[Observation], key: Callable[[Observation], Hashable]
) -> list[list[Observation]]:
    """Give the flows that have the same key, together."""
    groups: dict[Hashable, list[Observation]] = {}
    for one in seen:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


async def _look_at_group(check: Check, group: list[Observation], scene: Scene) -> list[Observation]:
    began_s = time.monotonic()
    about = f"at {scene.agent.host.name}"
    try:
        with scene.fleet.phases.during("second looks", about):
            found = await check.look(group, scene)
    except AgentError:
        spoiled = check.vital or (check.probes_listeners and not scene.agent.alive)
        if scene.round is not None and spoiled:
            raise
        return group  # what was seen before stands as it is
    except Exception as error:
        return await _look_apart(check, group, scene, error)
    elapsed_ms = round((time.monotonic() - began_s) * 1000)
    before = {id(one) for one in group}
    return [one if id(one) in before else _note_time(one, check, elapsed_ms) for one in found]


async def _look_apart(
    check: Check, group: list[Observation], scene: Scene, error: Exception
) -> list[Observation]:
    """Look again at each source by itself: what one agent says must not take others' flows along.

    The flows that this check cannot look at are untested: what it would have found is not known.
    """
    by_source = group_by(group, lambda one: one.task.source.name)
    if len(by_source) > 1:
        looked = await asyncio.gather(*(_look_at_group(check, some, scene) for some in by_source))
        return [one for some in looked for one in some]
    untested = (FAULT, f"the check {check.name} failed ({bug_words(error)})")
    return [replace(one, outcome=None, untested=untested) for one in group]


def _note_time(one: Observation, check: Check, elapsed_ms: int) -> Observation:
    """Give the flow with the check's entry at the end of its trail, and how long the look took."""
    trail = one.trail
    if not trail or trail[-1].name != check.name:
        trail = (*trail, TrailEntry(check.name))
    return replace(one, trail=(*trail[:-1], replace(trail[-1], elapsed_ms=elapsed_ms)))
