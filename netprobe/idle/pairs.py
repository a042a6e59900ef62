"""Which pairs of zones are measured, and with which connections that a matrix requires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

from msgspec import Struct, field

from netprobe.errors import RequestError
from netprobe.model.idle import IdleProtocol
from netprobe.model.inventory import Address, Family, Host
from netprobe.model.matrix import Keepalive
from netprobe.model.plan import Block, Plan, find_row
from netprobe.plan.cover.zones import zone_of_end, zone_of_source
from netprobe.protocols import Protocol, packets, protocol_for

# Each has some 25 connections, all open at once.
MOST_PAIRS = 50
# What is tried for a pair until a connection opens.
MOST_TRIES, HOSTS_OF_ROW, PORTS_OF_ROW = 6, 2, 4

PlacedEnd = tuple[Host, Address]


class PairKey(NamedTuple):
    """Two zones and a family; ``via``: the balancer that connections go through."""

    from_: str
    to: str
    family: Family
    via: str | None
    protocol: IdleProtocol = "tcp"


class PlannedConnection(Struct, frozen=True):
    """A connection that a row requires, or datagrams; ``listeners`` are the hosts where agents wait
    for it, and ``packet`` is the row's own."""

    requirement: str
    source: Host
    address: Address
    destination: Host
    port: int
    listeners: tuple[Host, ...]
    protocol: IdleProtocol
    packet: Protocol


class RowKeepalive(NamedTuple):
    """How often a row's programs send."""

    matrix: str
    requirement: str
    keepalive: Keepalive


class ZonePair(Struct):
    """What may be tried between two zones. ``closed``: a host where no agent can be started."""

    key: PairKey
    tries: list[PlannedConnection] = field(default_factory=list)
    keepalives: dict[RowKeepalive, None] = field(default_factory=dict)
    closed: str = ""


def find_pairs(plan: Plan) -> tuple[ZonePair, ...]:
    """Find the pairs of zones between which rows require TCP or UDP, in the order of the plan.

    ``plan`` has what is rehearsed of balancers. Raises RequestError where there are too many.
    """
    probed, played = plan.split_rehearsals()
    balancers = {host.name for block in played.blocks for host, _ in block.destinations}
    sources: dict[tuple[str, str], set[str]] = {}
    pairs: dict[PairKey, ZonePair] = {}
    for block in probed.blocks:
        row = block.matrix, block.requirement.id
        sources.setdefault(row, set()).update(host.name for host in block.sources)
        ends = [end for end in block.destinations if end[0].name not in balancers]
        _add_block(pairs, block, block.sources, ends)
    for block in played.blocks:
        # A rehearsal dials from back ends, too; here only who the row is about.
        known = sources.get((block.matrix, find_row(block.requirement.id)), set())
        own = [host for host in block.sources if host.name in known]
        _add_block(pairs, block, own, block.destinations)
    return tuple(pairs.values())


def _add_block(
    pairs: dict[PairKey, ZonePair], block: Block, sources: Iterable[Host], ends: Iterable[PlacedEnd]
) -> None:
    if block.family is None or block.requirement.expect == "denied" or not _is_remembered(block):
        return
    protocol: IdleProtocol = "udp" if block.protocol == "udp" else "tcp"
    starts: dict[str, list[Host]] = {}
    for host in sources:
        starts.setdefault(zone_of_source(host, block.family), []).append(host)
    goals: dict[tuple[str, str | None], list[PlacedEnd]] = {}
    for host, address in ends:
        via = host.name if block.back_ends else None
        goals.setdefault((zone_of_end(host, address), via), []).append((host, address))
    for (from_, hosts), ((to, via), some) in product(starts.items(), goals.items()):
        if any(host.name != end.name for host, (end, _) in product(hosts[:2], some[:2])):
            key = PairKey(from_, to, block.family, via, protocol)
            _add_tries(pairs.setdefault(key, ZonePair(key)), block, hosts, some)
        if len(pairs) > MOST_PAIRS:
            raise RequestError(
                f"more than {MOST_PAIRS} pairs of zones, which is too many at once: choose some "
                "with --from, --to, --protocol or --limit, or name larger zones (--zone-groups)"
            )


def _add_tries(pair: ZonePair, block: Block, sources: list[Host], ends: list[PlacedEnd]) -> None:
    row = find_row(block.requirement.id)
    if block.requirement.keepalive is not None and pair.key.protocol == "tcp":
        pair.keepalives[RowKeepalive(block.matrix, row, block.requirement.keepalive)] = None
    able = [host for host in sources if host.may_start]
    reachable = [end for end in ends if all(one.may_start for one in _list_listeners(block, end))]
    shut = (one.name for one in (*sources, *(host for host, _ in ends)) if not one.may_start)
    pair.closed = pair.closed or next(shut, "")
    # Several ports before further hosts: a port may be in use on all hosts of a zone.
    couples = ((one, end) for one, end in product(able, reachable) if one.name != end[0].name)
    for (source, end), port in islice(
        product(islice(couples, HOSTS_OF_ROW), _list_ports(block)), HOSTS_OF_ROW * PORTS_OF_ROW
    ):
        if len(pair.tries) < MOST_TRIES:
            listeners = _list_listeners(block, end)
            packet = protocol_for(block.requirement.probe, port)
            made = PlannedConnection(
                row, source, end[1], end[0], port, tuple(listeners), pair.key.protocol, packet
            )
            pair.tries.append(made)


def _is_remembered(block: Block) -> bool:
    """Tell whether what a row requires is remembered: TCP, and UDP where an answer comes back to
    the port that asked. Each way of a tunnel is a flow of its own."""
    if block.protocol != "udp":
        return block.protocol == "tcp"
    sent = packets("udp", block.requirement.probe, block.ports)
    return not any(packet.one_way for _, packet in sent)


def _list_listeners(block: Block, end: PlacedEnd) -> Sequence[Host]:
    return block.back_ends or (end[0],)


def _list_ports(block: Block) -> Iterator[int]:
    ports = (port for first, last in block.ports for port in dict.fromkeys((first, last)))
    return islice(ports, PORTS_OF_ROW)
