"""One estate from beginning to end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.lab.random.estate import Estate
from tests.lab.random.faults import built
from tests.lab.random.scoring import Scored, ask_netprobe, score_all
from tests.lab.random.truth import find_truth


@dataclass(frozen=True)
class Outcome:
    """The scores of an estate; ``changed`` flows had no steady truth."""

    scored: list[Scored]
    changed: list[str]
    seconds: str


def run_estate(estate: Estate, checkout: Path | None = None) -> Outcome:
    """Build it, test it, run netprobe (of another ``checkout``), test it again, and score."""
    marks = [time.monotonic()]
    with built(estate) as standing:
        marks.append(time.monotonic())
        before = find_truth(standing)
        marks.append(time.monotonic())
        said = ask_netprobe(standing, checkout)
        marks.append(time.monotonic())
        after = find_truth(standing)
    marks.append(time.monotonic())
    scored, changed = score_all(estate, before, after, said)
    names = ("build", "truth", "netprobe", "truth")
    steps = zip(names, marks, marks[1:], strict=False)
    return Outcome(scored, changed, ", ".join(f"{n} {b - a:.1f} s" for n, a, b in steps))
