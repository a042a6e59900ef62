"""What several matrices demand alike is one flow; everything else stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import (
    ChosenMatrix,
    Matrix,
    Requirement,
    Role,
    Stops,
    Waiver,
    choose_settings,
)
from netprobe.model.plan import Flow, Plan
from netprobe.model.ports import each
from netprobe.model.result import Also
from netprobe.plan.asked import keep_asked
from netprobe.plan.cover.cover import cover, with_flows
from netprobe.plan.expand import make_plan
from netprobe.plan.select import Selection, select
from tests.plan.conftest import TODAY, host, requirement
from tests.report.samples import PASSED

HOSTS = [
    *(host(name, "cp", addresses=(f"10.0.0.{n}",)) for n, name in enumerate(("c1", "c2"), 1)),
    *(host(name, "wk", addresses=(f"10.0.1.{n}",)) for n, name in enumerate(("w1", "w2"), 1)),
]
# Name, source, destination, address, protocol, port.
FlowKey = tuple[str, str, str, str, int | None]


def layer(name: str, *rows: Requirement, **extra: Any) -> ChosenMatrix:
    """A matrix with the roles cp and wk, which both imply node."""
    roles = {name: Role(name, implies=("node",)) for name in ("cp", "wk")} | {"node": Role("node")}
    return choose_settings(Matrix(name, name, roles, {}, rows, **extra), {})


def plan(*chosen: ChosenMatrix, hosts: Sequence[Host] = HOSTS) -> Plan:
    """The plan of these matrices."""
    return make_plan(chosen, Inventory(tuple(hosts)), TODAY)


def keys(flow: Flow) -> list[FlowKey]:
    """A flow of one port each."""
    ends = (flow.source.name, flow.destination.name, flow.address.text, flow.block.protocol)
    return [(*ends, port) for port in each(flow.block.ports)] or [(*ends, None)]


def count(made: Plan) -> Counter[FlowKey]:
    """How often each flow stands in the plan."""
    return Counter(key for flow in made.flows() for key in keys(flow))


def names(made: Plan, source: str, destination: str, port: int) -> list[str]:
    """All names of a flow, by each block that has it."""
    return [
        ", ".join("/".join(name) for name in flow.block.names_of_rows)
        for flow in made.flows()
        if (flow.source.name, flow.destination.name) == (source, destination)
        and port in each(flow.block.ports)
    ]


KUBELET = requirement("kubelet", "cp", "wk", tcp=((10250, 10250),))
ALL_PORTS = requirement("agents", "node", "node", tcp=((10248, 10252),))


def test_what_two_demand_is_one_flow_with_both_names() -> None:
    """The rest of the larger row stays; counts are those of a set."""
    made = plan(layer("base", KUBELET), layer("cni", ALL_PORTS))

    assert names(made, "c1", "w1", 10250) == ["base/kubelet, cni/agents"]
    assert names(made, "c1", "w1", 10251) == ["cni/agents"]
    assert names(made, "w1", "c1", 10250) == ["cni/agents"]
    assert set(count(made).values()) == {1}
    # 4 hosts, each to 3 others, at 5 ports.
    assert made.flow_count() == 60
    (shared,) = [block for block in made.blocks if block.also]
    assert (shared.also[0].purpose, shared.requirement.purpose) == (
        "agents purpose", "kubelet purpose",
    )  # fmt: skip


def test_the_alphabetically_first_name_is_written_in_the_order_of_the_command_line() -> None:
    """Whatever was given first; blocks stand where their matrix stands."""
    first = plan(layer("base", KUBELET), layer("cni", ALL_PORTS))
    second = plan(layer("cni", ALL_PORTS), layer("base", KUBELET))

    assert names(second, "c1", "w1", 10250) == ["base/kubelet, cni/agents"]
    assert [block.matrix for block in second.blocks][-1] == "base"
    assert count(first) == count(second)
    assert [block.index for block in second.blocks] == [*range(len(second.blocks))]


def test_three_matrices_and_rows_that_stand_twice_in_one() -> None:
    """A flow has the names of all; rows of one matrix stay two, each with the others' names."""
    twice = [KUBELET, requirement("again", "cp", "wk", tcp=((10250, 10250),))]
    made = plan(layer("b", *twice), layer("c", ALL_PORTS), layer("a", ALL_PORTS))

    assert names(made, "c1", "w1", 10250) == ["a/agents, b/kubelet, b/again, c/agents"]
    own = plan(layer("a", *twice), layer("b", ALL_PORTS))
    assert names(own, "c1", "w1", 10250) == ["a/kubelet, b/agents", "a/again, b/agents"]
    assert set(count(own).values()) == {1, 2}


