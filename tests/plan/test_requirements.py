"""What a plan tells of its requirements and of the roles of its hosts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from msgspec.structs import replace

from netprobe.model.inventory import Inventory
from netprobe.model.matrix import Role, Waiver
from netprobe.model.plan import Plan
from netprobe.plan.choices import sample
from netprobe.plan.expand import make_plan
from netprobe.plan.select import Selection, select
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

PlanOf = Callable[..., Plan]
HOSTS = [host("m0", "master"), host("w1", "node", addresses=("10.0.0.9",))]


def test_own_roles_come_before_implied_ones() -> None:
    """Roles are those of the matrices, whatever word the inventory has for them."""
    chosen = chosen_matrix([requirement("a", "node", "master")])
    roles = {**chosen.matrix.roles, "node": Role("node", aliases=("kube_node",))}
    chosen = replace(chosen, matrix=replace(chosen.matrix, roles=roles))
    other = chosen_matrix([requirement("b", "external", "master")])
    other = replace(other, matrix=replace(other.matrix, name="other"))
    hosts = (host("m", "rack", "master"), host("w", "kube-node", "external"), host("x", "rack"))
    plan = make_plan([chosen, other], Inventory(hosts), TODAY)

    assert plan.roles == {"m": ("master", "node"), "w": ("node", "external"), "x": ()}


def test_one_element_a_protocol(plan_of: PlanOf) -> None:
    """A requirement is listed once a protocol, whatever families and destinations it has."""
    wanted = requirement("a", "node", "master", tcp=((5, 9),), udp=((53, 53),), optional=True)
    both = host("d", "node", addresses=("10.0.0.7", "fd00::7"))
    plan = plan_of([wanted], [*HOSTS, both])

    assert [(one.id, one.protocol, one.ports) for one in plan.requirements] == [
        ("a", "tcp", ((5, 9),)),
        ("a", "udp", ((53, 53),)),
    ]
    first = plan.requirements[0]
    assert (first.matrix, first.from_, first.to, first.row) == ("m", ("node",), ("master",), "Row")
    assert (first.optional, first.purpose, first.existing) == (True, "a purpose", False)


def test_what_runs_before_the_installation_at_some_of_them(plan_of: PlanOf) -> None:
    """``existing`` says neither where it holds for some destinations only."""
    chosen = chosen_matrix([
        replace(requirement("a", "node", "node"), destinations=("node", "external")),
        requirement("b", "node", "external"),
        requirement("c", "node", "node", existing=True),
    ])  # fmt: skip
    roles = {**chosen.matrix.roles, "external": Role("external", existing=True)}
    chosen = replace(chosen, matrix=replace(chosen.matrix, roles=roles))
    plan = make_plan([chosen], Inventory((*HOSTS, host("dns", "external"))), TODAY)

    assert [(one.id, one.existing) for one in plan.requirements] == [
        ("a", None), ("b", True), ("c", True),
    ]  # fmt: skip


def test_waivers_that_hold(plan_of: PlanOf) -> None:
    """A waiver stands there as the file has it; one that expired does not."""
    waivers = {
        "a": Waiver("a", "firewall on Monday", "2027-01-31"),
        "b": Waiver("b", "never needed"),
        "c": Waiver("c", "too late", date(2026, 1, 1).isoformat()),
    }
    wanted = [requirement(name, "node", "master") for name in "abc"]
    plan = plan_of(wanted, HOSTS, waivers=waivers)

    assert [one.waive for one in plan.requirements] == [
        "firewall on Monday, until 2027-01-31", "never needed", None,
    ]  # fmt: skip


def test_overlays_share_the_path_mtu(plan_of: PlanOf) -> None:
    """Two overlays between different roles have one requirement ``path-mtu`` with all roles."""
    wanted = [
        requirement("vxlan", "node", "node", udp=((8472, 8472),), probe="vxlan"),
        requirement("ipip", "master", "external", ipproto=(4,), probe="ipip", optional=True),
    ]
    plan = plan_of(wanted, [*HOSTS, host("e", "external")])
    (mtu,) = [one for one in plan.requirements if one.id == "path-mtu"]

    assert (mtu.from_, mtu.to, mtu.optional) == (("node", "master"), ("node", "external"), False)


def test_a_part_of_a_plan() -> None:
    """Filters leave the requirements that they leave flows of; a sample leaves all, in full."""
    chosen = chosen_matrix([
        requirement("a", "node", "node", tcp=((5, 90),)), requirement("b", "node", "node"),
    ])  # fmt: skip
    inventory = Inventory(tuple(HOSTS))
    plan = make_plan([chosen], inventory, TODAY)
    some = select(plan, Selection(only=("a",)), [chosen], inventory)

    assert [one.id for one in some.requirements] == ["a"]
    assert sample(some, 1)[0].requirements == some.requirements
    assert some.requirements[0].ports == ((5, 90),)
    assert some.roles == plan.roles
