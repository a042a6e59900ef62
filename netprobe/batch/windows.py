"""Whether a host listened while another probed it, where only clocks told them when.

Each host tells by its own clock when its listeners were open and when it probed. How far two clocks
are apart is told by packets: of one that the recorders of both ends saw, each gives its time; and a
nonce that arrived proves that one end probed while the other listened. Where nothing of this shows
that a window lies within the other, silence proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from netprobe.agent.wire.answers import ProbeOutcomes, Seen, StoryTold
from netprobe.agent.wire.orders import ProbeOrder, StoryOrder, list_singles
from netprobe.batch.results import HostRecording
from netprobe.model import ports as port_sets

# The first packet of a flow may be lost, and one of the repeated ones is the first that came.
TOLERANCE_S = 2.0

Pair = tuple[str, str]


class Times(NamedTuple):
    """One host's times by its own clock: when it probed, and when its listeners were open."""

    probing: tuple[float, float]
    listening: tuple[float, float]


class Offset(NamedTuple):
    """How far one clock may be ahead of another, in seconds."""

    least: float = -math.inf
    most: float = math.inf

    def meet(self, other: Offset) -> Offset:
        """Give what both allow; where they contradict each other, nothing is known."""
        least, most = max(self.least, other.least), min(self.most, other.most)
        return Offset(least, most) if least <= most else Offset()

    def plus(self, other: Offset) -> Offset:
        """Give the offset over a third clock."""
        return Offset(self.least + other.least, self.most + other.most)

    def turned(self) -> Offset:
        """Give the same from the other clock's side."""
        return Offset(-self.most, -self.least)


class ClockWindows:
    """Compares the windows of all hosts of a run. ``names``: the hosts by their indices."""

    def __init__(self, recordings: Mapping[str, HostRecording], names: Sequence[str]) -> None:
        self._times = {
            name: times
            for name, one in recordings.items()
            if (times := _read_times(one)) is not None
        }
        self._offsets: dict[str, dict[str, Offset]] = {}
        self._met: set[Pair] = set()
        for pair in _find_met(recordings, names):
            self._note_met(*pair)
        for source, there, ahead_s in _compare_stories(recordings):
            exact = Offset(ahead_s - TOLERANCE_S, ahead_s + TOLERANCE_S)
            self._note_offset(source, there, exact)

    def doubt(self, source: str, there: str) -> str | None:
        """Say why what the source did not hear of a host proves nothing; None: it does."""
        if source == there:
            return None
        times, others = self._times.get(source), self._times.get(there)
        if times is None or others is None:
            name = source if times is None else there
            return f"the results of {name} do not tell when it probed and listened"
        if not _is_within(times.probing, others.listening, Offset(0.0, 0.0)):
            return (
                f"windows did not overlap: {source} probed {_word_span(times.probing)}, "
                f"{there} listened {_word_span(others.listening)}"
            )
        if (source, there) in self._met:
            return None
        ahead = self._find_offset(source, there)
        if ahead == Offset():
            return (
                f"no packet shows how the clocks of {source} and {there} compare, so that nobody "
                f"knows whether {there} listened when {source} probed"
            )
        if _is_within(times.probing, others.listening, ahead):
            return None
        return (
            f"windows may not have overlapped: the clocks of {source} and {there} may be "
            f"{max(abs(ahead.least), abs(ahead.most)):.0f} s apart; {source} probed "
            f"{_word_span(times.probing)}, {there} listened {_word_span(others.listening)}"
        )

    def _note_met(self, source: str, there: str) -> None:
        """Note that the source probed while the other listened."""
        times, others = self._times.get(source), self._times.get(there)
        if source == there or times is None or others is None:
            return
        self._met.add((source, there))
        least, most = times.probing[0] - others.listening[1], times.probing[1] - others.listening[0]
        self._note_offset(source, there, Offset(least, most))

    def _note_offset(self, one: str, other: str, ahead: Offset) -> None:
        for first, second, offset in ((one, other, ahead), (other, one, ahead.turned())):
            known = self._offsets.setdefault(first, {})
            known[second] = known.get(second, Offset()).meet(offset)

    def _find_offset(self, one: str, other: str) -> Offset:
        """Give how far a clock may be ahead of another, by themselves and over third ones.

        A third host that says another thing than the two themselves does not count.
        """
        mine = self._offsets.get(one, {})
        own, others = mine.get(other, Offset()), Offset()
        for third, offset in mine.items():
            onward = self._offsets.get(third, {}).get(other)
            if onward is not None:
                others = others.meet(offset.plus(onward))
        both = own.meet(others)
        return own if both == Offset() else both


