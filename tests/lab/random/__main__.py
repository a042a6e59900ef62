"""The random lab by hand: estates from seeds, netprobe's verdicts held against tcpdump.

python -m tests.lab.random --seed 7               one estate, every flow
python -m tests.lab.random --seeds 1-200 --jobs 2
python -m tests.lab.random --minimise 7           the smallest rules that still score wrong
python -m tests.lab.random --seed 7 --list        what the estate is, without building it
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.lab.random.draw import draw
from tests.lab.random.measuring import measure
from tests.lab.random.minimise import minimise
from tests.lab.random.scoring import WRONG, table


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.random")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="FIRST-LAST")
    parser.add_argument("--minimise", type=int, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=1, help="estates side by side")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Print what was asked for; 1 where something is wrong."""
    wanted = arguments()
    if wanted.minimise is not None:
        for line in minimise(draw(wanted.minimise)):
            print(line, flush=True)
        return 0
    first, _, last = (wanted.seeds or str(wanted.seed)).partition("-")
    estates = [draw(seed) for seed in range(int(first), int(last or first) + 1)]
    if wanted.list:
        print("\n".join(line for estate in estates for line in estate.words()))
        return 0
    begin = time.monotonic()
    measured = measure(estates, wanted.jobs, verbose=wanted.seed is not None, say=_say)
    print("\n".join(table(measured.scored, measured.changed, measured.failed)))
    print(f"{time.monotonic() - begin:.0f} s")
    return int(any(one.score in WRONG for one in measured.scored) or measured.failed > 0)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
