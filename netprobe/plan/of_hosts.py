"""What results of one host are of: no requirement asks for its name servers and its clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from netprobe.model.inventory import Address, Host
from netprobe.model.matrix import DNS_NAME, Condition, Requirement, rank_weight
from netprobe.model.plan import CLOCK, RESOLVER, Block, Flow, HostFlow, Plan

# The purpose of each, and the port of what it depends on.
_KINDS: Final[Mapping[str, tuple[str, int]]] = {
    RESOLVER: ("one of the name servers that this host is configured with resolves names", 53),
    CLOCK: ("the clock of this host agrees with the others", 123),
}
# A name server that resolves one name resolves others.
MOST_ENDS = 16
# Of a host whose address nobody gives.
LOOPBACK = Address("127.0.0.1", 4)


def list_lookups(plan: Plan) -> tuple[HostFlow, ...]:
    """List the sources that have names to look up, each with these names."""
    found: dict[str, HostFlow] = {}
    for block in _sort_by_weight(plan.blocks):
        asked = [one.name for one in block.names]
        for place, source in enumerate(block.sources if asked or block.family is None else ()):
            known = found.get(source.name) or _make_host_flow(
                block, source, RESOLVER, block.order(place, 0)
            )
            ends = _list_named_ends(block, place)
            found[source.name] = replace(
                known,
                asked=tuple(dict.fromkeys((*known.asked, *asked))),
                ends=tuple(dict.fromkeys((*known.ends, *ends)))[:MOST_ENDS],
            )
    return tuple(one for one in found.values() if one.asked or one.ends)


def list_clocks(plan: Plan) -> Mapping[str, HostFlow]:
    """List by name the hosts whose clocks a run may read: their agents', and those they serve."""
    found: dict[str, HostFlow] = {}
    for block in _sort_by_weight(plan.blocks):
        starts = ((host, block.order(place, 0)) for place, host in enumerate(block.sources))
        ends = ((host, block.order(0, place)) for place, (host, _) in enumerate(block.destinations))
        for host, order in (*starts, *ends):
            if host.name not in found:
                found[host.name] = _make_host_flow(block, host, CLOCK, order)
    return found


def _sort_by_weight(blocks: Iterable[Block]) -> list[Block]:
    """Give the blocks that must not answer not at all, and those that decide first.

    Of these come first those that stop most.
    """
    asked = (block for block in blocks if block.requirement.expect == "allowed")
    return sorted(asked, key=_weigh_block)


def _weigh_block(block: Block) -> tuple[bool, int]:
    requirement = block.requirement
    is_excused = requirement.optional or block.waiver is not None
    return (is_excused, rank_weight(requirement.weight))


def _list_named_ends(block: Block, place: int) -> list[str]:
    """List the names of a source's destinations, unless a proxy may look them up in its place."""
    source = block.sources[place]
    if block.family is not None or source.proxy is not None or source.proxies:
        return []
    names = (block.destinations[peer][1].text for peer in block.peers(place))
    return [name for name in names if DNS_NAME.fullmatch(name)]


def _make_host_flow(block: Block, host: Host, result: str, order: tuple[int, int, int]) -> HostFlow:
    """Make the flow of a host to itself; it counts as much as the requirement of the block does."""
    served, (purpose, port) = block.requirement, _KINDS[result]
    requirement = Requirement(
        result,
        served.sources,
        served.sources,
        purpose=purpose,
        row=served.row,
        when=Condition(),
        optional=served.optional,
        stops=served.stops,
    )
    address = next(iter(host.addresses), LOOPBACK)
    own = replace(
        block, requirement=requirement, protocol="udp", ports=((port, port),), warnings=(),
        family=address.family, sources=(host,), destinations=((host, address),), local=True,
        chosen=None, places=None, names=(), any_of=None, also=(),
    )  # fmt: skip
    return HostFlow(Flow(own, host, host, address), order)
