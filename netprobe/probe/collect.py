"""The probe stage: start the agents, work through the destinations, end everything."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping

from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport
from netprobe.probe.answered import Answered
from netprobe.probe.destination import Destination
from netprobe.probe.fleet import Fleet
from netprobe.probe.settings import ProbeSettings
from netprobe.probe.work import Key, Want, Work
from netprobe.vantage.launch import Launcher

Emit = Callable[[Want, list[Evidence]], None]

STOPPED = ("stopped", "the run was stopped before this flow was probed")


async def collect(
    plan: Plan,
    settings: ProbeSettings,
    launcher: Launcher,
    emit: Emit,
    tell: Callable[[HostReport], None],
    done: Mapping[Key, Ports] | None = None,
) -> None:
    """Probe the whole plan; ``emit`` gets every flow once, as soon as its evidence is final.

    ``done`` are ports that an earlier run has final results for.

    Cancelled, it ends every agent and emits what was not probed as untested.
    """
    work = Work(plan, done)
    hosts = {host.name: host for host in (*work.sources, *work.destinations)}
    fleet = Fleet(tuple(hosts.values()), launcher, tell)
    waiting = {host.name: host for host in work.destinations}
    try:
        fleet.start(secrets.token_bytes(32), settings.rate)
        pace = asyncio.create_task(_share_rate(fleet, settings))
        try:
            await _work_through(work, fleet, settings, emit, waiting)
        finally:
            pace.cancel()
    finally:
        for host in waiting.values():
            _emit_stopped(work, host, emit)
        await fleet.close()


async def _work_through(
    work: Work, fleet: Fleet, settings: ProbeSettings, emit: Emit, waiting: dict[str, Host]
) -> None:
    answered = Answered()
    slots = asyncio.Semaphore(settings.forks)

    async def one(host: Host) -> None:
        async with slots:
            destination = Destination(host, fleet, settings, answered, emit)
            wants = list(work.wants(host))
            await destination.run(wants, on_final=lambda: waiting.pop(host.name))

    async with asyncio.TaskGroup() as group:
        for host in work.destinations:
            group.create_task(one(host))


async def _share_rate(fleet: Fleet, settings: ProbeSettings) -> None:
    """``--rate`` holds over all agents: each gets an equal share, told once all have settled."""
    if settings.rate is None:
        return
    await fleet.settled()
    links = fleet.links()
    for link in links:
        link.send({"t": "rate", "per_s": settings.rate / max(1, len(links))})


def _emit_stopped(work: Work, host: Host, emit: Emit) -> None:
    for want in work.wants(host):
        flow = want.flow
        address = flow.address.text
        ports = want.left(address) or ()
        emit(want, [Evidence(flow, address, ports, None, untested=STOPPED)])
