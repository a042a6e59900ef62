"""What samples tell for certain, held against published numbers and against trials."""

from __future__ import annotations

import random

import pytest

from netprobe.judge.intervals import (
    bound_mean_difference,
    bound_p99,
    bound_share,
    count_needed,
    count_needed_for_mean,
)

P99 = 0.99


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(1, 10, 0.0025, 0.4450), (5, 100, 0.0164, 0.1128), (10, 20, 0.2720, 0.7280),
     (0, 200, 0.0, 0.0149), (0, 10, 0.0, 0.2589), (20, 20, 0.8609, 1.0)],
)  # fmt: skip
def test_a_share_has_the_exact_binomial_interval(
    hits: int, count: int, low: float, high: float
) -> None:
    """As tables of Clopper and Pearson have it; one-sided where nothing, or all, was hit."""
    found = bound_share(hits, count)
    assert (round(found.low, 4), round(found.high or 0, 4)) == (low, high)
    turned = bound_share(count - hits, count)
    assert (turned.high, turned.low) == pytest.approx((1 - low, 1 - high), abs=1e-4)


def test_a_percentile_lies_between_two_samples() -> None:
    """298 samples never bound it from above, 299 just do; of 1,000 the bounds are the 983rd and the
    997th, which hold it 95 times of 100."""
    bounds = {count: bound_p99(range(1, count + 1)) for count in (200, 298, 299, 1000)}
    assert [bounds[count].high for count in (200, 298)] == [None, None]
    assert bounds[299].high == 299
    assert bounds[1000] == (983, 997)


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, 500])
def test_intervals_hold_the_truth(count: int) -> None:
    """Of 300 draws from a skewed distribution 95 of 100 intervals hold the true percentile, the
    true share, and about as many the true mean difference."""
    draw = random.Random(count)
    held = [0, 0, 0]
    trials = 300
    for _ in range(trials):
        # The 99th percentile of an exponential distribution is 4.605; its mean difference is 1.
        values = [round(draw.expovariate(1) * 1000) for _ in range(count)]
        p99 = bound_p99(sorted(values))
        held[0] += p99.low <= 4605 and (p99.high is None or p99.high >= 4605)
        share = bound_share(sum(draw.random() < 0.03 for _ in range(count)), count)
        held[1] += share.low <= 0.03 <= (share.high or 1)
        around = bound_mean_difference(values)[1]
        held[2] += around.low <= 1000 <= (around.high or 0)
    assert held[0] >= 0.94 * trials
    assert held[1] >= 0.94 * trials
    assert held[2] >= 0.9 * trials


def test_so_many_samples_would_decide() -> None:
    """3,000 that are all answered show a loss below 0.1 %; what is on the limit nobody decides."""
    assert count_needed(0, 200, 0.001) == 3000
    assert bound_share(0, 3000).high <= 0.001  # type: ignore[operator]
    assert count_needed(2, 200, 0.01) is None
    needed = count_needed(6, 200, 0.01) or 0
    assert bound_share(round(needed * 0.03), needed).is_past(0.01)
    assert count_needed_for_mean(10, 2, 100, 10) is None
    assert count_needed_for_mean(10, 2, 100, 9) == 400
