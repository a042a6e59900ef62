"""The estimate of a plan: what has an agent, what has none, and what silence costs."""

from __future__ import annotations

from collections.abc import Callable

from netprobe.model.inventory import Vantage
from netprobe.model.plan import Plan
from netprobe.plan.cost import SILENCE_S, estimate
from tests.plan.conftest import host, requirement

MakePlan = Callable[..., Plan]
RANGE = ((1, 10_000),)


def test_a_host_without_an_agent_costs_less(plan_of: MakePlan) -> None:
    """Nobody there has to accept, answer and tell in Python."""
    row = requirement("range", "master", "external", tcp=RANGE)
    source = host("m", "master")
    bare = estimate(plan_of([row], [source, host("no", "external", vantage=Vantage("none"))]))
    heard = estimate(plan_of([row], [source, host("no", "external")]))

    assert bare.flows == heard.flows == 10_000
    assert bare.seconds < 2
    assert heard.seconds > 3


def test_silence_costs_the_same_however_much_is_silent(plan_of: MakePlan) -> None:
    """Second looks and walks run side by side."""
    row = requirement("one", "master", "node")
    cost = estimate(plan_of([row], [host("m", "master"), host("no", "node")]))

    assert cost.seconds_dropped == round(cost.seconds + SILENCE_S, 1)


def test_starts_over_ssh_take_turns(plan_of: MakePlan) -> None:
    """Eight at a time through one first hop."""
    row = requirement("one", "master", "node")

    def seconds(count: int) -> float:
        hosts = [host("m" * (n + 1), "master", vantage=Vantage("ssh")) for n in range(count)]
        return estimate(plan_of([row], hosts)).seconds

    assert seconds(7) < seconds(9) < 2 * seconds(7)


def test_nothing_to_send_costs_nothing(plan_of: MakePlan) -> None:
    """No flow, no agent."""
    cost = estimate(plan_of([], [host("m", "master")]))

    assert (cost.flows, cost.seconds, cost.seconds_dropped) == (0, 0.0, 0.0)
