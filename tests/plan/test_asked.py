"""A plan cut down to the flows that a file asks for."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.firewall import Enforcer, FirewallRule, RuleEnd, RuleNeed
from netprobe.model.inventory import Inventory
from netprobe.model.plan import Plan
from netprobe.plan.asked import keep_asked, keep_ruled
from netprobe.plan.expand import make_plan
from tests.report.samples import BLOCKED

from .conftest import TODAY, chosen_matrix, host, requirement

HOSTS = tuple(host(f"n{place}", "node", addresses=(f"10.0.1.{place}",)) for place in range(1, 5))
PLAN = make_plan(
    [
        chosen_matrix(
            [
                requirement("mesh", "node", "node", tcp=((22, 22), (7000, 7999))),
                requirement("ping", "node", "node", tcp=(), icmp=True),
            ]
        )
    ],
    Inventory(HOSTS),
    TODAY,
)
MATRIX = PLAN.blocks[0].matrix
ASKED = replace(BLOCKED, matrix=MATRIX, requirement="mesh", port=7000, end_port=7009)


def flows_of(*asked: tuple[str, str, int | None, int | None]) -> set[tuple[str, str, str, int]]:
    """Ask for flows (source, destination, ports; None: echo); give the single flows to probe."""
    results = [
        replace(
            ASKED,
            requirement="mesh" if first else "ping",
            protocol="tcp" if first else "icmp",
            source=source,
            destination=destination,
            address=f"10.0.1.{destination[1:]}",
            port=first,
            end_port=last,
        )
        for source, destination, first, last in asked
    ]
    kept = keep_asked(PLAN, results, "fw.json")
    assert kept.some_ports
    assert [block.index for block in kept.blocks] == list(range(len(kept.blocks)))
    assert kept.flow_count() == sum(
        (last or 0) - (first or 0) + 1 for _, _, first, last in set(asked)
    )
    return single_flows(kept)


def single_flows(kept: Plan) -> set[tuple[str, str, str, int]]:
    """Give source, destination, protocol and port of every flow; port 0 where it has none."""
    return {
        (flow.source.name, flow.destination.name, block.protocol, port)
        for block in kept.blocks
        for flow in block.flows()
        for first, last in block.ports or ((0, 0),)
        for port in range(first, last + 1)
    }


def test_only_what_is_asked_for() -> None:
    """Pairs with other ports become other blocks; nobody else is probed, and no port too much."""
    found = flows_of(("n1", "n2", 7000, 7009), ("n3", "n2", 7000, 7009), ("n1", "n4", 22, 22),
                     ("n4", "n1", None, None))  # fmt: skip

    assert found == {
        *(("n1", "n2", "tcp", port) for port in range(7000, 7010)),
        *(("n3", "n2", "tcp", port) for port in range(7000, 7010)),
        ("n1", "n4", "tcp", 22),
        ("n4", "n1", "icmp", 0),
    }


def test_what_the_plan_has_no_more() -> None:
    """Hosts, addresses and requirements that are gone are left out, and the words say how much."""
    gone = [
        replace(ASKED, source="n9", destination="n1", address="10.0.1.1"),
        replace(ASKED, source="n1", destination="n2", address="10.9.9.9"),
        replace(ASKED, source="n1", destination="n2", address="10.0.1.2", requirement="old"),
        replace(ASKED, source="n1", destination="n2", address="10.0.1.2", port=8, end_port=8),
    ]
    kept = keep_asked(replace(PLAN, selection="--only mesh"), gone, "fw.json")

    assert kept.blocks == ()
    assert kept.selection == "--only mesh; what fw.json asks for: 0 of 12,024 flows"


def test_what_rules_are_for() -> None:
    """Each requirement is probed at its own ports, of those that its rules open."""
    ends = [RuleEnd(name, f"10.0.1.{name[1:]}") for name in ("n1", "n2", "n3")]
    rule = FirewallRule(
        id="R1", family=4, protocol="tcp", ports=((22, 23), (7000, 7001)), sources=(ends[0],),
        destinations=(ends[1], ends[2]), enforcers=(Enforcer("path"),),
        needs=(RuleNeed(MATRIX, "mesh"), RuleNeed(MATRIX, "old")),
    )  # fmt: skip
    more = replace(rule, ports=((7001, 7002),), destinations=(ends[1], RuleEnd("n3", "10.9.9.9")))
    echo = replace(rule, protocol="icmp", ports=(), needs=(RuleNeed(MATRIX, "ping"),))
    back = replace(rule, answers=True, sources=(ends[1],), destinations=(ends[0],))

    assert single_flows(keep_ruled(PLAN, [rule, more, echo, back], "fw.json")) == {
        *(("n1", "n2", "tcp", port) for port in (22, 7000, 7001, 7002)),
        *(("n1", "n3", "tcp", port) for port in (22, 7000, 7001)),
        *(("n1", name, "icmp", 0) for name in ("n2", "n3")),
    }
