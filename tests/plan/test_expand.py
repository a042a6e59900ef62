"""Requirements × hosts: which flows exist, and why others do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model.inventory import Inventory, Vantage
from netprobe.model.matrix import Setting, SettingRef, Waiver, Warn
from netprobe.model.plan import Plan
from netprobe.plan.choices import sample
from netprobe.plan.expand import make_plan
from netprobe.plan.select import Selection, select

from .conftest import TODAY, chosen_matrix, condition, host, requirement

PlanOf = Callable[..., Plan]


def flows(plan: Plan) -> list[tuple[str, str, str, str]]:
    return [
        (flow.source.name, flow.destination.name, flow.address.text, flow.block.protocol)
        for flow in plan.flows()
    ]


def reasons(plan: Plan) -> list[str]:
    return [item.reason for item in plan.skipped]


def test_implied_roles_count(plan_of: PlanOf) -> None:
    """A master is a node too, because its role says so."""
    plan = plan_of([requirement("a", "node", "node")], [host("m", "master"), host("nn", "node")])

    assert flows(plan) == [("m", "nn", "10.0.0.2", "tcp"), ("nn", "m", "10.0.0.1", "tcp")]
    assert reasons(plan) == ["source and destination are one host: m, nn"]


def test_local_tests_a_host_against_its_own_address(plan_of: PlanOf) -> None:
    """A single-node cluster of a ``local`` matrix still has flows."""
    plan = plan_of([requirement("a", "node", "node")], [host("m", "master")], local=True)

    assert flows(plan) == [("m", "m", "10.0.0.1", "tcp")]
    assert plan.skipped == ()


def test_a_host_without_a_flow_is_a_note(plan_of: PlanOf) -> None:
    """Etcd machines of their own, and the setting says stacked: they would be left out silently."""
    setting = Setting("etcd", "choice", "stacked", ("stacked", "external"))
    rows = [
        requirement("api", "node", "master"),
        requirement("etcd", "master", "external", when=condition(etcd="external")),
    ]
    others = host("oooo", "database")  # an inventory has hosts of no matrix, too
    hosts = [host("m", "master"), host("nn", "node"), host("eee", "external"), others]

    (note,) = plan_of(rows, hosts, settings={"etcd": setting}).notes
    assert note.startswith("nothing is tested from or to eee: ")
    assert "no row for the role external is left" in note
    assert plan_of(rows, hosts, settings={"etcd": replace(setting, default="external")}).notes == ()


def test_denied_is_about_other_hosts_only(plan_of: PlanOf) -> None:
    """A loopback-only port may answer the host itself."""
    wanted = [requirement("a", "node", "node", expect="denied")]
    plan = plan_of(wanted, [host("m", "node"), host("nn", "node")], local=True)

    assert [flow[:2] for flow in flows(plan)] == [("m", "nn"), ("nn", "m")]


def test_a_flow_exists_for_each_family_that_both_ends_list(plan_of: PlanOf) -> None:
    """IPv4 and IPv6 are two flows, and no family in common is said."""
    hosts = [
        host("a", "master", addresses=("10.0.0.1", "fd00::1")),
        host("b", "external", addresses=("10.0.0.2", "fd00::2")),
        host("c", "external", addresses=("fd00::3",)),
        host("d", "master", addresses=("10.0.0.4",)),
    ]
    plan = plan_of([requirement("a", "master", "external")], hosts)

    assert flows(plan) == [
        ("a", "b", "10.0.0.2", "tcp"),
        ("d", "b", "10.0.0.2", "tcp"),
        ("a", "b", "fd00::2", "tcp"),
        ("a", "c", "fd00::3", "tcp"),
    ]
    assert reasons(plan) == ["no common address family: d (IPv4) and c (IPv6)"]


def test_a_row_about_one_family_has_flows_of_that_family_alone(plan_of: PlanOf) -> None:
    """Hosts of both families have one flow of it; those without it are skipped, with the reason."""
    hosts = [
        host("a", "master", addresses=("10.0.0.1", "fd00::1")),
        host("b", "external", addresses=("10.0.0.2", "fd00::2")),
        host("c", "external", addresses=("10.0.0.3",)),
        host("d", "external", addresses=("api.example.com",)),
        host("e", "master", addresses=("e.example.com",)),
    ]
    plan = plan_of([requirement("a", "master", "external", family=6)], hosts)

    assert flows(plan) == [
        ("a", "b", "fd00::2", "tcp"),
        ("e", "b", "fd00::2", "tcp"),
        ("a", "d", "api.example.com", "tcp"),
        ("e", "d", "api.example.com", "tcp"),
    ]
    assert reasons(plan) == [
        "no common IPv6 address: a (IPv4, IPv6) and c (IPv4)",
        "no common IPv6 address: e (by name) and c (IPv4)",
    ]


def test_a_name_is_a_flow_for_every_source(plan_of: PlanOf) -> None:
    """The source resolves the name, so the family is not known here."""
    hosts = [host("a", "node"), host("b", "external", addresses=("api.example.com",))]
    plan = plan_of([requirement("a", "node", "external")], hosts)

    assert flows(plan) == [("a", "b", "api.example.com", "tcp")]


def test_a_source_without_a_vantage_is_skipped(plan_of: PlanOf) -> None:
    """A VIP cannot be a source, and the report says so."""
    hosts = [host("vip", "node", vantage=Vantage("none")), host("b", "external")]
    plan = plan_of([requirement("a", "node", "external")], hosts)

    assert flows(plan) == []
    assert reasons(plan) == ["the source is declared vantage: none"]


def test_required_flows_of_a_source_without_a_vantage_are_counted(plan_of: PlanOf) -> None:
    """Optional ones are not; of a selection only those that it leaves."""
    hosts = [host("vip", "node", vantage=Vantage("none")), host("a", "node"),
             host("b", "external"), host("bb", "external")]  # fmt: skip
    rows = [requirement("a", "node", "external", tcp=((1, 3),)),
            requirement("b", "node", "external", optional=True)]  # fmt: skip
    plan = plan_of(rows, hosts)
    inventory = Inventory(tuple(hosts))
    limited = select(plan, Selection(to=("b",)), [chosen_matrix(rows)], inventory)

    assert [(one.source, one.flows) for one in plan.skipped] == [("vip", 6), ("vip", 0)]
    assert [one.flows for one in limited.skipped] == [3, 0]


def test_a_role_without_hosts_is_skipped(plan_of: PlanOf) -> None:
    """A role may have no host; its requirements are listed with the reason."""
    plan = plan_of([requirement("a", "node", "external")], [host("a", "node")])

    assert reasons(plan) == ["no host has the role external"]


def test_of_required_rows_the_roles_without_hosts_are_named(plan_of: PlanOf) -> None:
    """Not of what is optional, forbidden or one of several that are enough."""
    rows = [requirement("a", "node", "external"),
            requirement("b", "node", "external", optional=True),
            requirement("c", "node", "external", expect="denied"),
            requirement("d", "node", "external", any_of="g")]  # fmt: skip
    plan = plan_of(rows, [host("a", "node")])

    assert [one.roles for one in plan.skipped] == ["external", None, None, None]


@pytest.mark.parametrize(
    ("settings", "when", "unless", "reason"),
    [
        (Setting("cni", "choice", "cilium"), {"cni": "cilium"}, {}, None),
        (Setting("cni", "choice", "cilium"), {"cni": "flannel"}, {},
         "setting cni is cilium, not flannel"),
        (Setting("cni", "choice", "cilium"), {}, {"cni": "cilium"}, "setting cni is cilium"),
        (Setting("mods", "list", ("a", "b")), {"mods": ("b", "c")}, {}, None),
        (Setting("mods", "list", ("a",)), {"mods": ("b", "c")}, {}, "setting mods lacks b or c"),
        (Setting("mods", "list", ()), {"mods": "b"}, {}, "setting mods lacks b"),
        (Setting("v", "version", "4.9"), {"v": ">=4.10"}, {}, "setting v is 4.9, not >=4.10"),
        (Setting("v", "version", "4.10"), {"v": ">=4.10,<4.16"}, {}, None),
        (Setting("v", "version", "4.16"), {"v": ">=4.10,<4.16"}, {},
         "setting v is 4.16, not >=4.10,<4.16"),
        (Setting("p", "boolean", False), {"p": True}, {}, "setting p is false, not true"),
    ],
)  # fmt: skip
def test_conditions(
    plan_of: PlanOf,
    settings: Setting,
    when: dict[str, str],
    unless: dict[str, str],
    reason: str | None,
) -> None:
    """Keys AND, listed values OR, versions by number; the reason names the setting."""
    wanted = requirement(
        "a", "node", "external", when=condition(**when), unless=condition(**unless)
    )
    plan = plan_of(
        [wanted], [host("a", "node"), host("bb", "external")], settings={settings.name: settings}
    )

    assert reasons(plan) == ([] if reason is None else [reason])
    assert len(flows(plan)) == (1 if reason is None else 0)


def test_unless_needs_all_its_keys(plan_of: PlanOf) -> None:
    """``unless`` holds, like ``when``, only if all its keys match."""
    settings = {"a": Setting("a", "choice", "x"), "b": Setting("b", "choice", "y")}
    wanted = requirement("r", "node", "external", unless=condition(a="x", b="z"))
    plan = plan_of([wanted], [host("a", "node"), host("bb", "external")], settings=settings)

    assert len(flows(plan)) == 1


def test_ports_of_settings_and_lists_stay_entries(plan_of: PlanOf) -> None:
    """A listed port stays a result of its own; a setting gives its port."""
    settings = {"p": Setting("p", "port", 8091)}
    tcp = ((2380, 2380), (2379, 2379), SettingRef("p"), (7000, 7999))
    plan = plan_of(
        [requirement("r", "node", "external", tcp=tcp)],
        [host("a", "node"), host("bb", "external")],
        settings=settings,
    )

    assert plan.blocks[0].ports == ((2379, 2379), (2380, 2380), (7000, 7999), (8091, 8091))
    assert plan.flow_count() == 1003


def test_protocols_of_one_requirement_are_blocks_of_their_own(plan_of: PlanOf) -> None:
    """TCP, UDP, echo and an IP protocol in one requirement are four kinds of flow."""
    wanted = requirement(
        "r", "node", "external", tcp=((1, 1),), udp=((2, 2),), icmp=True, ipproto=(4,)
    )
    plan = plan_of([wanted], [host("a", "node"), host("bb", "external")])

    assert [block.protocol for block in plan.blocks] == ["tcp", "udp", "icmp", "ipproto/4"]


def test_waivers_expire() -> None:
    """An expired waiver does not hold, and a note says so."""
    waivers = {
        "a": Waiver("a", "later", "2026-11-20"),
        "b": Waiver("b", "too late", "2026-11-19"),
    }
    matrix = chosen_matrix(
        [requirement("a", "node", "external"), requirement("b", "node", "external")],
        waivers=waivers,
    )
    plan = make_plan([matrix], Inventory((host("a", "node"), host("bb", "external"))), TODAY)

    assert [block.waiver for block in plan.blocks] == [waivers["a"], None]
    assert plan.notes == ("m: the waiver of b expired on 2026-11-19; it decides again (too late)",)


def test_warnings_follow_their_condition(plan_of: PlanOf) -> None:
    """A requirement's own warning is on its flows only while its condition holds."""
    settings = {"p": Setting("p", "port", 8091)}
    warnings = (Warn("pod side", condition(p=8091)), Warn("never", condition(p=1)))
    wanted = requirement("r", "node", "external", warnings=warnings)
    plan = plan_of([wanted], [host("a", "node"), host("bb", "external")], settings=settings)

    assert plan.blocks[0].warnings == ("pod side",)


