"""What is rehearsed of segments: each address of a host, and those that must be free yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.model.inventory import Address, Host, Inventory
from netprobe.model.matrix import Requirement
from netprobe.model.plan import SEGMENT, Block, Plan

# Files know no word for ARP: these flows have the protocol of neighbour solicitations.
PROTOCOL = "icmp"
# Of the inventory, so many before and behind a host may ask for its addresses.
BESIDE = 2
PURPOSE = "each address has one machine, and those that must be free have none"


def make_segments(plan: Plan, inventory: Inventory) -> Iterator[Block]:
    """Give a block for each address: a flow from its host to itself, which stands for no other.

    Hosts are those of the inventory that must be free, and those of the plan with agents.
    """
    limits = plan.limited_to
    free = [host for host in inventory.hosts if host.free and (not limits or host.name in limits)]
    able = [host for host in _list_hosts(plan, inventory) if host.may_start]
    listed = tuple(sorted({text for host in inventory.hosts for text in host.listed_addresses}))
    askers = [(host, tuple(able)) for host in free]
    askers += [(host, _list_near(place, able)) for place, host in enumerate(able)]
    for host, some in askers if able else ():
        for address in host.addresses:
            if address.family is not None and not ip_address(address.text).is_loopback:
                block = _make_block(plan.matrices[0].name, host, address, listed)
                yield replace(block, back_ends=some, no_dhcp=inventory.no_dhcp)


def _list_hosts(plan: Plan, inventory: Inventory) -> Iterable[Host]:
    """List the hosts of a plan; one host alone has a role and no row, and may ask all the same."""
    if plan.blocks or plan.selection is not None:
        return plan.hosts().values()
    return [host for host in inventory.hosts if plan.roles.get(host.name)]


def _list_near(place: int, able: Sequence[Host]) -> tuple[Host, ...]:
    """List the hosts beside one in the inventory, which are likely to be on its network: also
    where only this flow is asked again, they are there to ask."""
    return (*able[max(0, place - BESIDE) : place], *able[place + 1 : place + 1 + BESIDE])


def _make_block(matrix: str, host: Host, address: Address, listed: tuple[str, ...]) -> Block:
    requirement = Requirement(
        SEGMENT, (), (), icmp=True, purpose=PURPOSE, row="--rehearse", probe=SEGMENT
    )  # fmt: skip
    return Block(
        0, matrix, requirement, PROTOCOL, (), address.family, (host,), ((host, address),),
        local=True, listed=listed,
    )  # fmt: skip
