"""The rounds of a run without a live coordinator: scripts out, and what hosts wrote back in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from netprobe.agent.wire import orders
from netprobe.agent.wire.batch import BATCH_FORMAT, BatchStart
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.parts import ListenBlock
from netprobe.batch.ideal import IdealFleet, Note
from netprobe.batch.keys import derive_result_key
from netprobe.batch.recorded import Doubts, RecordedFleet
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording, ResultsRefused, read_results
from netprobe.batch.script import HostScript, own_ids
from netprobe.batch.scripting import Phases, Scripting
from netprobe.batch.told import HostTold
from netprobe.batch.windows import ClockWindows
from netprobe.model import ports as port_sets
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.probe.agents.fleet import Fleet, Tell
from netprobe.probe.collect import collect, record_order
from netprobe.probe.jumping_loop import JumpingLoop

# An engine that says nothing for so long has gone.
SILENCE_S = 1800.0


def make_first_round(request: BatchRequest, probed: Plan) -> tuple[BatchRequest, list[HostScript]]:
    """Run dry, and give every host's script, and the request with what the round has used up.

    ``probed``: what of the request's plan is probed.
    """
    fleets: list[IdealFleet] = []

    def make_fleet(hosts: Sequence[Host], tell: Tell) -> Fleet:
        fleets.append(IdealFleet(hosts, tell, request.key))
        return fleets[-1]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(collect(probed, request.settings, make_fleet, lambda *_: None, lambda _: None))
    (fleet,) = fleets
    hosts = fleet.hosts()
    scripting = Scripting(hosts, lambda: next(fleet.order_ids))
    phases = scripting.sort_dry_run(fleet)
    made = replace(
        request,
        hosts=tuple(host.name for host in hosts),
        next_id=next(fleet.order_ids),
        templates=tuple(fleet.templates.after(0)),
    )
    return made, _make_scripts(made, hosts, phases)


def make_next_round(
    request: BatchRequest, probed: Plan, fleet: RecordedFleet, *, starts_at: float | None = None
) -> tuple[BatchRequest, list[HostScript]]:
    """Give the scripts for what a merge left open: none where nothing is left to ask.

    Agents that an engine drives still listen and know all packets; hosts that nobody talks to
    start again, at ``starts_at``.
    """
    numbers = itertools.count(request.next_id)
    hosts = fleet.hosts()
    scripting = Scripting(hosts, lambda: next(numbers))
    fresh, notes = fleet.renumber_outstanding(request.templates)
    first: list[Any] = [orders.TemplatesOrder(list(fresh))] if fresh else []
    if request.barrier != "engine":
        first = [orders.TemplatesOrder([*request.templates, *fresh])]
        if request.settings.record:
            first.append(record_order(request.plan))
        notes = [*_reopen_listeners(request, probed, notes), *notes]
    phases = scripting.sort_outstanding(notes, first)
    made = replace(
        request,
        round=request.round + 1,
        next_id=next(numbers),
        starts_at=starts_at,
        templates=(*request.templates, *fresh),
    )
    scripts = _make_scripts(made, hosts, phases)
    return (made, scripts) if scripts else (request, [])


def _reopen_listeners(request: BatchRequest, probed: Plan, notes: Sequence[Note]) -> Iterator[Note]:
    """Give the listen orders of the first round again, as far as probes need them."""
    wanted: dict[tuple[str, str], list[Ports]] = {}
    for note in notes:
        for block in note.order.blocks if isinstance(note.order, orders.ProbeOrder) else ():
            if block.mode in ("nonce", "send"):
                place = (note.order.proto, note.order.dst)
                wanted.setdefault(place, []).append(port_sets.normalise(block.ports))
    for script in make_first_round(request, probed)[1] if wanted else ():
        for order in (order for _, some in script.phases for order in some):
            if isinstance(order, orders.ListenOrder):
                blocks = list(_cut_blocks(order.blocks, wanted))
                if blocks:
                    yield Note(script.start.name, order._replace(blocks=blocks))


def _cut_blocks(
    blocks: Sequence[ListenBlock], wanted: Mapping[tuple[str, str], Sequence[Ports]]
) -> Iterator[ListenBlock]:
    for block in blocks:
        ports = wanted.get((block.proto, block.address))
        if ports is None:
            continue
        common = port_sets.intersect(port_sets.normalise(block.ports), port_sets.union(ports))
        if common or not block.ports:
            yield block._replace(ports=list(common))


def _make_scripts(
    request: BatchRequest, hosts: Sequence[Host], phases: Mapping[str, Phases]
) -> list[HostScript]:
    return [
        HostScript(_make_start(request, index, host), phases[host.name])
        for index, host in enumerate(hosts)
        if host.name in phases
    ]


def _make_start(request: BatchRequest, index: int, host: Host) -> BatchStart:
    ends_at = None
    if request.starts_at is not None:
        ends_at = request.starts_at + request.window_s
    return BatchStart(
        BATCH_FORMAT, WIRE_VERSION, request.run, request.round, index, host.name,
        sorted(host.listed_addresses), request.barrier, request.starts_at, request.window_s,
        request.margin_s, ends_at, SILENCE_S, request.key,
        derive_result_key(request.results_key, index), own_ids(index, request.round),
        request.budgets,
    )  # fmt: skip


class Replay:
    """A merge: what hosts wrote, as a fleet. Raises ResultsRefused for two files of one round."""

    def __init__(self, request: BatchRequest, recordings: Sequence[HostRecording]) -> None:
        self._request = request
        self._recordings = {
            name: _join_rounds(some) for name, some in _group_by_host(recordings).items()
        }
        templates = {one.number: one for one in request.templates}
        self._told = {
            name: HostTold(one, templates)
            for name, one in self._recordings.items()
            if one.hello is not None
        }
        self._doubts = self._choose_doubts()
        self.fleet: RecordedFleet | None = None

    def words(self) -> list[str]:
        """Say which results end early."""
        return [f"{one.source}: {one.words}" for one in self._recordings.values() if one.words]

    def _choose_doubts(self) -> Doubts:
        if self._request.barrier != "clock":
            return lambda _source, _there: None
        windows = ClockWindows(self._recordings, self._request.hosts)
        known: dict[tuple[str, str], str | None] = {}

        def doubt(source: str, there: str) -> str | None:
            if (source, there) not in known:
                known[source, there] = windows.doubt(source, there)
            return known[source, there]

        return doubt

    def make_fleet(self, hosts: Sequence[Host], tell: Tell, missing: Mapping[str, str]) -> Fleet:
        """Make the fleet that answers as the hosts did; ``missing``: words for who has not."""
        self.fleet = RecordedFleet(
            hosts, tell, self._request.key, self._told, missing, self._doubts
        )
        return self.fleet


def read_recordings(request: BatchRequest, paths: Sequence[Path]) -> list[HostRecording]:
    """Read the result files. Raises ResultsRefused with the words of all that are refused."""
    found: list[HostRecording] = []
    refused: list[str] = []
    for path in paths:
        try:
            found.append(read_results(path, request.identity))
        except ResultsRefused as error:
            refused.append(str(error))
    if refused:
        raise ResultsRefused("\n".join(refused))
    return found


def _group_by_host(recordings: Sequence[HostRecording]) -> dict[str, list[HostRecording]]:
    """Give the recordings of each host, one a round. Raises ResultsRefused for more."""
    known: dict[tuple[str, int], HostRecording] = {}
    for one in recordings:
        key = (one.name, one.header.round if one.header is not None else 0)
        if key in known:
            raise ResultsRefused(
                f"{one.source}: is of {one.name}, and so is {known[key].source}; give one of them"
            )
        known[key] = one
    found: dict[str, list[HostRecording]] = {}
    for (name, _), one in sorted(known.items()):
        found.setdefault(name, []).append(one)
    return found


def _join_rounds(some: Sequence[HostRecording]) -> HostRecording:
    """Give what one host wrote in all rounds."""
    told = [one for one in some if one.hello is not None] or list(some)
    return replace(
        told[0],
        marks=tuple(mark for one in told for mark in one.marks),
        orders=tuple(order for one in told for order in one.orders),
        answers={number: found for one in told for number, found in one.answers.items()},
        is_cut=any(one.is_cut for one in told),
        words="; ".join(one.words for one in told if one.words),
    )
