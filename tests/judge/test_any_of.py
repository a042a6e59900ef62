"""Rows of which one is enough for a pair of hosts: one that passes excuses the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.any_of import AnyOfGroups
from netprobe.judge.findings import fold
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from tests.plan.conftest import host, plan_of, requirement
from tests.report.samples import BLOCKED, PASSED

__all__ = ["plan_of"]

ROWS = [
    requirement("ping", "node", "node", icmp=True, any_of="health"),
    requirement("tcp", "node", "node", tcp=((4240, 4241),), any_of="health"),
    requirement("etcd", "node", "node"),
]
HOSTS = [host("a", "node", addresses=("10.0.0.1",)), host("b", "node", addresses=("10.0.0.2",))]


@pytest.fixture
def plan(plan_of: Callable[..., Plan]) -> Plan:
    """Two hosts, each to the other: an echo request or both ports, and etcd."""
    return plan_of(ROWS, HOSTS)


def result(row: str, *, passes: bool = False, port: int | None = None, **changes: Any) -> Result:
    """The result of a row from a to b."""
    of_group = {} if row == "etcd" else {"any_of": "health"}
    base = replace(
        PASSED if passes else BLOCKED, matrix="m", requirement=row, source="a", destination="b",
        address="10.0.0.2", port=port, end_port=port, protocol="tcp" if port else "icmp",
    )  # fmt: skip
    return replace(base, **{**of_group, **changes})


def test_the_plan_names_the_group(plan: Plan) -> None:
    """Each flow of the group has its name, others have none."""
    named = {block.requirement.id: block.any_of and block.any_of.name for block in plan.blocks}
    assert named == {"ping": "health", "tcp": "health", "etcd": None}


def test_one_that_passes_excuses_the_others_in_any_order(plan: Plan) -> None:
    """A failure waits for the rest of its pair; then it says which row is enough."""
    groups = AnyOfGroups(plan)
    assert list(groups.settle([result("ping")])) == []
    first, second = result("tcp", passes=True, port=4240), result("tcp", passes=True, port=4241)
    assert list(groups.settle([first])) == [first]
    assert list(groups.settle([result("etcd", port=6443)])) == [result("etcd", port=6443)]
    told = list(groups.settle([second]))

    assert told == [second, replace(result("ping"), spared="tcp")]
    assert [one.decides for one in told] == [True, False]
    assert list(groups.finish()) == []


def test_a_row_passes_where_all_of_its_ports_do(plan: Plan) -> None:
    """One port of two is not enough, in any order: all failures decide."""
    both = [result("tcp", passes=True, port=4240), result("tcp", port=4241)]
    for ports in (both, both[::-1]):
        told = list(AnyOfGroups(plan).settle([result("ping"), *ports]))

        assert sorted(one.requirement for one in told) == ["ping", "tcp", "tcp"]
        assert [one.spared for one in told] == [None] * 3
        assert all(one.decides for one in told)


def test_the_end_of_a_run_tells_what_was_held_back(plan: Plan) -> None:
    """What the other row would have done nobody knows: the failure decides."""
    groups = AnyOfGroups(plan)
    assert list(groups.settle([result("ping")])) == []

    assert list(groups.finish()) == [result("ping")]


def test_passes_of_an_earlier_run_count(plan: Plan) -> None:
    """A retry asks only what failed."""
    groups = AnyOfGroups(plan)
    groups.note(result("ping", passes=True))
    held = list(groups.settle([result("tcp", port=port) for port in (4240, 4241)]))

    assert [one.spared for one in held] == ["ping", "ping"]


def test_pairs_are_apart(plan: Plan) -> None:
    """What passes from a to b says nothing of the way from b to a."""
    groups = AnyOfGroups(plan)
    back: dict[str, Any] = {"source": "b", "destination": "a", "address": "10.0.0.1"}
    given = [
        *(result("tcp", port=port, **back) for port in (4240, 4241)),
        result("ping", passes=True),
        result("ping", **back),
    ]
    assert [one.spared for one in groups.settle(given) if one.source == "b"] == [None] * 3


def test_all_that_fail_are_one_finding() -> None:
    """Whatever became of the packets; what fails beside a pass is apart, and decides nothing."""
    rejected = result(
        "ping", reason="admin-prohibited", where=("path",), rejected_by="10.0.0.9", state="filtered"
    )
    dropped = result("tcp", port=4240)
    other = result("etcd", port=6443, where=("destination",))
    passes = [result("dns", passes=True, port=53)]
    plain = [replace(one, any_of=None) for one in (rejected, dropped)]
    assert len(fold(plain, passes)) == 2

    found = fold([rejected, dropped, other], passes)
    assert sorted(sorted(one.requirement for one in each.members) for each in found) == [
        ["etcd"], ["ping", "tcp"],
    ]  # fmt: skip
    # Who refused says more than who was silent.
    silent = replace(dropped, where=("path",))
    told = fold([silent, rejected, replace(other, where=("path",))], passes)
    assert [one.rejected_by for one in told if len(one.members) == 2] == ["10.0.0.9"]
    (excused,) = fold([replace(rejected, spared="tcp")])
    assert not any(one.decides for one in excused.members)
