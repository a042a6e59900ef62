"""The random lab by hand: estates from seeds, netprobe's verdicts held against tcpdump.

python -m tests.lab.random --seed 7               one estate, every flow
python -m tests.lab.random --seeds 1-200,7001 --jobs 2
python -m tests.lab.random --minimise 7           the smallest rules that still score wrong
python -m tests.lab.random --seed 7 --list        what the estate is, without building it

The last lines are the table: flows, those that are scored wrong, and the shares of undecided and
exact ones, also by whether the destination has an agent. To hold two versions against each other,
measure the same seeds twice; ``--unprivileged 40``: in 40 of 100 estates no agent has any right:

python -m tests.lab.random --seeds 7001-7100 --unprivileged 40 --jobs 2
python -m tests.lab.random --seeds 7001-7100 --unprivileged 40 --jobs 2 --checkout ../netprobe-old

The other checkout has its own environment in its folder .venv (``make setup`` there).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.lab.random.draw import draw, without_rights
from tests.lab.random.estate import Estate
from tests.lab.random.measuring import measure
from tests.lab.random.minimise import minimise
from tests.lab.random.scoring import WRONG, table


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.random")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="numbers and ranges: 1-200,7001")
    parser.add_argument("--minimise", type=int, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=1, help="estates side by side")
    parser.add_argument("--unprivileged", type=int, default=0, metavar="PERCENT",
                        help="of the estates: their agents have no right")  # fmt: skip
    parser.add_argument("--checkout", type=Path, metavar="FOLDER", help="another netprobe's")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Print what was asked for; 1 where something is wrong."""
    wanted = arguments()
    if wanted.minimise is not None:
        for line in minimise(draw(wanted.minimise)):
            print(line, flush=True)
        return 0
    seeds = list(read_seeds(wanted.seeds or str(wanted.seed)))
    estates = draw_all(seeds, wanted.unprivileged)
    if wanted.list:
        print("\n".join(line for estate in estates for line in estate.words()))
        return 0
    begin = time.monotonic()
    verbose = wanted.seed is not None
    measured = measure(estates, wanted.jobs, verbose=verbose, checkout=wanted.checkout, say=_say)
    print("\n".join(table(measured.scored, measured.changed, measured.failed)))
    print(f"{time.monotonic() - begin:.0f} s")
    return int(any(one.score in WRONG for one in measured.scored) or measured.failed > 0)


def read_seeds(words: str) -> Iterator[int]:
    """Give the seeds of ``1-200,7001``."""
    for word in words.split(","):
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def draw_all(seeds: list[int], unprivileged: int) -> list[Estate]:
    """Draw the estates; of ``unprivileged`` in a hundred, evenly spread, agents have no right."""
    return [
        without_rights(draw(seed))
        if (number + 1) * unprivileged // 100 > number * unprivileged // 100
        else draw(seed)
        for number, seed in enumerate(seeds)
    ]


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
