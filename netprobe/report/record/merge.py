"""Neighbouring ports of one range with equal verdict and evidence become one result.

docs/design.md, section 5, lists the keys that must be equal.

Only within a range of the requirement: 2379 and 2380, listed one by one, stay two results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from msgspec.structs import replace

from netprobe.model.plan import Plan
from netprobe.model.ports import PortRange, Ports
from netprobe.model.result import PROOFS, Result

# The ranges of each matrix, requirement and protocol, as the requirement lists them.
PlannedPorts = Mapping[tuple[str, str, str], Ports]


# Neighbours that are equal in these are merged.
_merge_key = attrgetter(
    "verdict", "state", "reason", "where", "rejected_by", "last_hop", "next_hop", "holder",
    "device", "driver",
    "matrix", "requirement", "source", "destination", "address", "protocol", "waived",
    "accepted", "known", "spared", "also", "name_servers", "quality",
    "sent_from", "came_from",
)  # fmt: skip


def ranges_of(plan: Plan) -> PlannedPorts:
    """Give the port ranges of this plan, within which results may be merged."""
    found = {
        (block.matrix, block.requirement.id, block.protocol): block.ports for block in plan.blocks
    }
    # A block may hold a part of a range only.
    return found | {(one.matrix, one.id, one.protocol): one.ports for one in plan.requirements}


def merge_neighbours(results: Iterable[Result], ranges: PlannedPorts) -> Iterator[Result]:
    """Merge neighbours in a stream that is sorted by place in the plan and by port."""
    group: list[Result] = []
    for result in results:
        if group and not _can_be_merged(group[-1], result, ranges):
            yield _merge_group(group)
            group = []
        group.append(result)
    if group:
        yield _merge_group(group)


def _can_be_merged(left: Result, right: Result, ranges: PlannedPorts) -> bool:
    return (
        left.end_port is not None
        and right.port is not None
        and left.end_port + 1 == right.port
        and _merge_key(left) == _merge_key(right)
        and _range_of(left, ranges) == _range_of(right, ranges) != (0, 0)
    )


def _range_of(result: Result, ranges: PlannedPorts) -> PortRange:
    """Give the range of the requirement that holds the result's first port; (0, 0): not known."""
    ports = ranges.get((result.matrix, result.requirement, result.protocol), ())
    index = bisect_right(ports, (result.port or 0, 65536))
    return ports[index - 1] if index else (0, 0)


def _merge_group(group: list[Result]) -> Result:
    if len(group) == 1:
        return group[0]
    longest = max(group, key=lambda result: result.attempts)
    return replace(
        group[0],
        end_port=group[-1].end_port,
        proof=max((result.proof for result in group), key=PROOFS.index),
        because=longest.because,
        warnings=tuple(dict.fromkeys(text for result in group for text in result.warnings)),
        rtt_ms=_median_rtt_ms(group),
        attempts=longest.attempts,
        story=longest.story,
    )


def _median_rtt_ms(group: list[Result]) -> float | None:
    """Give the median over ports, where a result of many ports weighs as many."""
    times = sorted(
        (result.rtt_ms, result.port_count) for result in group if result.rtt_ms is not None
    )
    rest = sum(count for _, count in times) / 2
    for rtt_ms, count in times:
        rest -= count
        if rest <= 0:
            return rtt_ms
    return None
