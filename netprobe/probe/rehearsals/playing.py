"""Plays what a plan rehearses, after all is probed: then no listener of the run holds a port.

A machine plays in one rehearsal at a time; those of other machines go on beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace

from netprobe.errors import AgentError, bug_words
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan, Skipped
from netprobe.model.ports import each
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.names import resolve_names
from netprobe.probe.flows.prober import find_source_address
from netprobe.probe.flows.room import gather_some
from netprobe.probe.flows.work import Want, addresses, family_of
from netprobe.probe.rehearsals import PLAYED
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, RowArrivals, Stage

PlayedFlow = Callable[[Want, list[Evidence]], None]
SkipFlow = Callable[[Skipped, int], None]


async def play_all(
    wants: Iterable[Want], fleet: Fleet, arrivals: RowArrivals, emit: PlayedFlow, skip: SkipFlow
) -> None:
    """Rehearse these flows; ``emit`` gets the evidence of each, ``skip`` what is left out on
    purpose, and how many ports."""
    wants = list(wants)
    resolved = await resolve_names(wants, fleet)
    machines = Machines(fleet)

    async def play_one(want: Want) -> None:
        found = resolved.evidence(want)
        for address in addresses(want, resolved.addresses):
            for port in each(want.left(address) or ()):
                async with machines.hold(want.flow.source, want.flow.destination):
                    found += await _play_port(want, address, port, fleet, arrivals, skip)
        want.ledger.is_final = True
        if found:
            emit(want, found)

    await gather_some([partial(play_one, want) for want in wants])


async def _play_port(  # a flow, and the run around it
    want: Want, address: str, port: int, fleet: Fleet, arrivals: RowArrivals, skip: SkipFlow
) -> list[Evidence]:
    word = want.flow.block.rehearsal
    assert word is not None
    source_address = find_source_address(want.flow.source, family_of(address))
    stage = Stage(want.flow, address, port, source_address, fleet, arrivals)
    unplayed = Evidence(want.flow, address, ((port, port),), outcome=None)
    about = f"{want.flow.source.name} and {want.flow.destination.name}"
    try:
        with fleet.phases.during("rehearsals", about):
            facts = await PLAYED[word].play(stage)
    except NotPlayedError as error:
        if error.reason is None:
            skip(_make_skipped(want, str(error)), 1)
            return []
        return [replace(unplayed, untested=(error.reason, str(error)))]
    except AgentError as error:
        return [replace(unplayed, untested=(error.reason, str(error)))]
    except Exception as error:
        words = f"the rehearsal failed ({bug_words(error)})"
        return [replace(unplayed, untested=("netprobe-fault", words))]
    return [replace(unplayed, outcome=Outcome(word, None), rehearsed=facts)]


def _make_skipped(want: Want, why: str) -> Skipped:
    block = want.flow.block
    ends = (want.flow.source.name, want.flow.destination.name)
    return Skipped(block.matrix, block.requirement.id, why, *ends)


async def try_parts(host: Host, fleet: Fleet, played: Plan) -> tuple[str, ...]:
    """Say what a host lacks for each rehearsal in which the plan gives it a part."""
    lacking: dict[str, None] = {}
    for block in played.blocks:
        hosts = {one.name for one in (*block.sources, *(end for end, _ in block.destinations))}
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
    """Which machines play in a rehearsal; hosts may be one machine."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._playing: set[str] = set()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, *hosts: Host) -> AsyncIterator[None]:
        """Wait until none of these plays, and let no other rehearsal have them meanwhile."""
        wanted = {self._name_machine(host) for host in hosts}
        async with self._changed:
            await self._changed.wait_for(lambda: not wanted & self._playing)
            self._playing |= wanted
        try:
            yield
        finally:
            self._playing -= wanted
            async with self._changed:
                self._changed.notify_all()

    def _name_machine(self, host: Host) -> str:
        hello = self._fleet.agent(host).hello
        return (hello.machine if hello is not None else "") or host.name
