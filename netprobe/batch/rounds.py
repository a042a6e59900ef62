"""The rounds of a run without a live coordinator: the scripts of the first, and of further ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from netprobe.agent.wire import orders
from netprobe.agent.wire.batch import BATCH_FORMAT, BatchStart
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.parts import ListenBlock
from netprobe.batch.ideal import IdealFleet, Note
from netprobe.batch.recorded import RecordedFleet
from netprobe.batch.request import BatchRequest
from netprobe.batch.script import HostScript, derive_result_key, own_ids
from netprobe.batch.scripting import PhaseOrders, Scripting
from netprobe.model import ports as port_sets
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.probe.collect import collect, list_hosts, record_order
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.signals import run_on_loop

# An engine that says nothing for so long has gone.
SILENCE_S = 1800.0


def make_first_round(request: BatchRequest, probed: Plan) -> tuple[BatchRequest, list[HostScript]]:
    """Run dry, and give every host's script, and the request with what the round has used up.

    ``probed``: what of the request's plan is probed.
    """
    hosts = list_hosts(probed)
    fleet = IdealFleet(hosts, request.key)
    run_on_loop(collect(probed, request.settings, fleet, lambda *_: None), JumpingLoop)
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
        # A recorder that starts again knows no packet of the rounds before.
        notes = [one for one in notes if not isinstance(one.order, orders.StoryOrder)]
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


def move_start(
    request: BatchRequest, scripts: Sequence[HostScript], starts_at: float
) -> tuple[BatchRequest, list[HostScript]]:
    """Give the same round with another start: to make it may have taken long."""
    moved = replace(request, starts_at=starts_at)
    ends_at = starts_at + request.window_s
    return moved, [
        replace(one, start=one.start._replace(starts_at=starts_at, ends_at=ends_at))
        for one in scripts
    ]


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
    request: BatchRequest, hosts: Sequence[Host], phases: Mapping[str, PhaseOrders]
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
