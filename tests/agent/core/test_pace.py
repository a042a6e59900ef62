"""Rates, paces and learned deadlines, on a clock of numbers."""

from __future__ import annotations

import pytest

from netprobe.agent.core.pace import Answers, Bucket
from netprobe.agent.probers.datagram.engine import waited_s
from netprobe.agent.wire.parts import Pace


def test_unlimited_bucket_gives_all() -> None:
    """Without a rate nothing waits."""
    bucket = Bucket()

    assert bucket.take(1000, 1.0) == 1000
    assert bucket.wait_s(1.0) == 0.0


@pytest.mark.parametrize("per_s", [1.0, 7.0, 100.0, 5000.0])
def test_bucket_keeps_its_rate(per_s: float) -> None:
    """Over ten seconds no more starts than the rate and one burst allow, and not much less."""
    bucket = Bucket(per_s)
    bucket.take(0, 100.0)
    sent = sum(bucket.take(64, 100.0 + step * 0.01) for step in range(1001))

    assert per_s * 10 * 0.9 <= sent <= per_s * 10 + per_s * 0.05 + 1


def test_bucket_takes_back_what_was_not_used() -> None:
    """Granted probes that did not start may start later."""
    bucket = Bucket(100.0)
    granted = bucket.take(5, 50.0)
    bucket.give_back(granted)

    assert bucket.take(granted, 50.0) == granted


def test_rate_can_be_lifted() -> None:
    """A new ``rate`` frame holds at once."""
    bucket = Bucket(1.0)
    bucket.limit(None)

    assert bucket.take(10, 1.0) == 10


def test_pacer_is_what_an_icmp_rate_limit_answers() -> None:
    """Six at once, then one per interval."""
    pacer = Bucket(1 / 1.02, 6)
    sent = [step * 0.01 for step in range(1, 501) if pacer.take(1, 100 + step * 0.01)]

    assert len(sent) == 6 + 4
    assert [at >= sent[0] + 1.02 * extra for extra, at in enumerate(sent[6:], 1)] == [True] * 4


def test_pacer_says_when() -> None:
    """wait_s is the time until take will succeed."""
    pacer = Bucket(0.5, 1)
    assert pacer.take(1, 10.0)
    wait_s = pacer.wait_s(10.0)

    assert wait_s == pytest.approx(2.0)
    assert not pacer.take(1, 10.0 + wait_s - 0.01)
    assert pacer.take(1, 10.0 + wait_s + 0.01)


def test_orders_to_one_destination_share_a_pacer() -> None:
    """The bucket is the answering host's: two orders draw on one; another host has its own."""
    answers = Answers()

    assert answers.pacer("a", None, Pace(6, 1020)) is answers.pacer("a", None, Pace(6, 1020))
    assert answers.pacer("a", None, Pace(6, 1020)) is not answers.pacer("b", None, Pace(6, 1020))


@pytest.mark.parametrize(("look_ms", "first_s"), [(4000, 3.4), (2000, 2.0)])
def test_first_look_is_long_until_something_answered(look_ms: int, first_s: float) -> None:
    """An unknown destination gets the time in which a dead neighbour shows: 3.06 s."""
    assert Answers().first_look_s("a", None, look_ms) == first_s


def test_first_look_leaves_room_for_late_answers() -> None:
    """A known destination gets four round trips or 250 ms: silence is asked again anyway."""
    answers = Answers()
    answers.learn("fast", 0.001)
    answers.learn("slow", 0.2)

    assert answers.first_look_s("fast", None, 4000) == pytest.approx(0.25)
    assert answers.first_look_s("slow", None, 4000) == pytest.approx(0.8)


def test_an_explicit_first_look_is_kept() -> None:
    """The coordinator's own number is not improved upon."""
    answers = Answers()
    answers.learn("a", 0.001)

    assert answers.first_look_s("a", 2500, 4000) == 2.5


def test_an_answer_to_the_second_syn_does_not_undo_a_round_trip() -> None:
    """One lost packet makes one answer a second late, and not every later deadline longer."""
    answers = Answers()
    answers.learn("a", 0.001)
    answers.learn("a", 1.002)

    assert answers.first_look_s("a", None, 4000) == pytest.approx(0.25)


def test_an_error_is_about_the_packet_that_it_follows_at_once() -> None:
    """A router without tokens refuses a later packet; a dead neighbour is told of the first."""
    assert waited_s(1.61, since=0.0, sent_at=1.6) < 0.1
    assert waited_s(3.06, since=0.0, sent_at=1.6) == 3.06
    assert waited_s(0.01, since=0.0, sent_at=0.0) == 0.01
