"""Which balancers a plan rehearses, and who stands behind them: `balances:` of the inventory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix, fold_role
from netprobe.model.plan import BALANCER, Block, Plan, Skipped
from netprobe.model.ports import Ports
from netprobe.plan.expand import hosts_by_role

RolesByHost = Mapping[str, tuple[str, ...]]


def list_stand_ins(chosen: Sequence[ChosenMatrix], inventory: Inventory) -> frozenset[str]:
    """List the balancers to which no TCP row of any matrix leads, by name: they stand in for the
    roles that they balance."""
    reached = {
        host.name
        for one in chosen
        for role, hosts in hosts_by_role(one.matrix, inventory).items()
        if any(role in row.destinations for row in one.matrix.requirements if row.tcp)
        for host in hosts
    }
    return frozenset(one.name for one in inventory.hosts if one.balances) - reached


def make_balancers(
    block: Block, inventory: Inventory, roles: RolesByHost, stand_ins: Collection[str]
) -> Iterator[Block | Skipped]:
    """Give the rehearsals of the balancers that a row leads to, or that stand in for whom it leads
    to, one for each."""
    if block.protocol != "tcp":
        return
    for host in inventory.hosts:
        ports = _list_ports(block, host)
        back_ends = tuple(_list_back_ends(host, inventory, roles))
        known = any(end.name == host.name for end, _ in block.destinations)
        stands_in = host.name in stand_ins and _leads_behind(block, host, back_ends, roles)
        if ports and (known or stands_in):
            yield from _make_balancer(block, host, ports, back_ends)


def add_stand_in(plan: Plan, host: Host, inventory: Inventory) -> Plan:
    """Give the plan with the rows to those for whom a balancer stands in, led to itself at the
    ports that it names: a run rehearses them, and who asks for one flow sees it as theirs."""
    back_ends = tuple(_list_back_ends(host, inventory, plan.roles))
    led = []
    for block in plan.blocks:
        ends = tuple((host, one) for one in host.addresses if one.family == block.family)
        ports = _list_ports(block, host)
        leads = block.protocol == "tcp" and _leads_behind(block, host, back_ends, plan.roles)
        if leads and ports and ends:
            led.append(replace(block, ports=ports, destinations=ends))
    return replace(plan, blocks=(*plan.blocks, *led))


def note_unrehearsed(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """Say of which balancers a whole plan rehearses nothing, where no skipped row says why."""
    if plan.selection is not None or plan.limited_to:
        return
    played = [block for block in plan.blocks if block.rehearsal == BALANCER]
    skipped = [one for one in plan.skipped if one.requirement.endswith(f"/{BALANCER}")]
    told = {one.destination for one in skipped}
    told |= {host.name for block in played for host, _ in block.destinations}
    for host in inventory.hosts:
        if host.balances and host.name not in told:
            yield (
                f"--rehearse={BALANCER}: nothing is rehearsed of {host.name}: no row leads to it "
                f"at a port that it balances, nor to {' or '.join(host.balances)} at one that its "
                "`health:` names, as health: {6443: {https: /readyz}} does"
            )


def _list_ports(block: Block, host: Host) -> Ports:
    """List the ports of a row that a host balances; of a range only those that it names."""
    named = [one.of for one in host.health if one.of is not None]
    whole = [first for first, last in block.ports if first == last]
    inside = [one for one in named if any(first <= one <= last for first, last in block.ports)]
    chosen = sorted(set(inside if named else whole))
    return tuple((port, port) for port in chosen if host.balances_port(port))


def _list_back_ends(host: Host, inventory: Inventory, roles: RolesByHost) -> Iterator[Host]:
    """List the hosts that have a role which a host balances, by either of its names."""
    wanted = {fold_role(role) for role in host.balances}
    for one in inventory.hosts:
        words = {fold_role(role) for role in (*one.roles, *roles.get(one.name, ()))}
        if one.name != host.name and words & wanted:
            yield one


def _leads_behind(
    block: Block, host: Host, back_ends: tuple[Host, ...], roles: RolesByHost
) -> bool:
    """Tell whether a row leads to all that stand behind a balancer, which names its ports."""
    if not any(one.of is not None for one in host.health):
        return False
    wanted = {*block.requirement.destinations}
    return bool(back_ends) and all(wanted & {*roles.get(one.name, ())} for one in back_ends)


def _make_balancer(
    block: Block, host: Host, ports: Ports, back_ends: tuple[Host, ...]
) -> Iterator[Block | Skipped]:
    row = block.requirement
    name = f"{row.id}/{BALANCER}"
    why = _why_not(host, back_ends)
    if why is not None:
        yield Skipped(block.matrix, name, why, destination=host.name)
        return
    known = {end for end in block.destinations if end[0].name == host.name}
    ends = tuple((host, one) for one in host.addresses if one.family == block.family)
    starts = {one.name: one for one in (*block.sources, *back_ends)}
    played = replace(
        block,
        requirement=replace(
            row,
            id=name,
            probe=BALANCER,
            any_of=None,
            purpose=f"the pool of the balancer {host.name} ({row.id}): {row.purpose}",
        ),
        ports=ports,
        sources=tuple(starts.values()),
        destinations=tuple(end for end in ends if not known or end in known),
        local=False,
        any_of=None,
        also=tuple(replace(one, requirement=f"{one.requirement}/{BALANCER}") for one in block.also),
        back_ends=back_ends,
    )
    if played.pair_count():
        yield played


def _why_not(host: Host, back_ends: tuple[Host, ...]) -> str | None:
    """Say why a balancer cannot be rehearsed; None: it can."""
    if not back_ends:
        return f"no host has the role {' or '.join(host.balances)}, which {host.name} balances"
    closed = [one.name for one in back_ends if one.vantage.kind == "none"]
    if closed:
        return (
            f"back ends are played by their agents, and {', '.join(closed)} is declared "
            "vantage: none"
        )
    return None
