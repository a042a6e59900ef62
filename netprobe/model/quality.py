"""How good a way is: the limits of a row, the samples of a flow, and what they show."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

# By what a way was measured: connects and datagrams to a listener of netprobe, or echo requests.
SampledBy = Literal["tcp", "udp", "icmp"]

# A flow is asked so often, and so many flows of a source at a time. More samples than these take
# longer than three minutes.
INTERVAL_MS = 20
FLOWS_AT_ONCE = 4
MOST_SAMPLES = 10_000
THREE_DIGITS = 100


class QualityLimits(Struct, frozen=True):
    """What a row demands of its way; None: nothing. Times in microseconds, ``loss`` is a share.

    ``required``: a way that is worse is blocked, and not only warned of.
    """

    rtt_p99_us: int | None = None
    jitter_us: int | None = None
    loss: float | None = None
    required: bool = False

    def to_file(self) -> dict[str, str | bool]:
        """Give the value of ``quality:`` in a matrix file."""
        found: dict[str, str | bool] = {}
        if self.rtt_p99_us is not None:
            found["rtt_p99"] = f"{self.rtt_p99_us / 1000:g}ms"
        if self.jitter_us is not None:
            found["jitter"] = f"{self.jitter_us / 1000:g}ms"
        if self.loss is not None:
            found["loss"] = f"{self.loss * 100:.6g}%"
        return {**found, "required": True} if self.required else found


class WaySamples(NamedTuple):
    """The samples of one flow: the round trips of those that were answered, in their order, and how
    many were lost, and ``refused`` by a reset or an ICMP error. ``why``: why not by packets of
    the row, in words; empty where it was. ``late`` and ``missed``: so many of them may be slow,
    or lost, only because the other end stood still."""

    by: SampledBy
    rtts_us: tuple[int, ...]
    lost: int
    why: str = ""
    refused: int = 0
    late: int = 0
    missed: int = 0


class Bar(Struct, frozen=True):
    """How many round trips took so long at most, and longer than the bar before."""

    up_to_us: int
    count: int


class Quality(Struct, frozen=True):
    """What the samples of a flow show; each interval holds the true value 95 times of 100.

    ``lost_low`` and ``lost_high``: the share that is lost. ``p99_high_us`` is None where the
    samples are too few to bound it from above, all times where none was answered. ``jitter_us``:
    the mean difference of neighbouring round trips. ``bars``: their distribution.
    """

    by: SampledBy
    samples: int
    lost: int
    lost_low: float
    lost_high: float
    p50_us: int | None = None
    p99_us: int | None = None
    p99_low_us: int | None = None
    p99_high_us: int | None = None
    max_us: int | None = None
    jitter_us: int | None = None
    jitter_low_us: int | None = None
    jitter_high_us: int | None = None
    limits: QualityLimits = QualityLimits()
    bars: tuple[Bar, ...] = ()


def word_us(time_us: int | None) -> str:
    """Give a time in three digits."""
    milliseconds = (time_us or 0) / 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= THREE_DIGITS else f"{milliseconds:.3g} ms"


def word_share(share: float) -> str:
    """Give a share in percent: below 1 % in two digits, above it with one decimal."""
    percent = share * 100
    digits = f"{percent:.2g}" if percent < 1 else f"{percent:.1f}".removesuffix(".0")
    return f"{digits} %"
