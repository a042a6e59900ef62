"""Many estates, one after another or some side by side."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.lab.random.estate import Estate
from tests.lab.random.running import Outcome, run_estate
from tests.lab.random.scoring import Scored


@dataclass
class Measured:
    """The scores of many estates, and what was not exact, for people."""

    scored: list[Scored] = field(default_factory=list)
    changed: int = 0
    failed: int = 0
    lines: list[str] = field(default_factory=list)


def measure(
    estates: list[Estate],
    jobs: int,
    *,
    verbose: bool = False,
    checkout: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Run estates, ``jobs`` side by side; ``say`` gets every line as soon as it is known.

    ``checkout``: the folder of another netprobe than this one.
    """
    measured = Measured()
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(partial(attempt, checkout=checkout), estates)
        for estate, outcome in zip(estates, outcomes, strict=True):
            if isinstance(outcome, str):
                measured.failed += 1
                lines = [f"seed {estate.seed} failed: {outcome}"]
            else:
                measured.scored += outcome.scored
                measured.changed += len(outcome.changed)
                lines = describe(estate, outcome, verbose=verbose)
            measured.lines += lines
            for line in lines:
                say(line)
    return measured


def attempt(estate: Estate, checkout: Path | None = None) -> Outcome | str:
    """The outcome of an estate, or why there is none."""
    try:
        return run_estate(estate, checkout)
    except Exception:
        return traceback.format_exc()


def describe(estate: Estate, outcome: Outcome, *, verbose: bool) -> list[str]:
    """One estate for people; without ``verbose`` only what is not exact."""
    bad = [one for one in outcome.scored if verbose or one.score != "exact"]
    lines = [f"seed {estate.seed}: {len(outcome.scored)} flows, {outcome.seconds}"]
    if bad or outcome.changed:
        lines += [*estate.words(), *outcome.changed, *(one.line() for one in bad)]
    return lines
