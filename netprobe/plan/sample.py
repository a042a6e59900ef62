"""A part of a plan that is asked for: some peers of each host, some ports of each range.

Deterministic: the same plan and number give the same sample. Every host that the plan uses as a
source or destination of a requirement is still used as one; of a range its edges come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from netprobe.model.plan import Block, Plan
from netprobe.model.ports import PortRange, Ports


def sample(plan: Plan, number: int) -> tuple[Plan, str]:
    """Give the sampled plan, and one sentence with its coverage."""
    blocks = tuple(_sample_block(block, number) for block in plan.blocks)
    sampled = replace(plan, blocks=blocks)
    pairs = (_count_pairs(sampled), _count_pairs(plan))
    flows = (sampled.flow_count(), plan.flow_count())
    words = (
        f"{pairs[0]:,} of {pairs[1]:,} pairs and {flows[0]:,} of {flows[1]:,} flows "
        f"({_word_number(number, 'peer')} of each host, {_word_number(number, 'port')} of each "
        "range, edges first); what was not probed may be blocked"
    )
    return sampled, words


def _word_number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _count_pairs(plan: Plan) -> int:
    return sum(block.pair_count() for block in plan.blocks)


def _sample_block(block: Block, number: int) -> Block:
    ports = tuple(entry for one in block.ports for entry in _sample_ports(one, number))
    return replace(block, ports=ports, chosen=_choose_peers(block, number))


def _sample_ports(entry: PortRange, number: int) -> Ports:
    """Give the first, the last, and the rest spread evenly between them."""
    first, last = entry
    if last - first < number:
        return (entry,)
    if number == 1:
        return ((first, first),)
    step = (last - first) / (number - 1)
    return tuple((port, port) for port in (first + round(step * n) for n in range(number)))


def _choose_peers(block: Block, number: int) -> tuple[tuple[int, ...], ...]:
    """For each source the indexes of its destinations: windows that turn around all of them."""
    total = len(block.destinations)
    chosen = [
        _next_peers(block, index, min(total, max(number, -(-total // len(block.sources)))))
        for index in range(len(block.sources))
    ]
    reached = {peer for peers in chosen for peer in peers}
    for peer in range(total):
        if peer not in reached:
            _assign_to_first_source(block, peer, chosen)
    return tuple(tuple(sorted(peers)) for peers in chosen)


def _next_peers(block: Block, index: int, size: int) -> list[int]:
    """The next ``size`` destinations behind this source's place, itself left out."""
    total = len(block.destinations)
    start = index * size + 1
    turned = [(start + offset) % total for offset in range(total)]
    return [peer for peer in turned if block.has_flow(index, peer)][:size]


def _assign_to_first_source(block: Block, peer: int, chosen: Sequence[list[int]]) -> None:
    """Give a destination that no window holds to the first source that may have it."""
    for index in range(len(block.sources)):
        source = (peer + index) % len(block.sources)
        if block.has_flow(source, peer):
            chosen[source].append(peer)
            return
