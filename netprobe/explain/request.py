"""One flow as the user names it → a plan of this flow alone, made by the planner of every run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.load.inventory.addresses import parse_address
from netprobe.load.inventory.discover import load_inventory
from netprobe.load.request import load_request
from netprobe.load.yaml.wording import unknown
from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.matrix import ChosenMatrix, Matrix, Requirement, Role
from netprobe.model.names import nearest
from netprobe.model.plan import BALANCER, PATH_MTU, Block, Plan
from netprobe.plan.balancers import add_stand_in, list_stand_ins
from netprobe.plan.expand import make_plan
from netprobe.plan.path_mtu import make_mtu_block
from netprobe.plan.rehearsals import with_rehearsals

# What a flow that no matrix is asked about belongs to.
EXPLAIN = "explain"

_EXPECTED = "expected a protocol and a port such as tcp/6443, udp/8472, icmp or ipproto/4"
_WORDS = re.compile(r"(tcp|udp|ipproto)/(\d{1,5})")
_TURNED = re.compile(r"(\d{1,5})/(tcp|udp)")
_MOST = {"tcp": 65535, "udp": 65535, "ipproto": 255}


class Wire(Struct, frozen=True):
    """``protocol`` as blocks have it: ``tcp``, ``udp``, ``icmp``, ``ipproto/4``."""

    protocol: str
    port: int | None = None


class FlowRequest(Struct, frozen=True):
    """What the user asked to explain; without matrices the flow is plain."""

    source: str
    destination: str
    wire: Wire
    inventories: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


def parse_wire(text: str) -> Wire:
    """``tcp/6443``, ``6443/tcp``, ``icmp``, ``ipproto/4``. Raises RequestError."""
    word = text.strip().lower()
    if word in ("icmp", "icmp/echo"):
        return Wire("icmp")
    turned = _TURNED.fullmatch(word)
    found = _WORDS.fullmatch(f"{turned[2]}/{turned[1]}" if turned else word)
    if found is None:
        raise RequestError(f"{text}: {_EXPECTED}")
    protocol, number = found[1], int(found[2])
    least = 0 if protocol == "ipproto" else 1
    if not least <= number <= _MOST[protocol]:
        raise RequestError(f"{text}: {number} is not between {least} and {_MOST[protocol]}")
    return Wire(f"ipproto/{number}") if protocol == "ipproto" else Wire(protocol, number)


def plan_flow(request: FlowRequest, today: date, rehearse: Sequence[str] = ()) -> Plan:
    """The plan of the flow: a block for each family, each followed by one that measures its MTU.

    Raises RequestError where there is no such flow.
    """
    chosen, inventory, notes = _load_files(request)
    source = _find_source(request.source, inventory)
    destination, why = _find_destination(request.destination, inventory)
    if source.vantage.kind == "none":
        raise RequestError(f"{source.name} is declared vantage: none, so no probe can start there")
    # The destination is planned as it was asked for.
    name = destination.name
    hosts = tuple(destination if host.name == name else host for host in inventory.hosts)
    plan = make_plan(chosen, replace(inventory, hosts=hosts), today, notes)
    if BALANCER in rehearse and name in list_stand_ins(chosen, inventory):
        plan = add_stand_in(plan, destination, inventory)
    blocks, told = _plan_of_matrices(plan, source, destination, request.wire)
    if not blocks:
        told = [f"no requirement of {', '.join(request.matrices)} has this flow"] if chosen else []
        blocks = _plan_plain(source, destination, request.wire, today)
    # The path's MTU beside a flow never decides, and a host has no path to itself.
    if source.name != destination.name:
        mtus = [make_mtu_block(block, "full-size packets", optional=True) for block in blocks]
        blocks = [one for pair in zip(blocks, mtus, strict=True) for one in pair]
    numbered = tuple(replace(block, index=index) for index, block in enumerate(blocks))
    flow = replace(plan, blocks=numbered, skipped=(), notes=(*why, *told))
    # Of other hosts nothing is rehearsed either.
    limited = replace(flow, limited_to=frozenset((source.name, destination.name)))
    rehearsed = with_rehearsals(limited, rehearse, chosen, inventory)
    return replace(rehearsed, limited_to=flow.limited_to)


def _load_files(
    request: FlowRequest,
) -> tuple[tuple[ChosenMatrix, ...], Inventory, tuple[str, ...]]:
    if request.matrices:
        return load_request(request.matrices, request.inventories, request.sets, request.roles)
    if request.sets:
        raise RequestError("--set: there is no matrix that has settings; give --matrix too")
    if request.roles:
        raise RequestError("--role: there is no matrix that has roles; give --matrix too")
    inventory = load_inventory(request.inventories)
    return (), inventory, inventory.notes


def _find_source(name: str, inventory: Inventory) -> Host:
    hosts = {host.name: host for host in inventory.hosts}
    if name not in hosts:
        raise RequestError(f"SOURCE: {unknown('host', name, list(hosts))}")
    return hosts[name]


def _find_destination(text: str, inventory: Inventory) -> tuple[Host, list[str]]:
    """Find a host of the inventory by name or by address, else an address without an agent."""
    hosts = {host.name: host for host in inventory.hosts}
    if text in hosts:
        return hosts[text], []
    try:
        address = parse_address(text)
    except ValueError as error:
        raise RequestError(f"DESTINATION: {error}") from error
    for host in inventory.hosts:
        if address in host.addresses:
            return replace(host, addresses=(address,)), [f"{text} is {host.name}'s address"]
    near = nearest(text, list(hosts))
    # A word without a dot is rather a slip than a name that the source can resolve.
    if near and address.family is None and "." not in text:
        words = f"no host is called {text}, did you mean {' or '.join(near)}?"
        raise RequestError(f"DESTINATION: {words} (to ask the source for the name: {text}.)")
    note = f"{text} is not in the inventory: it is probed without an agent of its own"
    return Host(text, (address,), (), Vantage("none")), [note]


def _plan_of_matrices(
    plan: Plan, source: Host, destination: Host, wire: Wire
) -> tuple[list[Block], list[str]]:
    """The requirements' own blocks, cut down to this flow; the first of each family and address."""
    found: list[Block] = []
    told: list[str] = []
    known = set()
    for block in plan.blocks:
        for one in _cut_block(block, source, destination, wire):
            key = (one.family, one.destinations[0][1])
            name = f"{one.matrix}: {one.requirement.id}"
            if key not in known:
                found.append(one)
            elif name not in " ".join(told) and found[0].requirement != one.requirement:
                told.append(f"also required by {name}")
            known.add(key)
    return found, told


