"""What is rehearsed of segments: each address of a host, and those that must be free yet."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from netprobe.model.inventory import Address, Family, Host, Inventory
from netprobe.model.matrix import Condition, Requirement
from netprobe.model.plan import SEGMENT, Block, Plan

# Files know no word for ARP: these flows have the protocol of neighbour solicitations.
PROTOCOL = "icmp"
FAMILIES: tuple[Family, ...] = (4, 6)
PURPOSE = "each address has one machine, those that must be free have none, and so have ids"


def make_segments(plan: Plan, inventory: Inventory) -> Iterator[Block]:
    """Give a block for each family: a flow from each host to itself for each of its addresses.

    Hosts are those of the plan with agents, and those of the inventory that must be free.
    """
    limits = plan.limited_to
    free = [host for host in inventory.hosts if host.free and (not limits or host.name in limits)]
    able = [host for host in plan.hosts().values() if host.may_start]
    listed = tuple(sorted({text for host in inventory.hosts for text in host.listed_addresses}))
    for family in FAMILIES if able and plan.blocks else ():
        ends = [
            (host, one) for host in (*free, *able) for one in host.addresses
            if one.family == family and not _is_own(one)
        ]  # fmt: skip
        if ends:
            yield _make_block(plan.blocks[0].matrix, family, ends, listed)


def _is_own(address: Address) -> bool:
    """Tell whether an address is on no network."""
    return ip_address(address.text).is_loopback


def _make_block(
    matrix: str, family: Family, ends: list[tuple[Host, Address]], listed: tuple[str, ...]
) -> Block:
    hosts = {host.name: host for host, _ in ends}
    places = {
        name: tuple(place for place, (host, _) in enumerate(ends) if host.name == name)
        for name in hosts
    }
    requirement = Requirement(
        SEGMENT, (), (), icmp=True, purpose=PURPOSE, row="--rehearse", when=Condition(),
        probe=SEGMENT,
    )  # fmt: skip
    return Block(
        0, matrix, requirement, PROTOCOL, (), family, tuple(hosts.values()), tuple(ends),
        local=True, chosen=tuple(places.values()), listed=listed,
    )  # fmt: skip
