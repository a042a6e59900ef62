"""The samples of a way → verdict: each limit of the row held against an interval, not a number.

A way is slow only where the whole interval lies past a limit. A limit inside of it is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from netprobe.judge.intervals import (
    P99_REST,
    bound_mean_difference,
    bound_p99,
    bound_share,
    count_needed,
    count_needed_for_mean,
)
from netprobe.model.quality import (
    INTERVAL_MS,
    MOST_SAMPLES,
    Bar,
    Quality,
    QualityLimits,
    SampledBy,
    WaySamples,
    word_share,
    word_us,
)
from netprobe.model.result import Place, Proof, Result, Verdict

MOST_BARS = 12
MS = " ms"

PROOFS: Final[dict[SampledBy, Proof]] = {"tcp": "handshake", "udp": "nonce", "icmp": "service"}
SAMPLED: Final[dict[SampledBy, str]] = {
    "tcp": "connections", "udp": "datagrams", "icmp": "echo requests",
}  # fmt: skip


class QualityRow(Struct, frozen=True):
    """One line of the table; ``because`` has the words of what decides, then the numbers."""

    verdict: Verdict
    reason: str
    where: tuple[Place, ...]
    because: str


ROWS: Final[dict[str, QualityRow]] = {
    "measured": QualityRow("pass", "way-quality", (), "{numbers}"),
    "slow": QualityRow("blocked", "slow", ("path",), "{words}; {numbers}"),
    "busy": QualityRow(
        "inconclusive", "machine-busy", ("destination", "source"), "{words}; {numbers}"
    ),
    "undecided": QualityRow("inconclusive", "quality-undecided", ("path",), "{words}; {numbers}"),
}


class HeldLimit(NamedTuple):
    """A limit, held against its interval. ``is_past`` None: undecided; ``words``: a sentence;
    ``is_busy``: undecided only because a machine stood still."""

    is_past: bool | None
    words: str
    is_busy: bool = False


def judge_quality(base: Result, seen: WaySamples, limits: QualityLimits) -> Result:
    """Give the result of a way that was measured."""
    shown = describe_samples(seen, limits)
    held = _doubt_spoilt(list(_hold_limits(seen, shown)), seen, limits)
    past = [one.words for one in held if one.is_past]
    undecided = [one.words for one in held if one.is_past is None]
    busy = [one.words for one in held if one.is_busy]
    row, words = _choose_row(limits, past, busy, undecided)
    beside = [f"slow: {one}" for one in past] if row.reason != "slow" else []
    if seen.refused:
        beside.append(_word_refused(seen))
    beside += [f"undecided: {one}" for one in undecided if one not in words]
    return replace(
        base,
        verdict=row.verdict,
        state="open",
        reason=row.reason,
        proof=PROOFS[seen.by] if row.verdict == "pass" else "none",
        where=row.where,
        because=row.because.format(words="; ".join(words), numbers=word_quality(shown, seen.why)),
        rtt_ms=None if shown.p50_us is None else shown.p50_us / 1000,
        attempts=shown.samples,
        warnings=(*base.warnings, *beside),
        quality=shown,
    )


def _word_refused(seen: WaySamples) -> str:
    count = len(seen.rtts_us) + seen.lost + seen.refused
    return (
        f"{seen.refused} of {count} {SAMPLED[seen.by]} were refused, which is no loss of the way: "
        f"netprobe sends {1000 // INTERVAL_MS} a second, and something limits what is new"
    )


def _choose_row(
    limits: QualityLimits, past: list[str], busy: list[str], undecided: list[str]
) -> tuple[QualityRow, list[str]]:
    if limits.required and past:
        return ROWS["slow"], past
    if limits.required and busy:
        return ROWS["busy"], busy
    if limits.required and undecided:
        return ROWS["undecided"], undecided
    return ROWS["measured"], []


def describe_samples(seen: WaySamples, limits: QualityLimits) -> Quality:
    """Give what the samples show, with intervals."""
    count = len(seen.rtts_us) + seen.lost
    lost = bound_share(seen.lost, count)
    bare = Quality(
        seen.by, count, seen.lost, _round_share(lost.low), _round_share(lost.high or 0.0),
        limits=limits,
    )  # fmt: skip
    if not seen.rtts_us:
        return bare
    ordered = sorted(seen.rtts_us)
    p99 = bound_p99(ordered)
    jitter, around = bound_mean_difference(seen.rtts_us)
    return replace(
        bare,
        p50_us=round(median(ordered)),
        p99_us=find_p99(ordered),
        p99_low_us=int(p99.low),
        p99_high_us=None if p99.high is None else int(p99.high),
        max_us=ordered[-1],
        jitter_us=round(jitter),
        jitter_low_us=round(around.low),
        jitter_high_us=None if around.high is None else round(around.high),
        bars=tuple(_make_bars(ordered)),
    )


def find_p99(ordered: Sequence[int]) -> int:
    """Give the smallest sample that 99 of 100 are not longer than."""
    return ordered[math.ceil(len(ordered) * (1 - P99_REST)) - 1]


def _make_bars(ordered: Sequence[int]) -> Iterator[Bar]:
    """Give the distribution; each bar is so many times as long as the one before it."""
    low, high = ordered[0], ordered[-1]
    count = min(MOST_BARS, high - low + 1)
    begin = 0
    for bar in range(1, count + 1):
        up_to = high if bar == count else round(low * (high / low) ** (bar / count))
        end = begin
        while end < len(ordered) and ordered[end] <= up_to:
            end += 1
        yield Bar(up_to, end - begin)
        begin = end


def _doubt_spoilt(
    held: list[HeldLimit], seen: WaySamples, limits: QualityLimits
) -> list[HeldLimit]:
    """Take back that a limit is passed where it would not be without the samples that pauses of
    the other end may have spoilt: as many of the longest round trips, and of the losses."""
    if not seen.late:
        return held
    kept = set(sorted(range(len(seen.rtts_us)), key=seen.rtts_us.__getitem__)[: -seen.late])
    rest = seen._replace(
        rtts_us=tuple(rtt for place, rtt in enumerate(seen.rtts_us) if place in kept),
        lost=max(0, seen.lost - seen.missed),
    )
    without = _hold_limits(rest, describe_samples(rest, limits))
    doubt = f"but machines stood still meanwhile: up to {seen.late} samples were spoilt by that"
    return [
        HeldLimit(None, f"{one.words}, {doubt}", is_busy=True)
        if one.is_past and not other.is_past
        else one
        for one, other in zip(held, without, strict=True)
    ]


def _hold_limits(seen: WaySamples, shown: Quality) -> Iterator[HeldLimit]:
    limits = shown.limits
    if limits.rtt_p99_us is not None:
        yield _hold_p99(seen, shown, limits.rtt_p99_us)
    if limits.jitter_us is not None:
        yield _hold_jitter(seen, shown, limits.jitter_us)
    if limits.loss is not None:
        yield _hold_loss(shown, limits.loss)


def _hold_p99(seen: WaySamples, shown: Quality, limit: int) -> HeldLimit:
    if not seen.rtts_us:
        return HeldLimit(None, f"no round trip to hold against {word_us(limit)}")
    is_past = bound_p99(sorted(seen.rtts_us)).is_past(limit)
    longer = sum(rtt > limit for rtt in seen.rtts_us)
    needed = count_needed(longer, len(seen.rtts_us), P99_REST)
    return _word_held(is_past, f"the 99th percentile {_word_p99(shown)}", word_us(limit), needed)


def _hold_jitter(seen: WaySamples, shown: Quality, limit: int) -> HeldLimit:
    mean, around = bound_mean_difference(seen.rtts_us)
    if around.high is None:
        return HeldLimit(
            None, f"too few round trips to tell the jitter ({word_us(limit)} is allowed)"
        )
    half = around.high - mean
    needed = count_needed_for_mean(mean, half, len(seen.rtts_us), limit)
    what = f"the jitter {_word_jitter(shown)}"
    return _word_held(around.is_past(limit), what, word_us(limit), needed)


def _hold_loss(shown: Quality, limit: float) -> HeldLimit:
    found = bound_share(shown.lost, shown.samples)
    needed = count_needed(shown.lost, shown.samples, limit)
    return _word_held(found.is_past(limit), _word_loss(shown), word_share(limit), needed)


def _word_held(is_past: bool | None, what: str, limit: str, needed: int | None) -> HeldLimit:
    if is_past is None:
        more = (
            "no useful number of samples would" if needed is None else f"{needed:,} samples would"
        )
        if needed is not None and needed > MOST_SAMPLES:
            more += f", and a run takes {MOST_SAMPLES:,} at most"
        return HeldLimit(None, f"whether {limit} holds cannot be told ({what}): {more}")
    return HeldLimit(
        is_past, f"{what}, {'past the' if is_past else 'within the'} {limit} of the row"
    )


def word_quality(shown: Quality, why: str = "") -> str:
    """Say in one line what the samples show."""
    how = f"{shown.samples} {SAMPLED[shown.by]}{f' ({why})' if why else ''}"
    if shown.p50_us is None:
        return f"{how}: {_word_loss(shown)}"
    return (
        f"{how}: round trip p50 {word_us(shown.p50_us)}, p99 {_word_p99(shown)}, at most "
        f"{word_us(shown.max_us)}; jitter {_word_jitter(shown)}; {_word_loss(shown)}"
    )


def _word_p99(shown: Quality) -> str:
    low, high = word_us(shown.p99_low_us), word_us(shown.p99_high_us)
    bounded = f"{low.removesuffix(MS)} to {high}"
    around = f"{low} or more" if shown.p99_high_us is None else bounded
    return f"{word_us(shown.p99_us)} (95 %: {around})"


def _word_jitter(shown: Quality) -> str:
    if shown.jitter_high_us is None:
        return word_us(shown.jitter_us)
    around = f"{word_us(shown.jitter_low_us).removesuffix(MS)} to {word_us(shown.jitter_high_us)}"
    return f"{word_us(shown.jitter_us)} (95 %: {around})"


def _word_loss(shown: Quality) -> str:
    lost = f"{shown.lost} of {shown.samples} lost"
    if not shown.lost:
        return f"{lost}: below {word_share(shown.lost_high)}"
    return f"{lost} (95 %: {word_share(shown.lost_low)} to {word_share(shown.lost_high)})"


def _round_share(share: float) -> float:
    return float(f"{share:.4g}")
