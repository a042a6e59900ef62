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


@pytest.mark.parametrize(
    ("word", "elapsed_ms", "down", "refuses"),
    [
        # Without a check's conclusion the time decides, and between the two nothing does.
        (None, 3100, True, False),
        (None, 1500, True, False),
        (None, 1499, False, False),
        (None, 500, False, False),
        (None, 499, False, True),
        ("host-down", 2, True, False),
        ("host-down", 3100, True, False),
        ("refusing-host", 2, False, True),
        ("refusing-host", 3100, False, True),
    ],
)
def test_what_a_check_concluded_counts_more_than_the_time(
    word: Any, elapsed_ms: int, down: bool, refuses: bool
) -> None:
    """A dead host's word may come early, and a firewall's late."""
    answered = Answered()
    answered.note("a", "10.0.0.2", unreachable(1, elapsed_ms), word)

    assert answered.is_down("a", "10.0.0.2") is down
    assert answered.refuses("a", "10.0.0.2") is refuses


def test_a_conclusion_says_nothing_of_other_pairs() -> None:
    """Another source may have another way there."""
    answered = Answered()
    answered.note("a", "10.0.0.2", unreachable(1, 2), "host-down")

    assert not answered.is_down("c", "10.0.0.2")
    assert not answered.is_down("a", "10.0.0.3")


def test_an_errno_alone_is_a_host_unreachable_too() -> None:
    """Old kernels say of TCP no more than that."""
    late = Outcome("connect", "host-unreachable", elapsed_ms=3100)

    assert noted(late).is_down("a", "10.0.0.2")
    assert not noted(Outcome("connect", "network-unreachable", elapsed_ms=3100)).is_down(
        "a", "10.0.0.2"
    )


def test_an_answer_before_the_end_counts_at_once() -> None:
    """``note_answer`` takes answers only: refusals are not final yet."""
    answered = Answered()
    answered.note_answer("a", "10.0.0.2", unreachable(1, 2))
    assert not answered.refuses("a", "10.0.0.2")

    answered.note_answer("a", "10.0.0.2", Outcome("connect", None, answer="unasked"))
    assert answered.has("a", "10.0.0.2")
