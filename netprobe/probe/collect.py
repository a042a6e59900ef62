"""The probe stage: work through the destinations of a plan, over the agents of a fleet."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from netprobe.agent.wire.orders import RecordOrder
from netprobe.errors import FAULT, bug_words
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.phases import Phases
from netprobe.probe.destination import Destination, Emit
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.listeners import Origins
from netprobe.probe.flows.names import needs_name
from netprobe.probe.flows.proxied import ways
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.room import Room
from netprobe.probe.flows.work import STOPPED, Want, WantKey, Work
from netprobe.probe.rehearsals.rehearsal import RowArrivals, SkipFlow
from netprobe.probe.settings import ProbeSettings

# How long a destination's round waits for sources that are still starting; the rest has its own.
PROMPT_S = 3.0
# Destinations that may wait for a slot, or for agents, for each that is worked on.
LISTED_PER_FORK = 2
# How often whom the run waits for is told.
WATCH_S = 0.5
# How often answers that need no further look are emitted while a destination is worked on.
PROVEN_S = 0.4


async def collect(  # noqa: PLR0913, PLR0917  # what a run is given, and whom it tells
    plan: Plan,
    settings: ProbeSettings,
    fleet: Fleet,
    emit: Emit,
    done: Mapping[WantKey, Ports] | None = None,
    watch: Callable[[Phases], None] = lambda _: None,
    next_plan: Callable[[], Plan | None] = lambda: None,
    skip: SkipFlow = lambda _what, _ports: None,
    arrivals: RowArrivals | None = None,
) -> None:
    """Probe the whole plan; ``emit`` gets every flow once, as soon as its evidence is final.

    ``done`` are ports that an earlier run has final results for. ``watch`` is called again and
    again, and at the end, with the times of the run so far and whom it waits for. ``next_plan``
    is asked for more as long as it has some: flows between the same hosts, over the same agents.
    What a plan rehearses comes after what it probes; ``skip`` gets what is left out on purpose.
    ``arrivals`` is what is known already of the rows that are rehearsed.

    Cancelled, it emits what was not probed as untested. Its listeners are then still open: the
    fleet is of no further use.
    """
    arrived = arrivals or RowArrivals()

    def note(want: Want, found: list[Evidence]) -> None:
        arrived.note(found)
        emit(want, found)

    begin_run(fleet, plan, settings)
    watching = asyncio.create_task(_watch_phases(fleet.phases, watch))
    further: Plan | None = plan
    try:
        while further is not None:
            arrived.expect(further)
            probed, played = further.split_rehearsals()
            listed, stage = ListedFlows(Work(probed, done)), ListedFlows(Work(played, done))
            await _Destinations(listed, fleet, settings, note).work_through()
            if played.blocks:
                from netprobe.probe.rehearsals.playing import play_all

                await play_all(stage.all_wants(), fleet, arrived, emit, skip)
            further, done = next_plan(), None
        await fleet.tell_losses()
    finally:
        watching.cancel()
        for want in (*listed.missing(), *stage.missing()):
            emit(want, [want.untested(STOPPED)])
        watch(fleet.phases)


def begin_run(fleet: Fleet, plan: Plan, settings: ProbeSettings) -> None:
    """Tell all agents how fast the plan is probed, and what to record."""
    keeps = settings.keep is not None
    fleet.begin_run(settings.rate, record_order(plan, keeps=keeps) if settings.record else None)


def list_hosts(plan: Plan) -> tuple[Host, ...]:
    """List the hosts that a run of the plan needs agents on, in the order of their indices."""
    return Work(plan).hosts


async def _watch_phases(phases: Phases, watch: Callable[[Phases], None]) -> None:
    while True:
        await asyncio.sleep(WATCH_S)
        watch(phases)


def record_order(plan: Plan, *, keeps: bool = False) -> RecordOrder:
    """Give what the recorders of the plan's hosts look for, and whether they keep packets."""
    by_protocol: dict[str, list[Ports]] = {}
    for block in plan.blocks:
        by_protocol.setdefault(block.protocol, []).append(block.ports)
    numbers = [word.partition("/")[2] for word in by_protocol if word.startswith("ipproto/")]
    datagrams = port_sets.union(by_protocol.get("udp", ()))
    connects = list(port_sets.union(by_protocol.get("tcp", ()))) if keeps else None
    return RecordOrder(list(datagrams), [int(number) for number in numbers], connects)


