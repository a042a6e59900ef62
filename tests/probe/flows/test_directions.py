"""Of two hosts that send each other packets without ports, one asks the other first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.inventory import Inventory
from netprobe.model.matrix import Requirement
from netprobe.model.plan import PATH_MTU, Plan
from netprobe.plan.expand import make_plan
from netprobe.probe.flows.directions import Directions
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

Pairs = set[tuple[str, str]]


def plan_of(count: int, *wanted: Requirement) -> Plan:
    """So many hosts with the roles node and, but for the first one, external."""
    hosts = [
        host(
            f"n{number}", "node", *(["external"] if number else []), addresses=(f"10.0.1.{number}",)
        )
        for number in range(count)
    ]
    return make_plan([chosen_matrix(list(wanted))], Inventory(tuple(hosts)), TODAY)


def pairs(plan: Plan, row: str = "ipip") -> Pairs:
    """Who asks whom for a row."""
    return {
        (flow.source.name, flow.destination.name)
        for flow in plan.flows()
        if flow.block.requirement.id == row
    }


def orders(plan: Plan) -> list[tuple[int, int, int]]:
    """The places of all flows in the plan."""
    return sorted(
        block.order(place, peer)
        for block in plan.blocks
        for place in range(len(block.sources))
        for peer in block.peers(place)
    )


def ipip(source: str = "node", destination: str = "node", **more: Any) -> Requirement:
    """A row of IP protocol 4."""
    return requirement("ipip", source, destination, ipproto=(4,), **more)


@pytest.mark.parametrize("count", range(2, 8))
def test_every_pair_has_one_direction_that_nothing_helps(count: int) -> None:
    """And of three or more hosts each is asked before it has sent that host anything."""
    plan = plan_of(count, ipip())

    first, later = Directions(plan).split()

    assert pairs(first) == {(end, start) for start, end in pairs(later)}
    assert pairs(first) | pairs(later) == pairs(plan)
    assert sorted(orders(first) + orders(later)) == orders(plan)
    assert all(map(Directions(plan).goes_both_ways, plan.flows()))
    if count > 2:
        assert {end for _, end in pairs(first)} == {end for _, end in pairs(plan)}


def test_only_what_has_no_ports_waits() -> None:
    """The path of such a pair is measured with its packets."""
    width = replace(requirement("width", "node", "node", icmp="echo"), probe=PATH_MTU)
    plan = plan_of(3, ipip(), requirement("api", "node", "node"), width)

    first, later = Directions(plan).split()

    assert pairs(first, "api") == pairs(plan, "api")
    assert pairs(later, "width") == pairs(later)
    assert pairs(first, "width") == pairs(first)
    assert {block.requirement.id for block in later.blocks} == {"ipip", "width"}
    both_ways = filter(Directions(plan).goes_both_ways, plan.flows())
    assert {flow.block.requirement.id for flow in both_ways} == {"ipip"}


def test_what_goes_one_way_waits_for_nothing() -> None:
    """Nor does anything else, of a plan that has no such rows."""
    hosts = (host("w", "node"), host("ee", "external"))
    one_way = chosen_matrix([ipip("node", "external")])
    plans = [
        plan_of(3, requirement("api", "node", "node")),
        make_plan([one_way], Inventory(hosts), TODAY),
    ]

    for plan in plans:
        first, later = Directions(plan).split()

        assert orders(first) == orders(plan)
        assert not later.blocks
        assert not any(map(Directions(plan).goes_both_ways, plan.flows()))


def test_a_row_helps_another_one_that_goes_the_other_way() -> None:
    """Only the flows whose hosts are asked in both directions wait."""
    plan = plan_of(3, ipip("external", "node"))

    first, later = Directions(plan).split()

    assert (pairs(first), pairs(later)) == (
        {("n1", "n0"), ("n2", "n0"), ("n1", "n2")}, {("n2", "n1")},
    )  # fmt: skip
    both_ways = filter(Directions(plan).goes_both_ways, plan.flows())
    assert {flow.source.name for flow in both_ways} == {"n1", "n2"}


def test_what_must_not_come_is_asked_before_anything_helps_it() -> None:
    """Whatever the turns of the hosts are."""
    denied = ipip(expect="denied")
    plan = plan_of(2, requirement("esp", "node", "external", ipproto=(50,)), denied)
    blocks = [
        replace(block, chosen=((), (0,))) if block.requirement.id == "ipip" else block
        for block in plan.blocks
    ]

    first, later = Directions(replace(plan, blocks=tuple(blocks))).split()

    assert (pairs(first), pairs(first, "esp")) == ({("n1", "n0")}, set())
    assert (pairs(later), pairs(later, "esp")) == (set(), {("n0", "n1")})