def _cut_block(block: Block, source: Host, destination: Host, wire: Wire) -> Iterator[Block]:
    port = wire.port
    if block.protocol != wire.protocol or block.requirement.probe == PATH_MTU:
        return
    if port is not None and not any(first <= port <= last for first, last in block.ports):
        return
    if source.name not in {host.name for host in block.sources}:
        return
    if source.name == destination.name and not block.local:
        return
    ports = ((port, port),) if port is not None else ()
    for end in block.destinations:
        if end[0].name == destination.name:
            yield replace(block, ports=ports, sources=(source,), destinations=(end,))


def _plan_plain(source: Host, destination: Host, wire: Wire, today: date) -> list[Block]:
    """Make the flow as a matrix of one requirement would ask for it."""
    chosen = ChosenMatrix(_make_matrix(wire, source.name == destination.name), {})
    if source.name == destination.name:
        hosts: Sequence[Host] = (replace(source, roles=("source", "destination")),)
    else:
        hosts = (replace(source, roles=("source",)), replace(destination, roles=("destination",)))
    plan = make_plan((chosen,), Inventory(tuple(hosts)), today)
    if not plan.blocks:
        raise RequestError(plan.skipped[0].reason)
    return [
        replace(block, destinations=(end,)) for block in plan.blocks for end in block.destinations
    ]


def _make_matrix(wire: Wire, local: bool) -> Matrix:
    ports = ((wire.port, wire.port),) if wire.port is not None else ()
    number = wire.protocol.partition("/")[2]
    requirement = Requirement(
        EXPLAIN,
        ("source",),
        ("destination",),
        tcp=ports if wire.protocol == "tcp" else (),
        udp=ports if wire.protocol == "udp" else (),
        icmp=wire.protocol == "icmp",
        ipproto=(int(number),) if number else (),
    )
    roles = {name: Role(name) for name in ("source", "destination")}
    return Matrix(EXPLAIN, "One flow", roles, {}, (requirement,), local=local)
