"""A sample uses every host as what it is, and the edges of every range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.model.inventory import Inventory
from netprobe.model.plan import Block, Plan
from netprobe.plan.choices import sample
from netprobe.plan.expand import make_plan

from .conftest import TODAY, chosen_matrix, host, requirement


def planned(nodes: int, masters: int, local: bool) -> Plan:
    hosts = [host(f"n{i}", "node", addresses=(f"10.0.1.{i}",)) for i in range(nodes)]
    hosts += [host(f"m{i}", "master", addresses=(f"10.0.2.{i}",)) for i in range(masters)]
    wanted = [
        requirement("mesh", "node", "node", tcp=((7000, 7999), (22, 22))),
        requirement("up", "node", "master"),
        requirement("down", "master", "node"),
    ]
    return make_plan([chosen_matrix(wanted, local=local)], Inventory(tuple(hosts)), TODAY)


def ends(block: Block) -> tuple[set[str], set[str]]:
    flows = list(block.flows())
    return {flow.source.name for flow in flows}, {flow.destination.name for flow in flows}


@pytest.mark.slow
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_every_host_stays_source_and_destination(
    nodes: int, masters: int, number: int, local: bool
) -> None:
    """Whatever the numbers: no host falls out of a requirement, and nothing is added."""
    plan = planned(nodes, masters, local)
    sampled, words = sample(plan, number)

    for whole, part in zip(plan.blocks, sampled.blocks, strict=True):
        assert ends(part) == ends(whole)
        assert set(part.flows()) <= {
            type(flow)(part, flow.source, flow.destination, flow.address) for flow in whole.flows()
        }
        assert part.pair_count() == len(list(part.flows()))
    assert f"{sampled.flow_count():,} of {plan.flow_count():,} flows" in words


def test_edges_of_ranges_come_first() -> None:
    """Two ports of a range are its ends; a short range is taken whole."""
    sampled, _ = sample(planned(3, 1, False), 3)

    assert sampled.blocks[0].ports == ((22, 22), (7000, 7000), (7500, 7500), (7999, 7999))


def test_one_of_each_is_told_as_one() -> None:
    """The words that stand in every report of a sample."""
    plan = planned(3, 1, False)

    assert "(1 peer of each host, 1 port of each range, edges first)" in sample(plan, 1)[1]
    assert "(2 peers of each host, 2 ports of each range, edges first)" in sample(plan, 2)[1]


def test_a_sample_is_the_same_every_time() -> None:
    """Two runs of one sample can be compared."""
    plan = planned(9, 3, True)

    assert sample(plan, 2) == sample(plan, 2)
