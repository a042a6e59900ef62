"""What a run knows of addresses: answered, down, or refused by somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.model.evidence import CheckConclusion, Icmp, Outcome
from netprobe.probe.flows.reachability import Answered


def noted(*outcomes: Outcome) -> Answered:
    answered = Answered()
    for outcome in outcomes:
        answered.note("a", "10.0.0.2", outcome)
    return answered


def unreachable(code: int, elapsed_ms: int, origin: Any = "router") -> Outcome:
    error = Icmp(3, code, "10.0.0.254", origin)
    return Outcome("connect", "host-unreachable", error, elapsed_ms=elapsed_ms)


def test_a_late_word_of_a_router_is_no_dead_host() -> None:
    """It gave up its next hop, which may be another router."""
    answered = noted(unreachable(1, 3100))

    assert answered.given_up_by("a", "10.0.0.2") == "10.0.0.254"
    assert answered.asked_in_vain("a", "10.0.0.2") is None


def test_what_a_router_tells_one_source_may_count_for_all() -> None:
    """Of an address that accepts one source, and is given up before others."""
    answered = noted(unreachable(1, 3100))

    assert answered.given_up_by("c", "10.0.0.2") is None
    assert answered.given_up_by("c", "10.0.0.2", or_any=True) == "10.0.0.254"
    assert answered.given_up_by("c", "10.0.0.3", or_any=True) is None


def test_who_asked_the_network_itself_knows_more_than_the_time_tells() -> None:
    """A router that waits already says it early; nobody refuses for a host that is not there."""
    answered = noted(unreachable(1, 2))
    assert answered.refuses("a", "10.0.0.2")

    down = CheckConclusion("host-down", "c")
    answered.note("a", "10.0.0.2", Outcome("connect", "no-answer"), down)

    assert answered.asked_in_vain("a", "10.0.0.2") == "c"
    assert not answered.refuses("a", "10.0.0.2")


def test_a_late_prohibition_says_nothing_of_the_host() -> None:
    """A firewall's reject gives the same errno as a dead host."""
    assert noted(unreachable(13, 3100)).given_up_by("a", "10.0.0.2") is None


@pytest.mark.parametrize("forged", [True, None])
def test_a_reset_that_may_be_forged_is_no_answer(forged: bool | None) -> None:
    """A firewall's reset says nothing of the host behind it."""
    answered = Answered()
    answered.note("a", "10.0.0.2", Outcome("connect", "refused"), forged=forged)

    assert not answered.has("a", "10.0.0.2")


def test_a_reset_that_is_no_forgery_is_an_answer() -> None:
    """It came from as far away as the address's other answers."""
    answered = Answered()
    answered.note("a", "10.0.0.2", Outcome("connect", "refused"), forged=False)

    assert answered.has("a", "10.0.0.2")


@pytest.mark.parametrize(
    ("word", "elapsed_ms", "given_up", "refuses"),
    [
        # Without a check's conclusion the time decides, and between the two nothing does.
        (None, 3100, True, False),
        (None, 1500, True, False),
        (None, 1499, False, False),
        (None, 500, False, False),
        (None, 499, False, True),
        ("router-gives-up", 2, True, False),
        ("refusing-host", 2, False, True),
        ("refusing-host", 3100, False, True),
    ],
)
def test_what_a_check_concluded_counts_more_than_the_time(
    word: Any, elapsed_ms: int, given_up: bool, refuses: bool
) -> None:
    """A dead host's word may come early, and a firewall's late."""
    answered = Answered()
    conclusion = word and CheckConclusion(word)
    answered.note("a", "10.0.0.2", unreachable(1, elapsed_ms), conclusion)

    assert bool(answered.given_up_by("a", "10.0.0.2")) is given_up
    assert answered.refuses("a", "10.0.0.2") is refuses
    # Another source may have another way there.
    assert answered.given_up_by("c", "10.0.0.2") is None
    assert not answered.refuses("a", "10.0.0.3")


def test_an_early_word_that_no_check_looked_at_refuses_nothing_of_a_dead_host() -> None:
    """It joined the packets that waited."""
    answered = noted(unreachable(1, 2))
    answered.note("a", "10.0.0.2", unreachable(1, 3100), CheckConclusion("router-gives-up"))

    assert not answered.refuses("a", "10.0.0.2")


