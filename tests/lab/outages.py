"""A table of outages that were planted on routers at known times, and how ``netprobe watch``
recorded them: ``python -m tests.lab.outages --count 100``.

Each lane is a lab of its own (client, router, server) with a watch of its own; lanes go side by
side. What stops the flow is a drop, a rejection and a drop of datagrams in turn. Times are of one
monotonic clock, which began with the machine's wall clock.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from netprobe.model.outage import Interval
from tests.lab.watching import (
    DROP,
    DROP_UDP,
    REJECT,
    Moment,
    WatchLab,
    contains,
    watch_lab,
)

KINDS = {"drop": DROP, "reject": REJECT, "drop udp": DROP_UDP}
# What an outage may be wider than it was: at its start beside the pause of rounds, and at its end.
MORE_S = 2.0


class Planted(NamedTuple):
    """One outage: as it was and as it is recorded."""

    kind: str
    begun: Moment
    ended: Moment
    times: Interval
    flows: int

    @property
    def contained(self) -> bool:
        """Whether the recorded interval contains the true one."""
        return contains(self.times, self.begun, self.ended)

    @property
    def wider_at_start_s(self) -> float:
        """How much earlier it may have begun, as it is recorded."""
        return self.begun.after - (self.times.last_good or 0.0)

    @property
    def wider_at_end_s(self) -> float:
        """How much later it may have ended, as it is recorded."""
        return (self.times.first_good or float("inf")) - self.ended.before

    def is_as_promised(self, every_s: float) -> bool:
        """Whether it has no more than its own flow, and is as narrow as the documents say."""
        narrow = self.wider_at_start_s <= every_s + MORE_S and self.wider_at_end_s <= MORE_S
        return self.contained and narrow and self.flows == 1


def plant_outages(count: int, lanes: int, every_s: int, seed: int = 33) -> list[Planted]:
    """Plant outages in so many lanes, and give them as they were recorded."""
    shares = [len(range(lane, count, lanes)) for lane in range(lanes)]
    with ThreadPoolExecutor(lanes) as threads:
        work = [
            threads.submit(_plant_lane, share, every_s, random.Random(seed + lane))
            for lane, share in enumerate(shares)
        ]
        return [one for lane in work for one in lane.result()]


def _plant_lane(count: int, every_s: int, chosen: random.Random) -> list[Planted]:
    now = _make_clock()
    planted = []
    with watch_lab(every_s) as lab, lab.watching():
        for number in range(count):
            kind = [*KINDS][number % len(KINDS)]
            time.sleep(chosen.uniform(0, every_s))
            begun = _plant_rules(lab, now, KINDS[kind])
            lab.wait_for(*[False] * number, True)
            # Young or not: it is asked every second for a minute.
            time.sleep(chosen.uniform(0, 2 * every_s))
            ended = _plant_rules(lab, now)
            lab.wait_for(*[False] * (number + 1))
            lab.wait_for_next_look()
            planted.append((kind, begun, ended))
        outages = lab.read().outages
    pairs = zip(planted, outages, strict=True)
    return [Planted(*one, outage.times, len(outage.members)) for one, outage in pairs]


def _make_clock() -> Callable[[], float]:
    begin = time.time() - time.monotonic()
    return lambda: begin + time.monotonic()


def _plant_rules(lab: WatchLab, now: Callable[[], float], *rules: str) -> Moment:
    before = now()
    lab.plant(*rules)
    return Moment(before, now())


def make_table(planted: Sequence[Planted], every_s: int) -> Iterator[str]:
    """Give the lines of the table: a line for each kind, and one for all."""
    yield f"{len(planted)} outages, rounds every {every_s} s; seconds by which the record is wider"
    yield "what stops it   count  contained  start: median   worst   end: median   worst"
    for name in (*KINDS, "all"):
        some = [one for one in planted if name in (one.kind, "all")]
        if some:
            starts = [one.wider_at_start_s for one in some]
            ends = [one.wider_at_end_s for one in some]
            yield (
                f"{name:14} {len(some):6} {sum(one.contained for one in some):10}"
                f" {statistics.median(starts):14.2f} {max(starts):7.2f}"
                f" {statistics.median(ends):13.2f} {max(ends):7.2f}"
            )
    kept = sum(one.is_as_promised(every_s) for one in planted)
    bounds = f"{every_s + MORE_S:g} s at the start and {MORE_S:g} s at the end"
    yield f"{kept} of {len(planted)} contain the true one, and are at most {bounds} wider"


def main() -> int:
    """Print the table; 1 where an outage is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--every", type=int, default=5, help="seconds")
    given = parser.parse_args()
    planted = plant_outages(given.count, given.lanes, given.every)
    sys.stdout.write("\n".join(make_table(planted, given.every)) + "\n")
    wrong = [one for one in planted if not one.is_as_promised(given.every)]
    for one in wrong:
        sys.stdout.write(f"not as promised: {one}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
