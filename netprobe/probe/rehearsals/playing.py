"""Plays what a plan rehearses, after all is probed: then no listener of the run holds a port.

A machine has a part in one tunnel at a time, and a port of it in one balancer; what has nothing to
do with each other goes on side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self

from msgspec.structs import replace

from netprobe.errors import AgentError, bug_words
from netprobe.model.evidence import Evidence, Outcome, RehearsedFacts
from netprobe.model.inventory import Host
from netprobe.model.plan import QUALITY, Plan, Skipped
from netprobe.model.ports import each
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.names import resolve_names
from netprobe.probe.flows.prober import find_source_address
from netprobe.probe.flows.room import gather_some
from netprobe.probe.flows.work import Want, addresses, family_of
from netprobe.probe.rehearsals.rehearsal import (
    NotPlayedError,
    PairRehearsal,
    Played,
    RowArrivals,
    SkipFlow,
    Stage,
    TogetherRehearsal,
)
from netprobe.probe.rehearsals.table import PLAYED

# The word of the rehearsal, and what flows share that are played together.
GroupKey = tuple[object, ...]
# What was seen, or what went wrong.
Shown = RehearsedFacts | Exception
PlayedFlow = Callable[[Want, list[Evidence]], None]


async def play_all(
    wants: Iterable[Want], fleet: Fleet, arrivals: RowArrivals, emit: PlayedFlow, skip: SkipFlow
) -> None:
    """Rehearse these flows; ``emit`` gets the evidence of each, ``skip`` what is left out on
    purpose, and how many ports.

    Ways are measured first: what else agents play would make them look worse.
    """
    wants = list(wants)
    measured = [want for want in wants if want.flow.block.rehearsal == QUALITY]
    rest = [want for want in wants if want.flow.block.rehearsal != QUALITY]
    for some in (measured, rest):
        if some:
            await _play_some(some, fleet, arrivals, emit, skip)


async def _play_some(
    wants: list[Want], fleet: Fleet, arrivals: RowArrivals, emit: PlayedFlow, skip: SkipFlow
) -> None:
    resolved = await resolve_names(wants, fleet)
    machines = Machines(fleet)
    stages = {
        want.order: list(_set_stages(want, addresses(want, resolved.addresses), fleet, arrivals))
        for want in wants
    }

    async def play_one(want: Want) -> None:
        found = resolved.evidence(want)
        for stage in stages[want.order]:
            found += _read_played(want, stage, await plays.play(stage), skip)
        want.ledger.is_final = True
        if found:
            emit(want, found)

    async with Plays(fleet, machines, [one for some in stages.values() for one in some]) as plays:
        await gather_some([partial(play_one, want) for want in wants])


def _set_stages(
    want: Want, found: Iterable[str], fleet: Fleet, arrivals: RowArrivals
) -> Iterator[Stage]:
    for address in found:
        source_address = find_source_address(want.flow.source, family_of(address))
        left = want.left(address)
        # What has no ports has one flow.
        for port in (0,) if left == () else each(left or ()):
            yield Stage(want.flow, address, port, source_address, fleet, arrivals)


class Plays:
    """What is played, for each flow by itself or for several together. A context: what is played
    for several ends with it."""

    def __init__(self, fleet: Fleet, machines: Machines, stages: Iterable[Stage]) -> None:
        self._fleet = fleet
        self._machines = machines
        self._groups: dict[GroupKey, list[Stage]] = {}
        self._tasks: dict[GroupKey, asyncio.Task[list[Shown]]] = {}
        for stage in stages:
            self._groups.setdefault(_key_of(stage), []).append(stage)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def play(self, stage: Stage) -> Shown:
        """Play the part of one flow, and give what it showed."""
        rehearsal = PLAYED[_word_of(stage)]
        if isinstance(rehearsal, PairRehearsal):
            ends = (stage.flow.source, stage.flow.destination)
            places = [self._machines.name_place(host) for host in ends]
            about = f"{ends[0].name} and {ends[1].name}"
            (shown,) = await self._play_at(places, about, partial(_play_pair, rehearsal, stage))
            return shown
        assert isinstance(rehearsal, TogetherRehearsal)
        key = _key_of(stage)
        group = self._groups[key]
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._play_group(rehearsal, group))
        return (await self._tasks[key])[group.index(stage)]

    async def _play_group(
        self, rehearsal: TogetherRehearsal, group: Sequence[Stage]
    ) -> list[Shown]:
        """Play for several flows while no other has these ports of the back ends."""
        first = group[0]
        places = [
            self._machines.name_place(host, port)
            for host in first.flow.block.back_ends
            for port in rehearsal.list_ports(first)
        ]
        # Two names may have one address.
        places.append(f"{first.address} {first.flow.block.protocol}/{first.port}")
        about = f"{first.flow.destination.name} and others"
        work = partial(rehearsal.play_together, group)
        return await self._play_at(places, about, work, len(group))

    async def _play_at(
        self, places: Iterable[str], about: str, play: Callable[[], Awaitable[list[Played]]],
        count: int = 1,
    ) -> list[Shown]:  # fmt: skip
        """Play while no other rehearsal has these places; gives for each flow what it showed."""
        async with self._machines.hold(*places):
            try:
                with self._fleet.phases.during("rehearsals", about):
                    return [*await play()]
            except Exception as error:
                return [error] * count


async def _play_pair(rehearsal: PairRehearsal, stage: Stage) -> list[Played]:
    return [await rehearsal.play(stage)]


def _word_of(stage: Stage) -> str:
    word = stage.flow.block.rehearsal
    assert word is not None
    return word


def _key_of(stage: Stage) -> GroupKey:
    """Give what flows share that are played together."""
    word = _word_of(stage)
    return word, *PLAYED[word].name_group(stage)


def _read_played(want: Want, stage: Stage, shown: Shown, skip: SkipFlow) -> list[Evidence]:
    """Make the evidence of what was played; what is left out on purpose has none."""
    ports = ((stage.port, stage.port),) if stage.port else ()
    unplayed = Evidence(want.flow, stage.address, ports, outcome=None)
    if isinstance(shown, NotPlayedError):
        if shown.reason is None:
            skip(_make_skipped(want, str(shown)), 1)
            return []
        return [replace(unplayed, untested=(shown.reason, str(shown)))]
    if isinstance(shown, AgentError):
        return [replace(unplayed, untested=(shown.reason, str(shown)))]
    if isinstance(shown, Exception):
        words = f"the rehearsal failed ({bug_words(shown)})"
        return [replace(unplayed, untested=("netprobe-fault", words))]
    return [replace(unplayed, outcome=Outcome(_word_of(stage), None), rehearsed=shown)]


def _make_skipped(want: Want, why: str) -> Skipped:
    block = want.flow.block
    ends = (want.flow.source.name, want.flow.destination.name)
    return Skipped(block.matrix, block.requirement.id, why, *ends)


async def try_parts(host: Host, fleet: Fleet, played: Plan) -> tuple[str, ...]:
    """Say what a host lacks for each rehearsal in which the plan gives it a part."""
    lacking: dict[str, None] = {}
    for block in played.blocks:
        ends = (end for end, _ in block.destinations)
        hosts = {one.name for one in (*block.sources, *ends, *block.back_ends)}
        if block.rehearsal is None or host.name not in hosts:
            continue
        try:
            words = await PLAYED[block.rehearsal].try_alone(fleet.agent(host), block, fleet)
        except AgentError as error:
            words = str(error)
        if words is not None:
            lacking[f"{block.requirement.id} cannot be rehearsed: {words}"] = None
    return tuple(lacking)


class Machines:
    """Where something is played: machines, or ports of them. Hosts may be one machine."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._playing: set[str] = set()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, *places: str) -> AsyncIterator[None]:
        """Wait until nothing is played at any of these, and let no other have them meanwhile."""
        wanted = {*places}
        async with self._changed:
            await self._changed.wait_for(lambda: not wanted & self._playing)
            self._playing |= wanted
        try:
            yield
        finally:
            self._playing -= wanted
            async with self._changed:
                self._changed.notify_all()

    def name_place(self, host: Host, port: int | None = None) -> str:
        """Name the machine that a host is, or one TCP port of it."""
        hello = self._fleet.agent(host).hello
        machine = (hello.machine if hello is not None else "") or host.name
        return machine if port is None else f"{machine} tcp/{port}"
