"""What is rehearsed of segments: each address of a host, and those that must be free yet."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from netprobe.model.inventory import Address, Host, Inventory
from netprobe.model.matrix import Requirement
from netprobe.model.plan import SEGMENT, Block, Plan

# Files know no word for ARP: these flows have the protocol of neighbour solicitations.
PROTOCOL = "icmp"
PURPOSE = "each address has one machine, and those that must be free have none"


def make_segments(plan: Plan, inventory: Inventory) -> Iterator[Block]:
    """Give a block for each address: a flow from its host to itself, which stands for no other.

    Hosts are those of the inventory that must be free, and those of the plan with agents.
    """
    limits = plan.limited_to
    free = [host for host in inventory.hosts if host.free and (not limits or host.name in limits)]
    able = [host for host in plan.hosts().values() if host.may_start]
    listed = tuple(sorted({text for host in inventory.hosts for text in host.listed_addresses}))
    for host in (*free, *able) if able and plan.blocks else ():
        for address in host.addresses:
            if address.family is not None and not ip_address(address.text).is_loopback:
                yield _make_block(plan.blocks[0].matrix, host, address, listed)


def _make_block(matrix: str, host: Host, address: Address, listed: tuple[str, ...]) -> Block:
    requirement = Requirement(
        SEGMENT, (), (), icmp=True, purpose=PURPOSE, row="--rehearse", probe=SEGMENT
    )  # fmt: skip
    return Block(
        0, matrix, requirement, PROTOCOL, (), address.family, (host,), ((host, address),),
        local=True, listed=listed,
    )  # fmt: skip
