"""What is required and not planned: flows from where nothing can run, and rows without a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from netprobe.model.matrix import Requirement, Waiver
from netprobe.model.plan import Block, Skipped
from netprobe.model.ports import count as count_ports

RowOfSource = tuple[str, str, str]


def count_unable(skipped: Iterable[Skipped], unable: Sequence[Block]) -> tuple[Skipped, ...]:
    """Say in what is skipped how many required flows of each source nobody asks.

    A flow that several rows demand counts for the first of them.
    """
    flows: Counter[RowOfSource] = Counter()
    sources = {host.name for block in unable for host in block.sources}
    for block in unable:
        if not block.requirement.optional and block.waiver is None:
            flows.update(_count_by_source(block))
    return tuple(
        replace(one, flows=flows[one.matrix, one.requirement, one.source])
        if one.source is not None and (one.source in sources or one.flows is not None)
        else one
        for one in skipped
    )


def is_needed(requirement: Requirement, waiver: Waiver | None) -> bool:
    """Tell whether a row decides by itself that flows must be open."""
    by_itself = not (requirement.optional or requirement.any_of)
    return requirement.expect == "allowed" and by_itself and waiver is None


def _count_by_source(block: Block) -> Counter[RowOfSource]:
    ports = count_ports(block.ports) or 1
    return Counter(
        {
            (block.matrix, block.requirement.id, host.name): ports * len(tuple(block.peers(place)))
            for place, host in enumerate(block.sources)
        }
    )
