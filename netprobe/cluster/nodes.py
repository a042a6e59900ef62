"""Which hosts of a plan can have a pod, and why others cannot."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from netprobe.model.inventory import Host
from netprobe.model.plan import Block, Plan

OTHER_WAY = "use ssh or a bundle there"


def close_hosts(plan: Plan, machines: Collection[str] = ()) -> Plan:
    """Give the plan in which hosts that can have no pod are closed, with the reason.

    ``machines``: the processors that the image is for, in Go's words; none: of all nodes.
    """
    known = {
        name: replace(host, closed=host.closed or find_reason(host, machines))
        for name, host in plan.hosts().items()
    }
    return replace(plan, blocks=tuple(_close_block(block, known) for block in plan.blocks))


def find_reason(host: Host, machines: Collection[str] = ()) -> str | None:
    """Say why a host can have no pod; None where it can, or where nothing is to start there."""
    node = host.node
    if host.vantage.kind == "none":
        return None
    if node is None:
        return f"{host.name} is no node of the cluster, or has not joined it yet: {OTHER_WAY}"
    if node.unready:
        return f"{host.name} is not ready ({node.unready}): {OTHER_WAY}"
    if machines and node.machine not in machines:
        what = node.machine or "of an unknown processor"
        return f"{host.name} is {what}, for which there is no image: {OTHER_WAY}"
    return None


def _close_block(block: Block, known: dict[str, Host]) -> Block:
    return replace(
        block,
        sources=tuple(known[host.name] for host in block.sources),
        destinations=tuple((known[host.name], address) for host, address in block.destinations),
    )