names = st.lists(
    st.tuples(st.sampled_from(["node", "master", "external"]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(names, st.booleans())
def test_counts_equal_the_walked_flows(kinds: list[tuple[str, bool, bool]], local: bool) -> None:
    """Counting without walking gives what walking gives, and nothing is planned twice."""
    hosts = []
    for index, (role, four, six) in enumerate(kinds):
        addresses = [f"10.0.0.{index}"] * (four or not six) + [f"fd00::{index}"] * six
        hosts.append(host(f"h{index}", role, addresses=tuple(addresses)))
    matrix = chosen_matrix(
        [
            requirement("a", "node", "node", tcp=((1, 3), (5, 5))),
            requirement("b", "master", "external"),
        ],
        local=local,
    )
    plan = make_plan([matrix], Inventory(tuple(hosts)), TODAY)
    walked = [(flow.block.index, flow.source.name, flow.address.text) for flow in plan.flows()]

    assert len(walked) == sum(block.pair_count() for block in plan.blocks) == len(set(walked))
    assert plan == make_plan([matrix], Inventory(tuple(hosts)), TODAY)
    assert all(replace(block) == block for block in plan.blocks)
    for block in (*plan.blocks, *sample(plan, 1)[0].blocks):
        for place in range(len(block.sources)):
            ends = [end for end in range(len(block.destinations)) if block.has_pair(place, end)]
            assert ends == list(block.peers(place))


def existing_roles(plan: Plan) -> dict[str, bool]:
    """Every destination, and whether it must be served before the installation."""
    return {end.name: block.existing for block in plan.blocks for end, _ in block.destinations}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, {"m": False, "ext": True}),
        (True, {"m": True, "ext": True}),
        (False, {"m": False, "ext": False}),
    ],
)
def test_the_requirement_says_what_exists_else_the_role_to_reach(
    said: bool | None, expected: dict[str, bool]
) -> None:
    """Each destination by its own roles, where the requirement says nothing."""
    wanted = replace(
        requirement("a", "node", "node", existing=said), destinations=("node", "external")
    )
    chosen = chosen_matrix([wanted])
    external = replace(chosen.matrix.roles["external"], existing=True)
    roles = {**chosen.matrix.roles, "external": external}
    chosen = replace(chosen, matrix=replace(chosen.matrix, roles=roles))
    hosts = (host("node-1", "node"), host("m", "node"), host("ext", "external"))
    plan = make_plan([chosen], Inventory(hosts), TODAY)

    assert existing_roles(plan) == {"node-1": expected["m"], **expected}
    assert plan.flow_count() == 4
