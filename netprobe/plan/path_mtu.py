"""Pairs of hosts between which an overlay runs must carry its full-size packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from netprobe.model.matrix import Condition, Requirement
from netprobe.model.plan import PATH_MTU, Block
from netprobe.model.ports import each, intersect
from netprobe.model.result import Also

OVERLAYS = ("vxlan", "geneve", "ipip", "wireguard")
# Calico's for IPv4 and IPv6, and Cilium's. WireGuard is silent towards peers without a key, so no
# requirement has a probe for it.
WIREGUARD_PORTS = ((51820, 51821), (51871, 51871))


def path_mtu_blocks(blocks: Sequence[Block]) -> Iterator[Block]:
    """One block for each overlay's pairs; overlays that run between the same hosts share one."""
    known = set()
    for block in blocks:
        if not _is_overlay(block):
            continue
        ends = tuple((host.name, address.text) for host, address in block.destinations)
        key = (tuple(host.name for host in block.sources), ends, block.family)
        if key not in known:
            known.add(key)
            yield _mtu_block_for_overlay(block)


def _is_overlay(block: Block) -> bool:
    requirement = block.requirement
    if requirement.expect == "denied" or block.protocol == "tcp":
        return False
    wireguard = block.protocol == "udp" and intersect(block.ports, WIREGUARD_PORTS)
    return requirement.probe in OVERLAYS or bool(wireguard)


def _mtu_block_for_overlay(block: Block) -> Block:
    """The MTU of the pairs of an overlay's block; it counts as much as that requirement does."""
    served = block.requirement
    ports = ", ".join(str(port) for port in each(block.ports)) if block.ports else block.protocol
    purpose = f"full-size packets of the overlay ({served.id}: {ports}): {served.purpose}"
    made = make_mtu_block(block, purpose, served.row, optional=served.optional)
    also = tuple(Also(one.matrix, PATH_MTU, one.purpose) for one in block.also)
    return replace(made, requirement=replace(made.requirement, stops=served.stops), also=also)


def make_mtu_block(block: Block, purpose: str, row: str = "", *, optional: bool) -> Block:
    """Make the block that measures the MTU between the pairs of another one."""
    requirement = Requirement(
        PATH_MTU,
        block.requirement.sources,
        block.requirement.destinations,
        icmp=True,
        purpose=purpose,
        row=row,
        when=Condition(),
        optional=optional,
        probe=PATH_MTU,
    )
    # A host's packets to itself never meet a path.
    return replace(
        block, requirement=requirement, protocol="icmp", ports=(), local=False, any_of=None, also=()
    )
