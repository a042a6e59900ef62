"""What a run knows of addresses: answered, down, or refused by somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.model.evidence import Icmp, Outcome
from netprobe.probe.flows.reachability import Answered


def noted(*outcomes: Outcome) -> Answered:
    answered = Answered()
    for outcome in outcomes:
        answered.note("a", "10.0.0.2", outcome)
    return answered


def unreachable(code: int, elapsed_ms: int, origin: Any = "router") -> Outcome:
    error = Icmp(3, code, "10.0.0.254", origin)
    return Outcome("connect", "host-unreachable", error, elapsed_ms=elapsed_ms)


def test_a_late_host_unreachable_says_that_the_host_is_down() -> None:
    """A router gives up a dead neighbour after three seconds."""
    assert noted(unreachable(1, 3100)).is_down("a", "10.0.0.2")


@pytest.mark.parametrize(
    "other",
    [
        Outcome("answer", None, answer="nonce"),
        unreachable(1, 0),
        Outcome("connect", "refused", forged=False),
        Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination")),
    ],
)
def test_a_host_that_answers_or_is_refused_at_once_is_not_down(other: Outcome) -> None:
    """A rejecting router answers late too, when its bucket is empty."""
    assert not noted(unreachable(1, 3100), other).is_down("a", "10.0.0.2")


def test_a_late_prohibition_says_nothing_of_the_host() -> None:
    """A firewall's reject gives the same errno as a dead host."""
    assert not noted(unreachable(13, 3100)).is_down("a", "10.0.0.2")


@pytest.mark.parametrize("forged", [True, None])
def test_a_reset_that_may_be_forged_is_no_answer(forged: bool | None) -> None:
    """A firewall's reset says nothing of the host behind it."""
    assert not noted(Outcome("connect", "refused", forged=forged)).has("a", "10.0.0.2")
