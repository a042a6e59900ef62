"""A plan cut down to the flows that a file asks for."""

from __future__ import annotations

from dataclasses import replace

from netprobe.model.inventory import Inventory
from netprobe.plan.asked import keep_asked
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
    assert [block.index for block in kept.blocks] == list(range(len(kept.blocks)))
    assert kept.flow_count() == sum(
        (last or 0) - (first or 0) + 1 for _, _, first, last in set(asked)
    )
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
