"""What samples tell for certain: intervals that hold the true value 95 times of 100.

Shares have the exact binomial interval (Clopper and Pearson), percentiles that of order statistics;
both assume nothing of the distribution. Where nothing was lost, the interval is one-sided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

DOUBT = 0.05
# Of a normal distribution this many deviations to each side hold 95 of 100.
DEVIATIONS = 1.96
# The share of round trips that are longer than the 99th percentile.
P99_REST = 0.01
HALVINGS = 40
NEGLIGIBLE = 1e-15
# More samples than these nobody takes.
MOST_USEFUL = 1_000_000
LEAST_DIFFERENCES = 10


class Bounds(NamedTuple):
    """``high`` None: it has no upper end."""

    low: float
    high: float | None

    def is_past(self, limit: float) -> bool | None:
        """Tell whether the whole interval lies past a limit; None: the limit is inside."""
        if self.low > limit:
            return True
        return False if self.high is not None and self.high <= limit else None


def sum_binomial(most: int, count: int, share: float) -> float:
    """Give the chance that of so many at most ``most`` are hit, each with this chance."""
    if most < 0:
        return 0.0
    if most >= count:
        return 1.0
    if most + 1 > count * share:
        return 1 - _sum_tail(count - most - 1, count, 1 - share)
    return _sum_tail(most, count, share)


def _sum_tail(most: int, count: int, share: float) -> float:
    """Sum from ``most`` down, where each chance is smaller than the one before."""
    chance = math.exp(
        math.lgamma(count + 1) - math.lgamma(most + 1) - math.lgamma(count - most + 1)
        + most * math.log(share) + (count - most) * math.log1p(-share)
    )  # fmt: skip
    total = 0.0
    for hits in range(most, -1, -1):
        total += chance
        if chance < total * NEGLIGIBLE:
            break
        chance *= hits / (count - hits + 1) * (1 - share) / share
    return total


def bound_share(hits: int, count: int) -> Bounds:
    """Give the interval of a share of which ``hits`` of ``count`` samples were seen."""
    if count == 0:
        return Bounds(0.0, 1.0)
    if hits == 0:
        return Bounds(0.0, 1 - DOUBT ** (1 / count))
    if hits == count:
        return Bounds(DOUBT ** (1 / count), 1.0)
    if hits * 2 > count:
        turned = bound_share(count - hits, count)
        return Bounds(1 - (turned.high or 0.0), 1 - turned.low)
    low = _halve_between(lambda share: 1 - sum_binomial(hits - 1, count, share) < DOUBT / 2)
    high = _halve_between(lambda share: sum_binomial(hits, count, share) > DOUBT / 2)
    return Bounds(low, high)


def _halve_between(is_below: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2


def bound_p99(ordered: Sequence[int]) -> Bounds:
    """Give the interval of the 99th percentile, between two of the samples (in rising order)."""
    count = len(ordered)
    none_past = (1 - P99_REST) ** count
    above = -1
    while sum_binomial(above + 1, count, P99_REST) <= DOUBT / 2:
        above += 1
    if above >= 0:
        return Bounds(_find_low(ordered, DOUBT / 2), ordered[count - 1 - above])
    if none_past <= DOUBT:
        # The largest sample is below it so seldom that the lower end gets the rest of the doubt.
        return Bounds(_find_low(ordered, DOUBT - none_past), ordered[-1])
    return Bounds(_find_low(ordered, DOUBT), None)


def _find_low(ordered: Sequence[int], doubt: float) -> int:
    """Give the largest sample that the 99th percentile is seldom below."""
    count = len(ordered)
    past = 1
    while past <= count and 1 - sum_binomial(past - 1, count, P99_REST) > doubt:
        past += 1
    return ordered[count - past] if past <= count else 0


def bound_mean_difference(values: Sequence[int]) -> tuple[float, Bounds]:
    """Give the mean difference of neighbours and its interval; that one is approximate.

    Neighbouring differences share a value, so that they are not independent.
    """
    gaps = [abs(after - before) for before, after in pairwise(values)]
    if not gaps:
        return 0.0, Bounds(0.0, None)
    mean = fmean(gaps)
    if len(gaps) < LEAST_DIFFERENCES:
        return mean, Bounds(0.0, None)
    apart = [gap - mean for gap in gaps]
    own = math.fsum(one * one for one in apart) / (len(gaps) - 1)
    shared = math.fsum(one * other for one, other in pairwise(apart)) / (len(gaps) - 1)
    half = DEVIATIONS * math.sqrt((own + 2 * max(0.0, shared)) / len(gaps))
    return mean, Bounds(max(0.0, mean - half), mean + half)


def count_needed(hits: int, count: int, limit: float) -> int | None:
    """Give about how many samples would tell on which side of a limit a share is, if it goes on as
    seen; None: no useful number."""
    if hits == 0:
        return _round_up(math.log(DOUBT) / math.log1p(-limit))
    seen = hits / count
    if seen == limit:
        return None
    spread = max(seen * (1 - seen), limit * (1 - limit))
    return _round_up(max(count + 1, DEVIATIONS**2 * spread / (seen - limit) ** 2))


def count_needed_for_mean(mean: float, half: float, count: int, limit: float) -> int | None:
    """Give the same for a mean whose interval reaches ``half`` to each side."""
    if mean == limit:
        return None
    return _round_up(max(count + 1, count * (half / (mean - limit)) ** 2))


def _round_up(number: float) -> int | None:
    """Round up to two digits."""
    if number > MOST_USEFUL:
        return None
    step = int(10 ** max(0, len(str(math.ceil(number))) - 2))
    return math.ceil(number / step) * step
