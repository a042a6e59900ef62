"""How much of a plan is probed unasked, and what is offered where that is too much."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from netprobe.errors import RequestError
from netprobe.model.plan import Plan
from netprobe.plan.choices import CoverChoice, refuse_too_much
from tests.plan.conftest import requirement
from tests.plan.covering import without_agent, zone_hosts

Planner = Callable[..., Plan]
MOST = 5_000_000


@pytest.fixture
def long_plan(plan_of: Planner) -> Plan:
    """1,300 hosts to each other at one port: about six minutes."""
    return plan_of([requirement("api", "node", "node")], zone_hosts(10, 130, "node"))


@pytest.mark.slow
def test_a_run_of_more_than_five_minutes_is_refused_with_three_choices(long_plan: Plan) -> None:
    """Each with its time; the covering plan with its flows and pairs."""
    with pytest.raises(RequestError) as caught:
        refuse_too_much(long_plan, MOST, is_part=False, is_said=False)
    first, zones, part, everything = str(caught.value).splitlines()
    assert first == "the plan takes about 6 min, more than 5 min: choose"
    assert zones.startswith("  --cover zones: 13,000 flows between 13,000 pairs of hosts, about 1 ")
    assert zones.endswith("the rest is covered, not probed")
    assert part.startswith("  --limit, --from, --to, --only, --sample N: a part")
    assert everything == "  --cover all: all 1,688,700 flows, about 6 min"


def test_who_says_so_gets_everything(long_plan: Plan) -> None:
    """--cover all, --cover zones and a sample are choices that were made."""
    refuse_too_much(long_plan, MOST, is_part=False, is_said=True)
    covering = CoverChoice(1, 0, True).cover(long_plan)
    assert covering is not None
    refuse_too_much(covering.plan, MOST, is_part=True, is_said=True)
    assert CoverChoice().cover(long_plan) is None


@pytest.mark.slow
def test_too_many_results_are_refused_whatever_was_said(long_plan: Plan) -> None:
    """The way to get all of them stands with the number that it takes."""
    with pytest.raises(
        RequestError, match=r"has 1,688,700 results, more than 1,000: choose"
    ) as all_:
        refuse_too_much(long_plan, 1000, is_part=False, is_said=True)
    assert "--cover all --max-results 1688700: all 1,688,700 flows" in str(all_.value)
    covering = CoverChoice(1, 0, True).cover(long_plan)
    assert covering is not None
    with pytest.raises(RequestError, match="13,000 results, more than 1,000: choose a part"):
        refuse_too_much(covering.plan, 1000, is_part=True, is_said=True)


def test_the_pace_of_closed_udp_ports_is_no_reason_to_refuse(plan_of: Planner) -> None:
    """No choice of hosts would make it shorter."""
    hosts = zone_hosts(2, 1, "node")
    hosts[1] = without_agent(hosts[1])
    plan = plan_of([requirement("udp", "node", "node", udp=((3000, 3999),))], hosts)
    refuse_too_much(plan, MOST, is_part=False, is_said=False)
