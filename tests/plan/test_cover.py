"""Covering plans: who is paired with whom, what they find, what they say of the rest."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from netprobe.model.plan import Plan
from netprobe.model.ports import count as count_ports
from netprobe.plan.cover.cover import Cover, cover, slice_ports
from tests.plan.conftest import host, requirement
from tests.plan.covering import (
    Fault,
    OneFlow,
    check_against_truth,
    draw_faults,
    simulate,
    truth_of,
    without_agent,
    zone_hosts,
)

Planner = Callable[..., Plan]
ROWS = [
    requirement("api", "node", "node", tcp=((6443, 6443), (2379, 2379), (2380, 2380))),
    requirement("range", "node", "node", tcp=((7000, 7119),)),
    requirement("vxlan", "node", "node", udp=((8472, 8472),)),
    requirement("ping", "node", "node", icmp=True),
]
WIRES = [("tcp", 6443, 6443), ("tcp", 7000, 7119), ("udp", 8472, 8472), ("icmp", 0, 0)]
ZONES, SIZE = 6, 10


@pytest.fixture
def covered(plan_of: Planner) -> Callable[..., Cover]:
    """Cover the plan of 60 hosts in six zones."""

    def make(copies: int = 1, seed: int = 0, **extra: Any) -> Cover:
        return cover(plan_of(ROWS, zone_hosts(ZONES, SIZE, "node"), **extra), copies, seed)

    return make


def test_every_host_is_probed_to_and_from_every_zone(covered: Callable[..., Cover]) -> None:
    """For every row, K times; and every port of every range between every two zones."""
    for copies in (1, 3):
        plan = covered(copies, local=True).plan
        for row in ROWS:
            blocks = [block for block in plan.blocks if block.requirement.id == row.id]
            to_zone: dict[tuple[str, str], set[str]] = {}
            from_zone: dict[tuple[str, str], set[str]] = {}
            ports: dict[tuple[str, str], set[int]] = {}
            for block in blocks:
                for flow in block.flows():
                    start, end = flow.source, flow.destination
                    if start.name != end.name:
                        to_zone.setdefault((start.name, str(end.zone)), set()).add(end.name)
                        from_zone.setdefault((str(start.zone), end.name), set()).add(start.name)
                        known = ports.setdefault((str(start.zone), str(end.zone)), set())
                        known.update(p for first, last in block.ports for p in (first, last))
                        known.update(p for a, b in block.ports for p in range(a, b + 1))
            assert {len(some) >= copies for some in to_zone.values()} == {True}
            assert {len(some) >= copies for some in from_zone.values()} == {True}
            assert len(to_zone) == len(from_zone) == ZONES * SIZE * ZONES
            assert len(ports) == ZONES * ZONES
            wanted = {p for a, b in row.tcp or row.udp for p in range(a, b + 1)}  # type: ignore[misc]
            assert all(some == wanted for some in ports.values())


def test_the_pairs_are_hosts_times_zones(covered: Callable[..., Cover]) -> None:
    """360 of 3,540 pairs, whatever the number of rows; the seed chooses others."""
    about = covered().plan.coverage
    assert about is not None
    assert (about.pairs, about.all_pairs) == (ZONES * SIZE * ZONES, 60 * 59)
    assert covered().plan == covered().plan
    assert covered(seed=1).plan != covered().plan


def test_of_a_range_each_pair_asks_the_first_and_the_last_port_and_a_slice() -> None:
    """All slices together are the range; short ranges are not cut."""
    slices = [slice_ports(((7000, 7999), (22, 22), (100, 103)), place, 100) for place in range(100)]
    assert {port for ports in slices for a, b in ports for port in range(a, b + 1)} == {
        22, *range(100, 104), *range(7000, 8000),
    }  # fmt: skip
    for ports in slices:
        held = {port for a, b in ports for port in range(a, b + 1)}
        assert {7000, 7999, 22, 100, 103} <= held
        assert len(held) <= 17


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copies", "seeds"), [pytest.param(1, 5, marks=pytest.mark.full), (1, 1), (2, 1)]
)
def test_structural_faults_are_found_and_none_is_invented(
    covered: Callable[..., Cover], copies: int, seeds: int
) -> None:
    """Zone to zone, host to zone and zone to host always, and all of what fails."""
    for seed in range(seeds):
        covering = covered(copies, seed)
        faults = draw_faults(random.Random(seed), ZONES, SIZE, WIRES)
        found = simulate(covering, truth_of(faults))
        check_against_truth(covering.whole.flow_count(), found, faults)


@pytest.mark.slow
def test_a_dead_host_stands_for_nobody_and_blows_nothing_up(covered: Callable[..., Cover]) -> None:
    """Its flows are not-tested, its partners get others, and no rectangle is probed."""
    covering = covered()

    def truth(flow: OneFlow) -> Any:
        return "blocked" if "z1-3" in flow[:2] and flow[0] != flow[1] else "pass"

    found = simulate(covering, truth)
    about = covering.plan.coverage
    assert about is not None
    assert found.flows < about.probed * 1.15
    for flow, group in found.rest():
        dead = "z1-3" in flow[:2]
        assert group.verdict == ("not-tested" if dead else "covered"), (flow, group)
        assert group.reason == ("host-not-covered" if dead else "covered")
    partners = {flow[1] for flow in found.probed if flow[0] == "z2-0" and flow[1] != "z1-3"}
    assert any(name.startswith("z1-") for name in partners)


@pytest.mark.slow
def test_a_source_that_nobody_gets_onto_is_covered_by_nobody(covered: Callable[..., Cover]) -> None:
    """Its own flows are not-tested; hosts that it alone was to probe are probed by another."""
    found = simulate(covered(), lambda flow: "not-tested" if flow[0] == "z4-4" else "pass")
    assert all((flow[0] == "z4-4") == (one.verdict == "not-tested") for flow, one in found.rest())
    reached = {flow[1] for flow, seen in found.probed.items() if seen == "pass"}
    assert len(reached) == ZONES * SIZE
    for end in reached:
        starts = {
            flow[0] for flow, seen in found.probed.items() if flow[1] == end and seen == "pass"
        }
        assert any(start.startswith("z4-") for start in starts)


def test_what_must_not_answer_is_completed_like_anything_else(plan_of: Planner) -> None:
    """One host that answers from one zone is exposed, and the rest of its zone is probed."""
    rows = [requirement("closed", "node", "node", tcp=((10255, 10255),), expect="denied")]
    covering = cover(plan_of(rows, zone_hosts(3, 6, "node")))
    open_ = {f"z0-{number}" for number in range(6)}

    def truth(flow: OneFlow) -> Any:
        return "exposed" if flow[0] in open_ and flow[1] == "z2-2" else "pass"

    found = simulate(covering, truth)
    assert found.failed() == {(name, "z2-2", "tcp", 10255) for name in open_}
    assert all(group.expect == "denied" for _, group in found.rest())


def test_destinations_without_an_agent_stand_for_nobody_with_one(plan_of: Planner) -> None:
    """They are probed in another way: each gets its own probe from every zone."""
    hosts = zone_hosts(2, 4, "node")
    hosts[5] = without_agent(hosts[5])
    covering = cover(plan_of([ROWS[2]], hosts))
    found = simulate(covering, lambda flow: "inconclusive" if flow[1] == "z1-1" else "pass")
    bare = {flow for flow in found.probed if flow[1] == "z1-1"}
    assert {flow[0].partition("-")[0] for flow in bare} == {"z0", "z1"}
    for flow, group in found.rest():
        assert "z1-1" not in {stand[1] for stand in group.by} or flow[1] == "z1-1"


def test_hosts_of_several_roles_are_covered_for_each_row(plan_of: Planner) -> None:
    """A master is a node too; each row reaches all its destinations from all its zones."""
    hosts = zone_hosts(3, 4, "node")
    for zone in range(3):
        hosts[zone * 4] = host(
            f"z{zone}-0", "master", addresses=(f"10.{zone}.0.1",), zone=f"z{zone}"
        )
    rows = [ROWS[0], requirement("kubelet", "master", "node", tcp=((10250, 10250),))]
    plan = cover(plan_of(rows, hosts)).plan
    asked = {(flow.source.name, flow.destination.name) for flow in plan.flows()
             if flow.block.requirement.id == "kubelet"}  # fmt: skip
    assert {end for _, end in asked} == {one.name for one in hosts}
    for zone in range(3):
        ends = {end for start, end in asked if start == f"z{zone}-0"}
        assert ends == {one.name for one in hosts} - {f"z{zone}-0"}


@pytest.mark.slow
def test_what_takes_too_much_is_given_up_and_said(
    covered: Callable[..., Cover], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the budget nobody stands for what is left between the two zones."""
    monkeypatch.setattr("netprobe.plan.cover.completion.MOST_FLOWS", 50)
    fault = Fault("host-zone", frozenset({"z0-1"}), frozenset(f"z2-{n}" for n in range(10)),
                  "tcp", 6443, 6443)  # fmt: skip
    found = simulate(covered(), truth_of([fault]))
    left = [group for group in found.coverage.unprobed if group.reason == "not-completed"]
    assert [(one.from_zone, one.to_zone, one.verdict) for one in left] == [
        ("z0", "z2", "not-tested")
    ]


@pytest.mark.slow
def test_flows_are_counted_whatever_their_number(covered: Callable[..., Cover]) -> None:
    """The counts of a run and of its rest are those of the whole plan."""
    covering = covered()
    found = simulate(covering, lambda _: "pass")
    assert sum(one.flows for one in found.coverage.unprobed) + found.flows == (
        covering.whole.flow_count()
    )
    assert all(count_ports(one.ports) >= 1 or one.protocol == "icmp"
               for one in found.coverage.unprobed)  # fmt: skip