class ListedFlows:
    """The flows of the destinations that are worked on; each has its ledger."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._wants: dict[str, list[Want]] = {}
        self._done: set[str] = set()

    def wants(self, host: Host) -> list[Want]:
        """List the flows to a destination, which is worked on from now on."""
        return self._wants.setdefault(host.name, list(self.work.wants(host)))

    def all_wants(self) -> Iterator[Want]:
        """Give the flows of all destinations, which are worked on from now on."""
        for host in self.work.destinations:
            yield from self.wants(host)

    def drop(self, host: Host) -> None:
        """Forget a destination: every flow to it has its results."""
        self._done.add(host.name)
        self._wants.pop(host.name, None)

    def missing(self) -> Iterator[Want]:
        """Give every flow that has no evidence."""
        for host in self.work.destinations:
            if host.name not in self._done:
                wants = self._wants.get(host.name) or self.work.wants(host)
                yield from (one for one in wants if one.is_left and not one.ledger.is_final)


class _Destinations:
    """All destinations of some flows, each worked through as soon as there is room for it."""

    def __init__(
        self, flows: ListedFlows, fleet: Fleet, settings: ProbeSettings, emit: Emit
    ) -> None:
        self._flows = flows
        self._fleet = fleet
        self._settings = settings
        self._emit = emit
        self._answered = Answered(flows.work.flow_count)
        self._alone = Alone()
        self._slots = asyncio.Semaphore(settings.forks)
        # Flows of the others are not even listed: memory holds those of a few destinations.
        self._listed = asyncio.Semaphore(LISTED_PER_FORK * settings.forks)
        self._room = Room()

    async def work_through(self) -> None:
        """Work at all of them until every flow is emitted."""
        async with asyncio.TaskGroup() as group:
            for host in self._flows.work.destinations:
                group.create_task(self._work_at_host(host))

    async def _work_at_host(self, host: Host) -> None:
        origins = Origins(self._fleet.hosts(), self._fleet.own_addresses)
        # All sources have been here then, or the run is stopped: silent servers get their evidence.
        with contextlib.ExitStack() as at_end:
            async with self._listed:
                left = await self._work_at_prompt(host, self._flows.wants(host), origins, at_end)
            # Late sources of this destination keep no other one from being listed.
            while left:
                left = await self._work_at_prompt(host, left, origins, at_end)
        self._flows.drop(host)

    async def _work_at_prompt(
        self, host: Host, wants: list[Want], origins: Origins, at_end: contextlib.ExitStack
    ) -> list[Want]:
        """Work at the flows of prompt sources, and give the rest."""
        if not wants:
            return wants
        prompt, late = await _sort_by_promptness(wants, self._fleet)
        await self._fleet.agent(host).settle(self._settings.ready_s)
        about = f"for a slot for {host.name}"
        async with (
            self._fleet.phases.turn(self._slots, about),
            self._fleet.phases.turn(self._room.hold(len(prompt)), about),
        ):
            # Agents that start were waited for, without a slot.
            now = replace(self._settings, ready_s=0.0)
            destination = Destination(
                host, self._fleet, now, self._answered, self._alone, self._emit
            )
            destination.origins = origins
            at_end.callback(destination.emit_held)
            proving = asyncio.create_task(_emit_proven(destination))
            try:
                await _run_destination(destination, host, prompt, self._emit, holds=bool(late))
            finally:
                if not proving.cancel():
                    proving.result()  # it ends only by an error
        return late


async def _emit_proven(destination: Destination) -> None:
    """Emit what is proven again and again; agents that are lost meanwhile are no error of it."""
    while True:
        await asyncio.sleep(PROVEN_S)
        await destination.emit_proven()


async def _run_destination(
    destination: Destination, host: Host, wants: list[Want], emit: Emit, *, holds: bool
) -> None:
    """Work at a destination; what fails there that nobody foresaw is the end of its flows only."""
    try:
        await destination.run(wants, holds=holds)
    except Exception as error:
        if wants[0].ledger.is_final:
            raise  # the emitting itself failed: results have nowhere to go
        why = (FAULT, f"the work at {host.name} failed ({bug_words(error)})")
        for want in wants:
            want.ledger.is_final = True
        for want in filter(lambda want: want.is_left, wants):
            emit(want, [want.untested(why)])


async def _sort_by_promptness(wants: list[Want], fleet: Fleet) -> tuple[list[Want], list[Want]]:
    """Split wants: those whose source is soon ready, at least one; and the others."""
    ready = [(want, _prepare_source(want, fleet)) for want in wants]
    slow = {one for _, one in ready if not one.done()}
    if slow:
        done, _ = await asyncio.wait(slow, timeout=PROMPT_S)
        if not done and all(one in slow for _, one in ready):
            await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
    prompt = [want for want, one in ready if one.done()]
    return prompt, [want for want, one in ready if not one.done()]


def _prepare_source(want: Want, fleet: Fleet) -> asyncio.Task[Any]:
    """Give what waits until the source has an agent, or none for certain, and has resolved the
    flow's name, where it has to."""
    agent, address = fleet.agent(want.flow.source), want.flow.address
    if address.family is None and any(map(needs_name, ways(want))):
        return fleet.lookups.begin(agent, address.text)
    return agent.settling()
