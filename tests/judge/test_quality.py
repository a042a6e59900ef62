"""What the samples of a way mean for the limits of its row."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.quality import ROWS, judge_quality
from netprobe.model.codec import result_from_json, result_to_json
from netprobe.model.quality import QualityLimits, SampledBy, WaySamples, word_share
from netprobe.model.result import Result
from netprobe.request.rules import RequestWishes
from pages.combinations import QUALITIES
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

BASE = replace(
    BLOCKED, requirement="etcd/quality", protocol="tcp", port=2380, end_port=2380, rejected_by=None
)
STEADY = tuple(range(900, 1200))


def told(limits: QualityLimits, rtts_us: tuple[int, ...] = STEADY, lost: int = 0) -> Result:
    return judge_quality(BASE, WaySamples("tcp", rtts_us, lost), limits)


def test_each_row_has_its_samples() -> None:
    """Every row of the table is reached, by each way of measuring."""
    results = [judge_quality(BASE, *one) for one in QUALITIES]
    assert {one.reason for one in results} == {row.reason for row in ROWS.values()}
    assert {one.quality.by for one in results if one.quality} == {*get_args(SampledBy)}


def test_only_a_whole_interval_past_the_limit_is_slow() -> None:
    """Blocked where the row requires it, else a warning of a pass; within it is neither."""
    late = (*STEADY[:-12], *(70_000 for _ in range(12)))
    limits = QualityLimits(rtt_p99_us=66_000)
    warned = told(limits, late)
    assert (warned.verdict, warned.reason) == ("pass", "way-quality")
    assert warned.warnings[-1].startswith("slow: the 99th percentile 70 ms (95 %: 70 to 70 ms)")
    bad = told(replace(limits, required=True), late)
    assert (bad.verdict, bad.reason, bad.where, bad.proof) == ("blocked", "slow", ("path",), "none")
    good = told(replace(limits, required=True))
    assert (good.verdict, good.warnings[len(BASE.warnings) :]) == ("pass", ())


def test_a_limit_inside_of_the_interval_is_undecided() -> None:
    """It says how many samples would decide; a required limit is inconclusive then."""
    few = STEADY[:200]
    limits = QualityLimits(rtt_p99_us=66_000, loss=0.001, required=True)
    one = told(limits, few)
    assert (one.verdict, one.reason) == ("inconclusive", "quality-undecided")
    assert (
        "whether 0.1 % holds cannot be told (0 of 200 lost: below 1.5 %): 3,000 samples would"
    ) in one.because
    assert "(95 %: 1.09 ms or more)): 300 samples would" in one.because
    beside = told(replace(limits, required=False), few)
    assert beside.verdict == "pass"
    assert [text.partition(":")[0] for text in beside.warnings[-2:]] == ["undecided"] * 2


def test_the_gravest_is_the_reason_and_the_rest_warns() -> None:
    """A limit that is passed comes before one that is undecided."""
    limits = QualityLimits(rtt_p99_us=66_000, loss=0.001, required=True)
    one = told(limits, STEADY[:100], lost=50)
    assert one.reason == "slow"
    assert one.because.startswith(
        "50 of 150 lost (95 %: 25.9 % to 41.5 %), past the 0.1 % of the row"
    )
    assert one.warnings[-1].startswith("undecided: whether 66 ms holds")


def test_jitter_is_held_against_its_own_interval() -> None:
    """Round trips of 1 and 31 ms in turn differ by 30 ms, though neither is long."""
    turns = (1_000, 31_000) * 100
    assert told(QualityLimits(jitter_us=10_000, required=True), turns).reason == "slow"
    assert told(QualityLimits(jitter_us=40_000, required=True), turns).verdict == "pass"
    assert told(QualityLimits(jitter_us=10_000), turns[:3]).warnings[-1].startswith("undecided")


def test_nothing_answered() -> None:
    """All is lost: slow by its loss, and no time is told."""
    one = told(QualityLimits(rtt_p99_us=66_000, loss=0.1, required=True), (), 200)
    assert (one.reason, one.rtt_ms) == ("slow", None)
    assert one.quality is not None
    assert (one.quality.p99_us, one.quality.bars) == (None, ())


def test_the_bars_are_the_distribution() -> None:
    """Each sample is in one bar, the last ends at the longest, and no bar is an average."""
    one = told(QualityLimits(), (*STEADY, 90_000))
    assert one.quality is not None
    bars = one.quality.bars
    assert sum(bar.count for bar in bars) == 301
    assert (bars[-1].up_to_us, bars[-1].count) == (90_000, 1)
    assert [bar.up_to_us for bar in bars] == sorted(bar.up_to_us for bar in bars)


def test_a_result_is_read_as_it_was_written() -> None:
    """``quality`` of the JSON is an object, and reading gives the same."""
    one = told(QualityLimits(66_000, None, 0.001, required=True))
    data = result_to_json(one)
    assert data["quality"]["limits"]["rtt_p99_us"] == 66_000
    assert result_from_json(data, one.order) == one
    assert "quality" not in result_to_json(BASE)


def test_no_rule_helps() -> None:
    """A request lists the way as what no rule will help; one cause is one finding."""
    one = told(QualityLimits(loss=0.001, required=True), lost=50)
    other = replace(one, source="worker-9")
    (finding,) = fold([one, other])
    assert "is worse than" in finding.title
    request = ask([one], RequestWishes(), INFO)
    assert not request.rules
    assert request.unmended


def test_a_refusal_is_no_loss() -> None:
    """What was refused is told of, and counts neither as a sample nor as a loss."""
    seen = WaySamples("tcp", (1000,) * 150, 0, refused=50)
    found = judge_quality(BASE, seen, QualityLimits(loss=0.1, required=True))
    assert (found.verdict, found.reason) == ("pass", "way-quality")
    assert found.quality is not None
    assert (found.quality.samples, found.quality.lost) == (150, 0)
    (warning,) = found.warnings
    assert warning.startswith("50 of 200 connections were refused, which is no loss of the way: ")


def test_what_a_pause_of_the_other_end_spoilt_makes_no_way_slow() -> None:
    """So many of the worst samples as it lasted for are left out; what is past a limit without them
    is slow, and what is not is undecided because a machine was busy."""
    limits = QualityLimits(rtt_p99_us=66_000, jitter_us=10_000, loss=0.02, required=True)
    late = (*STEADY[:200], *range(300_000, 0, -20_000), *STEADY[200:])

    def judged(rtts_us: tuple[int, ...], lost: int, *spoilt: int) -> Result:
        seen = WaySamples("udp", rtts_us, lost, "", 0, *spoilt)
        return judge_quality(BASE, seen, limits)

    assert judged(late, 0).reason == "slow"
    busy = judged(late, 0, 15)
    assert (busy.verdict, busy.reason) == ("inconclusive", "machine-busy")
    assert busy.because.startswith("the 99th percentile 240 ms (95 %: 140 to 300 ms), past the 66")
    assert "machines stood still meanwhile: up to 15 samples were spoilt by that" in busy.because
    assert judged((*STEADY, *[90_000] * 40), 0, 15).reason == "slow"
    # A pause that may have cost no packets excuses no loss.
    assert judged(STEADY, 20, 20, 0).reason == "slow"
    assert judged(STEADY, 20, 20, 20).reason == "machine-busy"
    assert judged(STEADY, 60, 20, 20).reason == "slow"
    assert judged(STEADY, 0, 20, 20).verdict == "pass"
    # Nothing is left.
    assert judged((90_000,) * 200, 0, 500, 500).reason == "machine-busy"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.125, "12.5 %"), (0.12, "12 %"), (0.0123, "1.2 %"), (0.00125, "0.12 %"), (1.0, "100 %"),
        (0.9999, "100 %"), (0.0, "0 %"),
    ],
)  # fmt: skip
def test_words_of_a_share(share: float, words: str) -> None:
    """One decimal where the percent are no whole number; below 1 % two digits."""
    assert word_share(share) == words
