"""Whether a host listened while another probed, as their clocks and packets show."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import ProbeOutcomes, Seen, StoryTold
from netprobe.agent.wire.batch import PhaseClock
from netprobe.agent.wire.orders import StoryOrder
from netprobe.agent.wire.parts import OrderArrivals, OutcomeRun, SeenPackets, SeenRun
from netprobe.batch.results import HostRecording
from netprobe.batch.windows import ClockWindows, Offset
from tests.agent.rig import order
from tests.batch.support import KIND

NAMES = ("", "", "", "a", "b", "c")
ADDRESS = {"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.3"}
BEGIN = {"listening": 10.0, "go": 20.0, "probed": 80.0, "tell": 90.0}
# Its clock is so far ahead that its window lies behind those of the others.
AHEAD_S = 1000.0


def marks(ahead_s: float = 0.0) -> tuple[PhaseClock, ...]:
    """The marks of a host whose clock is so far ahead."""
    return tuple(PhaseClock(1, phase, at + ahead_s) for phase, at in BEGIN.items())


def recording(name: str, ahead_s: float = 0.0, **more: Any) -> HostRecording:
    """A host's results."""
    return HostRecording(f"{name}.npr", name, None, marks=marks(ahead_s), **more)


def compare(*recordings: HostRecording) -> ClockWindows:
    """The windows of all of them."""
    return ClockWindows({one.name: one for one in recordings if one.name is not None}, NAMES)


def story(number: int, source: str, there: str, *, sent: bool) -> StoryOrder:
    """What an end is asked about the packets from one host to another."""
    return StoryOrder(
        number, "tcp", None, ADDRESS[source], ADDRESS[there], [(80, 80)], sent, [], []
    )


def saw(number: int, at_s: float) -> StoryTold:
    """The recorder saw the first request at this time by its own clock."""
    packets = SeenPackets(1, 1, int(at_s * 1e9), 64, "eth0")
    run = SeenRun([(80, 80)], packets, None, None, [])
    return StoryTold(number, True, None, [run], [], [], True, True, 0, False)


def with_stories(name: str, ahead_s: float, *stories: tuple[StoryOrder, float]) -> HostRecording:
    """A host that tells when it saw what."""
    return recording(
        name, ahead_s,
        orders=tuple(asked for asked, _ in stories),
        answers={asked.id: (saw(asked.id, at_s + ahead_s),) for asked, at_s in stories},
    )  # fmt: skip


def test_a_nonce_that_arrived_shows_that_the_other_listened() -> None:
    """Whichever end tells of it; and only in that direction."""
    probed = order(7, "tcp", ADDRESS["b"], [(80, 80)])
    outcome = ProbeOutcomes(7, [(1, 1)], [KIND._replace(by=4)], [OutcomeRun(80, 80, 0, [9], 1)], [])
    heard = Seen(9, [OrderArrivals(7, [(80, 80)], [ADDRESS["a"]], None)], [], [], [])

    by_source = compare(recording("a", orders=(probed,), answers={7: (outcome,)}), recording("b"))
    by_listener = compare(recording("a", orders=(probed,)), recording("b", answers={9: (heard,)}))
    assert (by_source.doubt("a", "b"), by_listener.doubt("a", "b")) == (None, None)
    assert "windows may not have overlapped" in (by_source.doubt("b", "a") or "")


def test_no_packet_proves_nothing_even_where_clocks_agree() -> None:
    """The clocks themselves are not known."""
    doubt = compare(recording("a"), recording("b")).doubt("a", "b")
    assert doubt == (
        "no packet shows how the clocks of a and b compare, so that nobody knows whether b "
        "listened when a probed"
    )


def test_windows_apart_are_told_with_their_times() -> None:
    """By the clocks as they are."""
    doubt = compare(recording("a"), recording("b", AHEAD_S)).doubt("a", "b")
    assert doubt == (
        "windows did not overlap: a probed 00:00:20-00:01:20, b listened 00:16:50-00:18:10"
    )


@pytest.mark.parametrize(("apart_s", "proven"), [(0.0, True), (7.0, True), (9.0, False)])
def test_a_packet_that_both_recorders_saw_compares_their_clocks(
    apart_s: float, proven: bool
) -> None:
    """Exactly but for two seconds: ten are between the windows' ends."""
    source = with_stories("a", 0.0, (story(1, "a", "b", sent=True), 30.0))
    there = with_stories("b", 0.0, (story(2, "a", "b", sent=False), 30.0 + apart_s))
    doubt = compare(source, there).doubt("a", "b")
    assert (doubt is None) == proven
    if not proven:
        assert "may be 11 s apart" in str(doubt)


def test_clocks_compare_over_a_third_host() -> None:
    """Two offsets add up, with their uncertainty."""
    through_c = (
        with_stories("a", 0.0, (story(1, "a", "c", sent=True), 30.0)),
        with_stories(
            "c", 0.0,
            (story(2, "a", "c", sent=False), 30.0), (story(3, "b", "c", sent=False), 40.0),
        ),
        with_stories("b", 0.0, (story(4, "b", "c", sent=True), 40.0)),
    )  # fmt: skip
    assert compare(*through_c).doubt("a", "b") is None
    assert compare(through_c[0], through_c[2]).doubt("a", "b") is not None


def test_results_without_times_prove_nothing() -> None:
    """The host that does not tell them is named."""
    silent = HostRecording("b.npr", "b", None)
    both = compare(recording("a"), silent)
    assert both.doubt("a", "b") == both.doubt("b", "a")
    assert both.doubt("a", "b") == "the results of b do not tell when it probed and listened"
    assert both.doubt("b", "b") is None


def test_offsets_that_contradict_each_other_say_nothing() -> None:
    """They meet, add up and turn round as intervals do."""
    assert Offset(1, 5).meet(Offset(3, 9)) == Offset(3, 5)
    assert Offset(1, 2).meet(Offset(3, 4)) == Offset()
    assert Offset(1, 2).plus(Offset(10, 20)) == Offset(11, 22)
    assert Offset(1, 2).turned() == Offset(-2, -1)
