"""Makes the question that the recorders of both ends are asked about some flows of a pair."""

from __future__ import annotations

from collections.abc import Iterable

from netprobe.agent.wire.orders import StoryOrder
from netprobe.agent.wire.questions import NONCES
from netprobe.model import ports as port_sets
from netprobe.model.ports import PortRange, Ports
from netprobe.probe.flows.prober import Observation

# Of more ranges than that only what they have in common is told.
MOST_RANGES = 256


def name_packets(seen: Observation) -> str:
    """Give the packets that a flow's story is about, as ``StoryOrder.proto`` names them."""
    return NONCES if seen.unanswered else seen.task.protocol


def make_order(group: list[Observation], asker: str) -> StoryOrder:
    """Make the order about all these flows, which have one pair and the same kind of packets."""
    name, _, number = name_packets(group[0]).partition("/")
    numbers = {order for seen in group for order, _ in seen.orders}
    own_ports = {sport for seen in group for _, sport in seen.orders if sport is not None}
    return StoryOrder(
        0, name, int(number) if number else None, asker, group[0].task.address,
        list(_list_ranges(group)), sent=True, numbers=[] if name == "tcp" else sorted(numbers),
        own_ports=sorted(own_ports),
    )  # fmt: skip


def _list_ranges(group: list[Observation]) -> Ports:
    """List the port ranges that become results of their own, which have stories of their own."""
    blocks = [want.flow.block.ports for seen in group for want in seen.task.wants]
    wanted = _join_overlapping(entry for ports in set(blocks) for entry in ports)
    rest = [port_sets.subtract(seen.ports, wanted) for seen in group]
    known = [port_sets.intersect(seen.ports, wanted) for seen in group]
    ranges = tuple(sorted({piece for pieces in (*known, *rest) for piece in pieces}))
    return ranges if len(ranges) <= MOST_RANGES else port_sets.normalise(ranges)


def _join_overlapping(ranges: Iterable[PortRange]) -> Ports:
    """Join ranges that overlap; ports that different requirements list beside each other stay
    apart."""
    joined: list[PortRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
