"""Rows that contradict each other are told before anything is probed."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.model.inventory import Inventory
from netprobe.plan.expand import make_plan
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

LOCAL = requirement("local", "node", "node", tcp=((9443, 9443),), expect="denied")
NODES = [
    host(name, "node", addresses=(f"10.0.0.{place}",)) for place, name in enumerate(("a", "b"), 1)
]


def notes_of(allowed: Any, hosts: list[Any] = NODES) -> tuple[str, ...]:
    """The notes of a plan of two matrices: the registry's row, and this one."""
    chosen = [chosen_matrix([LOCAL], name="registry"), chosen_matrix([allowed], name="own")]
    return make_plan(chosen, Inventory(tuple(hosts)), TODAY).notes


def test_a_row_against_a_port_that_must_not_answer_is_a_note() -> None:
    """Also where it is one port of a range; both rows are named, with the ports and the hosts."""
    (note,) = notes_of(requirement("range", "node", "node", tcp=((9440, 9450),)))

    assert note.startswith(
        "contradiction: own: range needs tcp 9443 of a, b, which registry: local says must not "
        "answer"
    )


@pytest.mark.parametrize(
    "allowed",
    [
        requirement("near", "node", "node", tcp=((9444, 9450),)),
        requirement("udp", "node", "node", udp=((9443, 9443),)),
        requirement("others", "external", "node", tcp=((9443, 9443),)),
    ],
)
def test_what_can_hold_beside_it_is_none(allowed: Any) -> None:
    """Another port, another protocol, and sources that nothing is denied to."""
    client = host("c", "external", addresses=("10.0.0.9",))

    notes = notes_of(allowed, [*NODES, client])
    assert not [note for note in notes if note.startswith("contradiction")]
