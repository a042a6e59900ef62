"""``python -m tests.reach.coverage [SEEDS]``: 60 machines in six zones, random faults, 50 seeds.

Each seed draws a fault of each kind (zone to zone, host to zone, zone to host, 5 x 5 hosts) and
compares what ``run --cover zones`` says of every flow with an independent truth. Then the plans of
1,000 and 5,000 hosts are counted.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.lab.cli import COMMAND, environment
from tests.lab.covering import WIRES, build_zones, read_found, run_covering, stop_on_router
from tests.lab.netlab import Lab
from tests.plan.covering import check_against_truth, draw_faults, stopped_by

ZONES, SIZE = 6, 10
SEEDS = 50
# Hosts, zones, and the pairs of hosts that the design takes (hosts x zones).
ESTATES = ((1000, 10), (5000, 20))
MOST_KB = 150 * 1024


def main(words: list[str]) -> int:
    """Run all seeds and count all plans; 1 where one of them is not as it should be."""
    seeds = int(words[0]) if words else SEEDS
    failed = sum([_try_seeds(seeds), _count_plans()])
    print(f"coverage: {'FAILED' if failed else 'OK'}")
    return 1 if failed else 0


def _try_seeds(seeds: int) -> int:
    found: Counter[str] = Counter()
    problems = 0
    with Lab() as lab:
        build_zones(lab, ZONES, SIZE)
        for seed in range(seeds):
            begin = time.monotonic()
            faults = draw_faults(random.Random(seed), ZONES, SIZE, WIRES)
            stop_on_router(lab, faults, random.Random(seed).choice(("drop", "reject")))
            done = run_covering(lab, "--cover", "zones", "--seed", str(seed))
            told = ""
            try:
                required, seen = read_found(done)
                check_against_truth(required, seen, faults)
            except AssertionError as error:
                problems += 1
                told = f"  WRONG: {str(error)[:2000]} {done.stderr[-500:]}"
            else:
                for fault in faults:
                    flows = stopped_by(fault, fault.sources, fault.destinations)
                    found[fault.kind] += bool(seen.failed() & flows)
                told = f"  {seen.flows:,} of {required:,} flows probed, {len(seen.failed()):,} fail"
            print(f"seed {seed}: {time.monotonic() - begin:.1f} s{told}", flush=True)
    counts = ", ".join(
        f"{kind} {found[kind]}" for kind in ("zone-zone", "host-zone", "zone-host", "5x5")
    )
    print(f"found in {seeds} seeds: {counts}; {problems} seeds with a wrong answer", flush=True)
    return problems


def _count_plans() -> int:
    problems = 0
    for hosts, zones in ESTATES:
        with Lab() as lab:
            path = lab.write("inventory.yaml", write_estate(hosts, zones))
            seconds, kilobytes, line = _count_plan(path)
        pairs = int(re.findall(r"([\d,]+) of [\d,]+ pairs", line)[0].replace(",", ""))
        right = abs(pairs - hosts * zones) < 0.25 * hosts * zones
        right = right and kilobytes < MOST_KB  # a busy machine would falsify the seconds
        problems += not right
        print(f"{hosts:,} hosts, {zones} zones: {seconds:.1f} s of processor, "
              f"{kilobytes / 1024:.0f} MB{'' if right else ' WRONG'}: {line}")  # fmt: skip
    return problems


def write_estate(hosts: int, zones: int) -> str:
    """Write an inventory: three masters, four frontends, and nodes, in zones of one size."""
    lines = ["schema: netprobe.inventory/1", "hosts:"]
    for number in range(hosts):
        role = "master" if number < 3 else "frontend" if number < 7 else "node"
        zone, place = divmod(number, hosts // zones)
        lines.append(
            f"  host-{number}: {{address: 10.{zone}.0.{place + 1}, roles: [{role}], "
            f"zone: zone-{zone}, vantage: ssh}}"
        )
    return "\n".join(lines) + "\n"


def _count_plan(path: Path) -> tuple[float, int, str]:
    """Give seconds of processor, kilobytes and what ``plan --count`` printed."""
    words = ("plan", "-m", "deckhouse-nodes", "-i", str(path), "--cover", "zones", "--count")
    with subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss, text.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
