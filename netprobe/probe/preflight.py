"""``check --hosts``: start every agent, ask what it can do and who holds what, stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.result import HostReport
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.live_fleet import find_strangeness, open_fleet
from netprobe.probe.destination import runs_platform
from netprobe.probe.flows.listeners import Listeners, Round, spots
from netprobe.probe.flows.work import Want, Work, join
from netprobe.vantage.launch import Launcher

# What the holders of a host's ports mean, as fields of its facts.
SayHeld = Callable[[list[Evidence]], dict[str, tuple[str, ...]]]


async def check_hosts(
    plan: Plan, launcher: Launcher, tell: Callable[[HostReport], None], say_held: SayHeld
) -> tuple[HostReport, ...]:
    """A report for every host of the plan, in plan order; ``tell`` gets each once it is known.

    Where the user limits the flows, their peers get no report. ``say_held`` judges who holds the
    ports that a host needs.
    """
    probed, played = plan.split_rehearsals()
    work = Work(probed)
    everybody = {host.name: host for host in Work(plan).hosts}
    wanted = plan.limited_to or everybody
    hosts = {name: host for name, host in everybody.items() if name in wanted}

    async def one(fleet: Fleet, host: Host) -> None:
        await fleet.agent(host).settled.wait()
        report = fleet.reports[host.name]
        if report.state == "agent" and host in work.destinations:
            report = await _add_held_ports(report, host, fleet, work, say_held)
        if report.state == "agent" and played.blocks:
            from netprobe.probe.rehearsals.playing import try_parts

            lacking = await try_parts(host, fleet, played)
            report = replace(report, cost=(*report.cost, *lacking))
        if report.state == "agent":
            report = await _add_heard_routers(report, host, fleet, plan.listed)
        fleet.reports[host.name] = report
        tell(report)

    async with open_fleet(hosts.values(), launcher, lambda _: None) as fleet:
        await asyncio.gather(*(one(fleet, host) for host in hosts.values()))
        return tuple(_add_strange_addresses(host, fleet) for host in hosts.values())


def _add_strange_addresses(host: Host, fleet: Fleet) -> HostReport:
    """Give the report with ``strange``: a sentence for each address that is not as it should be."""
    report, hello = fleet.reports[host.name], fleet.agent(host).hello
    if report.state != "agent" or hello is None or not hello.addresses:
        return report
    others = [one for one in fleet.hosts() if one.name != host.name]
    hellos = {one.name: found for one in others if (found := fleet.agent(one).hello) is not None}
    same = [name for name, one in hellos.items() if one.machine == hello.machine]
    strange = []
    for address in sorted(host.listed_addresses):
        owners = ", ".join(
            name for name, one in hellos.items() if address in one.addresses and name not in same
        )
        if address not in hello.addresses:
            words = f"it does not have the address {address}"
            strange.append(f"{words}, which is on {owners}" if owners else words)
        elif owners:
            strange.append(f"its address {address} is on {owners} too")
    if same and strange:
        strange.append(f"the way onto it leads to the same machine as that onto {', '.join(same)}")
    if not strange:
        return report
    # What a run says of the host in one sentence is told here address by address.
    known = set(find_strangeness(host, hello.addresses))
    cost = tuple(one for one in report.cost if one not in known)
    return replace(report, cost=cost, facts=replace(report.facts, strange=tuple(strange)))


async def _add_heard_routers(
    report: HostReport, host: Host, fleet: Fleet, listed: Sequence[Host]
) -> HostReport:
    """Give the report with the routers of nobody in the inventory that the host hears; it is
    silent. ``listed``: the hosts of the inventory."""
    from netprobe.probe.rehearsals.segment_hearing import hear_foreign

    agent, hello = fleet.agent(host), fleet.agent(host).hello
    own = hello.addresses if hello is not None and hello.net_raw else []
    if all(ip_address(text).is_loopback for text in own):
        return report
    known = {text for one in listed for text in one.listed_addresses}
    found, _ = await hear_foreign((agent,), fleet, known.union(own))
    if not found:
        return report
    # Over IPv6 routers send from link-local addresses, which agents alone know.
    await asyncio.gather(*(one.settled.wait() for one in fleet.agents()))
    agents = {one.host.name: one for one in fleet.agents() if one.hello is not None}
    told = frozenset().union(*(one.own_addresses for one in agents.values()))
    unknown = any(not one.free and one.name not in agents for one in listed)
    heard = tuple(
        f"{one.seen._replace(heard_by=()).words()}: {_name_sender(one.seen.sender, unknown)}"
        for one in found
        if one.seen.sender not in told
    )
    return replace(report, facts=replace(report.facts, heard=heard))


def _name_sender(sender: str, unknown: bool) -> str:
    """Say whose an address is not; ``unknown``: of some hosts nobody knows all addresses."""
    if unknown and ip_address(sender).is_link_local:
        return "perhaps a host of the inventory, of which no agent was asked"
    return "it has no address of the inventory's hosts"


async def _add_held_ports(
    report: HostReport, host: Host, fleet: Fleet, work: Work, say_held: SayHeld
) -> HostReport:
    """Give the report with what is said of the needed ports that somebody holds."""
    agent = fleet.agent(host)
    wanted = spots(join(work.wants(host), {}))
    try:
        listeners = await Round(agent, next(fleet.order_ids)).held(wanted)
    except AgentError as error:
        return replace(report, state="lost", words=str(error))
    held = list(_held_flows(work, host, listeners, runs_platform(agent)))
    facts = replace(report.facts, **say_held(held))  # names of fields
    return replace(report, facts=facts)


def _held_flows(
    work: Work, host: Host, listeners: Listeners, platform_runs: bool
) -> Iterator[Evidence]:
    """Give every flow to a held port, by port and holder, as nobody has probed it."""
    held = [one for one in listeners.known() if one[2].state in ("live", "loopback")]
    for want in work.wants(host) if held else ():
        block, address = want.flow.block, want.flow.address.text
        for place, ports, listener in held:
            common = port_sets.intersect(block.ports, ports)
            if common and place == (block.protocol, address) and not _is_denied(want):
                yield Evidence(
                    want.flow, address, common, outcome=None, listener=listener,
                    platform_runs=platform_runs,
                )  # fmt: skip


def _is_denied(want: Want) -> bool:
    return want.flow.block.requirement.expect == "denied"
