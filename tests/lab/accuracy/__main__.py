"""The accuracy lab by hand: ``python -m tests.lab.accuracy`` prints the score table.

--as nobody     agents without any capability        --loss 20    lossy router 1, open ways only
--busy 4        four busy loops beside it            --nmap       ask nmap instead
--sample N      one case of N                        --list       every case with its rule
--only "router-1 drop"   cases of these words (place, action, listener)
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext

from tests.lab.accuracy.cases import Case, all_cases, open_cases, sample
from tests.lab.accuracy.modes import CHAINS, busy, with_netprobe, with_nmap
from tests.lab.accuracy.scoring import Scored, expectations, false_blocks, table

LOSS_COPIES = 20


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.accuracy")
    parser.add_argument("--as", dest="user", choices=("root", "nobody"), default="root")
    parser.add_argument("--loss", type=int, default=0, metavar="PERCENT")
    parser.add_argument("--busy", type=int, default=0, metavar="LOOPS")
    parser.add_argument("--nmap", action="store_true")
    parser.add_argument("--sample", type=int, default=1, metavar="N")
    parser.add_argument("--chains", type=int, default=CHAINS, metavar="N")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--brief", action="store_true")
    return parser.parse_args()


def measure(wanted: argparse.Namespace, cases: list[Case]) -> list[Scored]:
    """Run what the command line asks for."""
    if wanted.nmap:
        return with_nmap(cases, count=wanted.chains)
    with busy(wanted.busy) if wanted.busy else nullcontext():
        return with_netprobe(
            cases,
            privileged=wanted.user == "root",
            loss=wanted.loss / 100,
            count=wanted.chains,
        )


def main() -> int:
    """Print the table and what is not right; 1 where something is wrong."""
    wanted = arguments()
    cases = all_cases() if wanted.sample == 1 else sample(wanted.sample)
    if wanted.loss:
        cases = open_cases(LOSS_COPIES)
    cases = [case for case in cases if wanted.only in f"{case.place} {case.action} {case.listener}"]
    if wanted.list:
        print("\n".join(expectations(cases, captures=wanted.user == "root")))
        return 0
    begin = time.monotonic()
    scored = measure(wanted, cases)
    print("\n".join(table(scored, brief=wanted.brief)))
    for one in scored:
        if one.score != "right" and not wanted.nmap:
            print(one.line())
    print(f"{time.monotonic() - begin:.0f} s")
    bad = false_blocks(scored) if wanted.loss else [s for s in scored if s.score == "wrong"]
    return int(bool(bad) and not wanted.nmap)


if __name__ == "__main__":
    sys.exit(main())
