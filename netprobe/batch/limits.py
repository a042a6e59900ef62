"""How much a host may have written: bounds that come from what the plan asks of it.

A host's root can write anything under the host's key, and a few bytes can unpack to all memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from netprobe.model import ports as port_sets
from netprobe.model.plan import Plan

MIB = 1024 * 1024
MESSAGES_A_FLOW = 64
# Messages of no flow (routes, stories, whoever else is connected) are as many as those of so many.
SPARE_FLOWS = 1000
VALUES_A_MESSAGE, BYTES_A_MESSAGE = 8, 128
# Of a plan in a file: ten thousand hosts take three quarters of the values.
MOST_PLAN_BYTES, MOST_PLAN_VALUES = 48 * MIB, 2_500_000


class Allowance(NamedTuple):
    """What one file of a host may hold at most: messages, their values and bytes; the file itself
    has no more bytes than its messages, which are packed in it. ``asked``: ports that its orders
    may ask."""

    messages: int
    values: int
    bytes: int
    asked: int


def allow(flows: int) -> Allowance:
    """Give what a host may write of so many planned flows."""
    messages = MESSAGES_A_FLOW * (flows + SPARE_FLOWS)
    return Allowance(messages, VALUES_A_MESSAGE * messages, BYTES_A_MESSAGE * messages, messages)


def count_flows(plan: Plan) -> Mapping[str, int]:
    """Count the planned flows of each host, as source or as destination, by its name."""
    found: Counter[str] = Counter()
    for block in plan.blocks:
        ports = port_sets.count(block.ports) or 1
        for host in block.sources:
            found[host.name] += ports * len(block.destinations)
        for host, _ in block.destinations:
            found[host.name] += ports * len(block.sources)
    return found


def count_values(text: bytes) -> int:
    """Count the values of a JSON text, or some more: those in lists and objects, and these."""
    return sum(map(text.count, (b",", b"[", b"{", b":")))


def is_plan_too_large(text: bytes) -> bool:
    """Tell whether a plan, as JSON, takes more memory than a file may cost whoever reads it."""
    return len(text) > MOST_PLAN_BYTES or count_values(text) > MOST_PLAN_VALUES