def test_required_wins_and_so_does_what_stops_more() -> None:
    """A flow is optional, or waived, only where nobody demands it otherwise."""
    soft = requirement("soft", "cp", "wk", optional=True, stops=Stops("monitoring"))
    hard = requirement("hard", "cp", "wk", stops=Stops("pods"))
    waived = {"waivers": {"hard": Waiver("hard", "known")}}
    cases: list[tuple[list[ChosenMatrix], tuple[bool, bool, str]]] = [
        ([layer("a", soft), layer("b", hard)], (False, False, "pods")),
        ([layer("a", soft), layer("b", soft)], (True, False, "monitoring")),
        ([layer("a", soft), layer("b", hard, **waived)], (False, True, "pods")),
        ([layer("a", hard, **waived), layer("b", hard)], (False, False, "pods")),
    ]
    for chosen, expected in cases:
        made = plan(*chosen)
        found = {
            (one.requirement.optional, one.waiver is not None, str(one.requirement.weight))
            for one in made.blocks
        }
        assert found == {expected}
        assert made.flow_count() == 4


def test_one_of_both_may_say_what_the_service_is() -> None:
    """Probe, name of TLS, programs, existence and what is forbidden come from either; two probes
    are two flows."""
    plain = requirement("plain", "cp", "wk", process=("x",))
    told = requirement("told", "cp", "wk", probe="https", sni="a.example", process=("y",),
                       existing=True, binds="all", persistence="none")  # fmt: skip
    other = requirement("other", "cp", "wk", probe="kubelet")
    (block,) = plan(layer("a", plain), layer("b", told)).blocks

    row = block.requirement
    assert (row.probe, block.sni, block.existing, row.binds) == ("https", "a.example", True, "all")
    assert (row.process, row.persistence) == (("x", "y"), "none")
    assert plan(layer("a", other), layer("b", told)).flow_count() == 8


def test_either_or_holds_where_nobody_demands_the_flow_by_itself() -> None:
    """It stays a member of its group, whose other rows it excuses."""
    rows = [requirement(name, "cp", "wk", tcp=((port, port),), any_of="health")
            for name, port in (("one", 1), ("two", 2))]  # fmt: skip
    made = plan(layer("cni", *rows), layer("a", requirement("x", "cp", "wk", tcp=((1, 1),))))

    found = {block.requirement.id: block.group_name for block in made.blocks}
    assert found == {"two": "health", "x": None}
    assert {block.any_of and block.any_of.name for block in made.blocks} == {"health"}
    again = plan(layer("cni", *rows), layer("cni2", *rows))
    assert [(block.also[0].matrix, block.alone) for block in again.blocks] == [("cni2", False)] * 2


def test_what_must_not_answer_is_no_flow_that_must() -> None:
    """They stay two, and so do other protocols; denied twice is one."""
    denied = requirement("no", "cp", "wk", tcp=((10250, 10250),), expect="denied")
    udp = requirement("udp", "cp", "wk", udp=((10250, 10250),))
    assert plan(layer("a", KUBELET), layer("b", denied)).flow_count() == 8
    assert plan(layer("a", KUBELET), layer("b", udp)).flow_count() == 8
    assert plan(layer("a", denied), layer("b", denied)).flow_count() == 4


def test_a_host_to_itself_is_of_those_that_ask_for_it() -> None:
    """Matrices with local: true and others go together, in any order."""
    for one, other in (("a", "b"), ("b", "a")):
        made = plan(layer(one, ALL_PORTS, local=True), layer(other, ALL_PORTS))
        assert made.flow_count() == 4 * 4 * 5
        assert set(count(made).values()) == {1}
        assert names(made, "c1", "c1", 10250) == [f"{one}/agents"]
        assert names(made, "c1", "w1", 10250) == ["a/agents, b/agents"]
    both = [layer(name, ALL_PORTS, local=True) for name in ("a", "b")]
    made = plan(*both, layer("c", ALL_PORTS))
    assert set(count(made).values()) == {1}
    assert names(made, "c1", "c1", 10250) == ["a/agents, b/agents"]


def test_overlays_measure_a_pair_once() -> None:
    """The path MTU of two matrices between the same hosts is one flow, named by both."""
    vxlan = requirement("vxlan", "node", "node", udp=((8472, 8472),), probe="vxlan")
    made = plan(layer("a", vxlan), layer("b", vxlan))

    mtu = [block for block in made.blocks if block.requirement.id == "path-mtu"]
    assert [block.pair_count() for block in mtu] == [12]
    assert [one.requirement for one in mtu[0].also] == ["path-mtu"]
    chosen = [layer("a", vxlan), layer("b", KUBELET, vxlan)]
    only = select(made, Selection(only=("vxlan",)), chosen, Inventory(tuple(HOSTS)))
    assert [block.requirement.id for block in only.blocks] == ["vxlan", "path-mtu"]