def _read_times(recording: HostRecording) -> Times | None:
    """Read a host's times out of its marks; None where it does not tell them."""
    marks: dict[str, float] = {}
    for mark in recording.marks:
        marks.setdefault(mark.phase, mark.wall_s)
    try:
        return Times((marks["go"], marks["probed"]), (marks["listening"], marks["tell"]))
    except KeyError:
        return None


def _is_within(probing: tuple[float, float], listening: tuple[float, float], ahead: Offset) -> bool:
    """Tell whether all of the probing lies within the listening, whatever the offset is."""
    return probing[0] - ahead.most >= listening[0] and probing[1] - ahead.least <= listening[1]


def _find_met(
    recordings: Mapping[str, HostRecording], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Give source and destination of nonces that arrived."""
    # A host may say that it had the order of another one: that makes neither of them less.
    owners: dict[int, list[str]] = {}
    for name, one in recordings.items():
        for order in one.orders:
            for number in _list_ids(order):
                owners.setdefault(number, []).append(name)
    for name, one in recordings.items():
        for answer in (answer for some in one.answers.values() for answer in some):
            if isinstance(answer, ProbeOutcomes):
                yield from (
                    (name, names[kind.by])
                    for kind in answer.kinds
                    if kind.by is not None and kind.by < len(names)
                )
            elif isinstance(answer, Seen):
                yield from (
                    (owner, name) for item in answer.orders for owner in owners.get(item.order, ())
                )


def _list_ids(order: Any) -> Sequence[int]:
    """Give the ids that nonces of an order carry; none where it is no probe."""
    if hasattr(order, "dsts"):
        return getattr(order, "numbers", None) or (order.id,)
    return [one.id for one in list_singles(order)] if isinstance(order, ProbeOrder) else ()


def _compare_stories(
    recordings: Mapping[str, HostRecording],
) -> Iterator[tuple[str, str, float]]:
    """Give source, destination, and how far the source's clock is ahead: by packets that both
    recorders saw."""
    left: dict[tuple[Any, ...], list[tuple[str, StoryTold]]] = {}
    came: dict[tuple[Any, ...], list[tuple[str, StoryTold]]] = {}
    for name, one in recordings.items():
        for order in one.orders:
            if isinstance(order, StoryOrder):
                key = (order.proto, order.number, order.asker, order.target)
                told = [each for each in one.answers.get(order.id, ())
                        if isinstance(each, StoryTold)]  # fmt: skip
                ends = left if order.sent else came
                ends.setdefault(key, []).extend((name, each) for each in told)
    for key, sources in left.items():
        for source, sent in sources:
            for there, got in came.get(key, ()):
                ahead_s = _compare_runs(sent, got)
                if ahead_s is not None and source != there:
                    yield source, there, ahead_s


def _compare_runs(sent: StoryTold, got: StoryTold) -> float | None:
    for one in sent.runs:
        for other in got.runs:
            alike = not one.ports or port_sets.intersect(
                port_sets.normalise(one.ports), port_sets.normalise(other.ports)
            )
            if alike and one.requests is not None and other.requests is not None:
                return (one.requests.first_ns - other.requests.first_ns) / 1e9
    return None


def _word_span(span: tuple[float, float]) -> str:
    first, last = (datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S") for at in span)
    return f"{first}-{last}"
