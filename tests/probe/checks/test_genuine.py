"""A few ports of each range stand for it, where no recorder told a TTL."""

from __future__ import annotations

import pytest

from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.checks.genuine import RANGE_SAMPLE, find_by_sample


@pytest.mark.parametrize(
    ("asked_for", "bad", "most"),
    [
        # All alike: a few speak for a thousand.
        (((1000, 1999),), ((1000, 1999),), RANGE_SAMPLE),
        (((1000, 1999),), (), RANGE_SAMPLE),
        # A port that stands alone is asked itself.
        (((22, 22), (443, 443), (1000, 1999)), ((443, 443),), RANGE_SAMPLE + 2),
        # Where the few differ, the range is halved.
        (((1000, 1999),), ((1500, 1999),), 20 * RANGE_SAMPLE),
        (((1000, 1007),), ((1003, 1003),), RANGE_SAMPLE),
    ],
)
async def test_a_range_is_asked_where_it_differs(asked_for: Ports, bad: Ports, most: int) -> None:
    """What is found is right, and nothing is asked that a sample tells."""
    asked: list[Ports] = []

    async def ask(ports: Ports) -> Ports:
        asked.append(ports)
        return port_sets.intersect(ports, bad)

    assert await find_by_sample(asked_for, asked_for, ask) == bad
    assert sum(map(port_sets.count, asked)) <= most
