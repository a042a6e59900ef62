"""The part of a plan that the filters leave."""

from __future__ import annotations

import pytest

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.plan.expand import make_plan
from netprobe.plan.select import Selection, select
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

INVENTORY = Inventory(
    tuple(host(f"n{one}", "node", addresses=(f"10.0.0.{one}",)) for one in (1, 2))
)
# Both overlays run between the same hosts, so that the whole plan has one path-mtu block.
MATRIX = chosen_matrix(
    [
        requirement("vxlan", "node", "node", udp=((8472, 8472),), probe="vxlan"),
        requirement("geneve", "node", "node", udp=((6081, 6081),), probe="geneve"),
        requirement("api", "node", "node"),
    ]
)


def selected(**words: tuple[str, ...]) -> Plan:
    """What is left of the plan."""
    plan = make_plan([MATRIX], INVENTORY, TODAY)
    return select(plan, Selection(**words), [MATRIX], INVENTORY)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (("vxlan",), ["vxlan", "path-mtu"]),
        (("geneve",), ["geneve", "path-mtu"]),
        (("vxlan", "path-mtu"), ["vxlan", "path-mtu"]),
        (("path-mtu",), ["path-mtu"]),
        (("api",), ["api"]),
    ],
)
def test_an_overlay_brings_its_path_mtu(only: tuple[str, ...], expected: list[str]) -> None:
    """A path that carries the overlay's small packets alone does not serve it."""
    plan = selected(only=only)

    assert [block.requirement.id for block in plan.blocks] == expected
    assert [block.index for block in plan.blocks] == list(range(len(expected)))


def test_the_path_mtu_names_the_chosen_overlay() -> None:
    """Of overlays that share their pairs, the reader sees the one that was chosen."""
    assert "(geneve: 6081)" in selected(only=("geneve",)).blocks[1].requirement.purpose


def test_other_filters_hold_for_the_path_mtu_too() -> None:
    """The pairs are those of the overlay's flows."""
    plan = selected(only=("vxlan",), from_=("n1",))

    assert [(flow.source.name, flow.destination.name) for flow in plan.flows()] == [
        ("n1", "n2")
    ] * 2
    assert plan.selection == "--from n1 --only vxlan: 2 of 8 flows"
    assert (plan.some_ports, selected(from_=("n1",)).some_ports) == (True, False)


def test_an_unknown_name_gets_the_nearest_else_all() -> None:
    """A slip is told with the name that was meant; where nothing is near, all names are listed."""
    with pytest.raises(RequestError, match=r"^--limit nod: no host or role of that name; did you"):
        selected(limit=("nod",))
    with pytest.raises(
        RequestError, match=r"^--limit zz: .*; expected one of external, master, n1, n2"
    ):
        selected(limit=("zz",))
    with pytest.raises(RequestError, match=r"^--only zz: .*; expected one of api, geneve, path"):
        selected(only=("zz",))


def test_no_filter_is_the_whole_plan() -> None:
    """Nothing is said of filters where there are none."""
    assert selected().selection is None
    assert selected().flow_count() == 8


@pytest.mark.parametrize("word", ["resolver", "clock"])
def test_a_result_of_hosts_is_no_row_to_choose(word: str) -> None:
    """It says why, and what to choose instead."""
    with pytest.raises(RequestError, match=f"^--only {word}: no row has this result: each run"):
        selected(only=(word,))


def test_a_row_may_be_named_with_its_matrix() -> None:
    """Of two matrices with a row of one id; a flow of both has either name."""
    api = requirement("api", "node", "node", tcp=((8443, 8443),))
    other = chosen_matrix([api, requirement("kube-api", "node", "node")], name="k")
    both = [MATRIX, other]
    plan = make_plan(both, INVENTORY, TODAY)

    def ports(*only: str) -> list[Ports]:
        blocks = select(plan, Selection(only=only), both, INVENTORY).blocks
        return sorted(block.ports for block in blocks)

    assert ports("api") == [((6443, 6443),), ((8443, 8443),)]
    assert ports("k:api") == [((8443, 8443),)]
    assert ports("m:api") == ports("k:kube-api") == ports("kube-api") == [((6443, 6443),)]
    assert selected(only=("m:vxlan",)).blocks[1].requirement.id == "path-mtu"
    with pytest.raises(RequestError, match=r"^--only x:api: no requirement of that name"):
        ports("x:api")