@pytest.mark.parametrize("elapsed_ms", [2, 3100])
def test_the_own_kernels_word_refuses_nothing(elapsed_ms: int) -> None:
    """It may come at any time; the neighbour table says what it means."""
    answered = noted(unreachable(1, elapsed_ms, "source"))

    assert not answered.refuses("a", "10.0.0.2")
    assert answered.given_up_by("a", "10.0.0.2") is None


def test_a_dead_host_is_down_for_the_source_whose_packets_lead_there() -> None:
    """Another source's packets may lead to another network that has the address."""
    answered = Answered()
    down = CheckConclusion("host-down", "c")
    answered.note("a", "10.0.0.2", Outcome("connect", "no-answer"), down)

    assert answered.asked_in_vain("a", "10.0.0.2") == "c"
    assert answered.asked_in_vain("a", "10.0.0.3") is None
    assert answered.asked_in_vain("c", "10.0.0.2") is None


@pytest.mark.parametrize("other", ["echo", None])
def test_what_something_nearer_opens_is_no_answer(other: Any) -> None:
    """The address may be dead; an answer of another kind is its own."""
    answered, opened = Answered(), Outcome("connect", None, answer="unasked")
    answered.note_answer("a", "10.0.0.2", opened)
    assert answered.has("a", "10.0.0.2")

    answered.note_intercepted("a", "10.0.0.2")
    answered.note("a", "10.0.0.2", opened, CheckConclusion("intercepted", "nearer"))
    if other is not None:
        answered.note_answer("a", "10.0.0.2", Outcome("answer", None, answer=other))

    assert answered.has("a", "10.0.0.2") is (other is not None)
    assert not answered.is_up("10.0.0.2")


def test_who_answers_anybody_is_up() -> None:
    """Then only the way between the two is at fault."""
    answered = Answered()
    down = CheckConclusion("host-down", "c")
    answered.note("a", "10.0.0.2", unreachable(1, 3100, "source"), down)
    answered.note("c", "10.0.0.2", Outcome("answer", None, answer="nonce"))

    assert answered.is_up("10.0.0.2")
    assert answered.asked_in_vain("a", "10.0.0.2") is None


def test_an_interceptors_answer_says_nothing_of_the_host() -> None:
    """Something on the way answers for everybody."""
    answered = Answered()
    intercepted = CheckConclusion("intercepted", "x")
    answered.note("a", "10.0.0.2", Outcome("connect", None, answer="unasked"), intercepted)

    assert not answered.is_up("10.0.0.2")


def test_an_answer_before_the_end_counts_at_once() -> None:
    """``note_answer`` takes answers only: refusals are not final yet."""
    answered = Answered()
    answered.note_answer("a", "10.0.0.2", unreachable(1, 2))
    assert not answered.refuses("a", "10.0.0.2")

    answered.note_answer("a", "10.0.0.2", Outcome("connect", None, answer="unasked"))
    assert answered.has("a", "10.0.0.2")


def test_nobody_waits_for_what_a_host_says_of_its_round_trips() -> None:
    """Looks wait for some of them, and a host can say anything: a day counts as four seconds."""
    answered = Answered()
    for rtt_ms in (3_600_000.0, 8_000.0):
        answered.note_answer(
            "a", "10.0.0.2", Outcome("answer", None, answer="nonce", rtt_ms=rtt_ms)
        )
    assert answered.slowest_ms("a", "10.0.0.2") == answered.fastest_ms("a", "10.0.0.2") == 4000.0


def test_a_late_icmp_error_tells_of_no_slow_round_trip() -> None:
    """Its maker has answered a later SYN; no look has to wait so long."""
    answered = Answered()
    for rtt_ms in (20.0, 1050.0):
        error = Icmp(3, 13, "10.0.0.2", "destination")
        answered.note_answer(
            "a", "10.0.0.2", Outcome("connect", "host-unreachable", error, rtt_ms=rtt_ms)
        )
    assert answered.slowest_ms("a", "10.0.0.2") == 20.0
