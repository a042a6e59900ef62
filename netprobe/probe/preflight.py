"""``check --hosts``: start every agent, ask what it can do and who holds what, stop it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import text as ports_text
from netprobe.model.result import HostReport
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.listeners import Round, spots
from netprobe.probe.flows.work import Work, join
from netprobe.vantage.launch import Launcher


async def check_hosts(
    plan: Plan, launcher: Launcher, tell: Callable[[HostReport], None]
) -> tuple[HostReport, ...]:
    """A report for every host of the plan, in plan order; ``tell`` gets each once it is known.

    Where the user limits the flows, their peers get no report.
    """
    work = Work(plan)
    everybody = {host.name: host for host in (*work.sources, *work.destinations)}
    wanted = plan.limited_to or everybody
    hosts = {name: host for name, host in everybody.items() if name in wanted}
    reports: dict[str, HostReport] = {}
    fleet = Fleet(
        tuple(hosts.values()), launcher, lambda report: reports.update({report.name: report})
    )

    async def one(host: Host) -> None:
        await fleet.agent(host).settled.wait()
        report = reports[host.name]
        if report.state == "agent" and host in work.destinations:
            report = await _add_held_ports(report, host, fleet, work)
        reports[host.name] = report
        tell(report)

    try:
        fleet.start(secrets.token_bytes(32))
        await asyncio.gather(*(one(host) for host in hosts.values()))
    finally:
        await fleet.close()
    return tuple(reports[name] for name in hosts)


async def _add_held_ports(report: HostReport, host: Host, fleet: Fleet, work: Work) -> HostReport:
    """Give the report with ``held``: one phrase for each needed port that somebody holds."""
    round_ = Round(fleet.agent(host), next(fleet.order_ids))
    wanted = spots(join(work.wants(host), {}))
    try:
        listeners = await round_.held(wanted)
    except AgentError as error:
        return replace(report, state="lost", words=str(error))
    held = [
        f"{protocol} {ports_text(ports)}: {listener.owner}"
        for (protocol, _), ports, listener in listeners.known()
        if listener.state in ("live", "loopback")
    ]
    return replace(report, facts={**report.facts, "held": sorted(set(held))})