def test_any_name_finds_the_flow() -> None:
    """--only and --retry know each of its names; the requirements of all are listed."""
    chosen = [layer("base", KUBELET), layer("cni", ALL_PORTS)]
    made = plan(*chosen)
    only = select(made, Selection(only=("agents",)), chosen, Inventory(tuple(HOSTS)))
    assert (only.flow_count(), made.flow_count()) == (60, 60)
    assert [(one.matrix, one.id) for one in only.requirements] == [
        ("base", "kubelet"), ("cni", "agents"),
    ]  # fmt: skip
    few = select(made, Selection(only=("kubelet",)), chosen, Inventory(tuple(HOSTS)))
    assert few.flow_count() == 4
    assert [one.ports for one in few.requirements] == [((10250, 10250),), ((10248, 10252),)]

    asked = replace(
        PASSED, matrix="cni", requirement="agents", source="c1", destination="w1",
        address="10.0.1.1", port=10250, end_port=10250,
    )  # fmt: skip
    again = keep_asked(made, [asked], "request.json")
    assert names(again, "c1", "w1", 10250) == ["base/kubelet, cni/agents"]
    assert again.flow_count() == 1
    shared = replace(asked, matrix="base", requirement="kubelet", also=(Also("cni", "agents"),))
    assert keep_asked(plan(chosen[1]), [shared], "request.json").flow_count() == 1


def test_a_covering_plan_asks_again_by_any_name() -> None:
    """What an earlier run probed beside the pairs that cover is found under each of its names."""
    hosts = [host(f"w{n}", "wk", addresses=(f"10.0.1.{n}",), zone="z") for n in range(1, 7)]
    peers = requirement("peers", "node", "node", tcp=((179, 179),))
    covering = cover(plan(layer("a", peers), layer("b", peers), hosts=hosts))
    probed = {(flow.source.name, flow.destination.name) for flow in covering.plan.flows()}
    pairs = ((one, other) for one in hosts for other in hosts if one is not other)
    source, end = next(pair for pair in pairs if (pair[0].name, pair[1].name) not in probed)
    earlier = replace(
        PASSED, source=source.name, destination=end.name, address=end.addresses[0].text,
        port=179, end_port=179, requirement="peers", matrix="0", also=(Also("b", "peers"),),
    )  # fmt: skip

    again = with_flows(covering, [earlier])
    assert again.plan.flow_count() == covering.plan.flow_count() + 1


ROLES = st.sampled_from(["cp", "wk", "node"])
PORTS = st.tuples(st.integers(1, 6), st.integers(0, 3)).map(lambda at: ((at[0], at[0] + at[1]),))
ROWS = st.lists(st.tuples(ROLES, ROLES, PORTS), min_size=1, max_size=3)


@pytest.mark.slow
@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=2, max_size=3))
def test_the_flows_of_all_and_none_twice(kinds: list[tuple[list[Any], bool]]) -> None:
    """Each flow of any matrix is there, with exactly the names of the rows that demand it."""
    layers = [
        layer(f"m{n}", *(requirement(f"r{at}", a, b, tcp=ports) for at, (a, b, ports) in
                         enumerate(rows)), local=local)
        for n, (rows, local) in enumerate(kinds)
    ]  # fmt: skip
    wanted: dict[FlowKey, set[tuple[str, str]]] = {}
    for one in layers:
        for flow in plan(one).flows():
            for key in keys(flow):
                wanted.setdefault(key, set()).add(flow.block.names_of_rows[0])
    found: dict[FlowKey, list[tuple[tuple[str, str], ...]]] = {}
    made = plan(*layers)
    for flow in made.flows():
        for key in keys(flow):
            found.setdefault(key, []).append(flow.block.names_of_rows)

    assert set(found) == set(wanted)
    for key, blocks in found.items():
        assert {name for some in blocks for name in some} == wanted[key]
        # One block for each row of the first matrix that demands it.
        first = min(wanted[key])[0]
        assert len(blocks) == len([name for name in wanted[key] if name[0] == first])
        assert all(some[0][0] == first for some in blocks)


def test_one_matrix_is_left_alone() -> None:
    """Nothing is cut where there is nothing to join."""
    alone = plan(layer("a", KUBELET, ALL_PORTS, local=True))
    assert [block.pair_count() for block in alone.blocks] == [4, 16]
