"""`python -m tests.reach.batch`: the demo's estate without a coordinator, held against `run`.

Every machine of the demo runs a bundle by itself, started at a random moment before the hour; what
`merge` says of its files is compared with what `run` says, flow by flow.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo import estate
from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab

# What both reports must agree on; the proof of a live service is weaker without a stream.
COMPARED = ("verdict", "state", "reason", "where")
Key = tuple[str, str, str, str, str, int]


def netprobe(*words: str, ok: Iterable[int] = (0, 1, 3)) -> subprocess.CompletedProcess[bytes]:
    """Run the real command."""
    done = subprocess.run([*COMMAND, *words], env=environment(), capture_output=True, check=False)
    assert done.returncode in ok, done.stderr.decode()
    return done


def carry_out(
    lab: Lab,
    bundle: Path,
    out: Path,
    hosts: Sequence[str],
    spread_s: float,
    shifts: dict[str, float] | None = None,
) -> dict[str, str]:
    """Start the bundle on every host at a random moment, and give what each printed."""
    out.mkdir(exist_ok=True)
    waiting = [(random.uniform(0, spread_s), name) for name in hosts]
    began = time.monotonic()
    running: dict[str, subprocess.Popen[bytes]] = {}
    for after_s, name in sorted(waiting):
        time.sleep(max(0.0, began + after_s - time.monotonic()))
        shift = ["--shift-clock", str(shifts[name])] if shifts and name in shifts else []
        running[name] = subprocess.Popen(
            [*lab[name].enter, sys.executable, str(bundle), "--out", str(out), "--host", name, *shift],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    return {name: process.communicate()[0].decode() for name, process in running.items()}


def word_start(after_s: float) -> str:
    """Give a time that is so far away, for ``--start``."""
    at = datetime.fromtimestamp(round(time.time() + after_s), UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def rows_of(document: dict[str, Any]) -> dict[Key, dict[str, Any]]:
    """Give the result of every port."""
    found = {}
    for one in document["results"]:
        first, last = one["port"] or 0, one["end_port"] or one["port"] or 0
        place = (one["requirement"], one["source"], one["destination"], one["address"])
        for port in range(first, last + 1):
            found[*place, one["protocol"], port] = one
    return found


def compare(live: dict[str, Any], merged: dict[str, Any]) -> Counter[tuple[str, ...]]:
    """Count the differences by what they are."""
    ours, theirs = rows_of(live), rows_of(merged)
    found: Counter[tuple[str, ...]] = Counter()
    for key in ours.keys() | theirs.keys():
        one, other = ours.get(key), theirs.get(key)
        for name in ("proof", *COMPARED) if one and other else ():
            if one and other and one[name] != other[name]:
                found[name, key[4], f"run: {one[name]}", f"merge: {other[name]}"] += 1
        if one is None or other is None:
            found["missing", key[4], "run" if one is None else "merge", ""] += 1
    return found


def main() -> int:
    """Run everything, print what came of it; 0 where all is as it should be."""
    with Lab() as lab:
        estate.build(lab)
        zones: dict[str, dict[str, object]] = {
            name: {"zone": zone} for name, zone in estate.ZONES.items()
        }
        inventory = str(lab.inventory(estate.ROLES, overrides=zones))
        words = ["-m", estate.MATRIX, "-i", inventory]
        began = time.monotonic()
        live = json.loads(netprobe("run", *words, "-o", "json").stdout)
        print(f"run: {time.monotonic() - began:.1f} s", flush=True)
        bundle = lab.folder / "run.pyz"
        began = time.monotonic()
        done = netprobe(
            "bundle", *words, "--start", word_start(15), "--window", "25s", "--margin", "8s",
            "-o", str(bundle),
        )  # fmt: skip
        print(f"bundle: {time.monotonic() - began:.1f} s, {bundle.stat().st_size:,} bytes; "
              f"{done.stderr.decode().strip()}", flush=True)  # fmt: skip
        out = lab.folder / "out"
        for name, said in sorted(carry_out(lab, bundle, out, list(estate.ROLES), 5.0).items()):
            print(f"  {name}: {said.strip()}")
        files = sorted(map(str, out.glob("*.npr")))
        sizes = [Path(file).stat().st_size for file in files]
        began = time.monotonic()
        done = netprobe("merge", str(bundle), *files, "-o", "json")
        print(f"merge: {time.monotonic() - began:.1f} s, {len(files)} files of "
              f"{min(sizes):,}-{max(sizes):,} bytes; {done.stderr.decode().strip()}")  # fmt: skip
        merged = json.loads(done.stdout)
        (lab.folder / "merged.json").write_bytes(done.stdout)
        differences = compare(live, merged)
        for difference, count in differences.most_common():
            print(f"  {count} flows differ: {', '.join(difference)}")
        print(Counter(one["verdict"] for one in rows_of(live).values()))
        print(Counter(one["verdict"] for one in rows_of(merged).values()))
    return int(any(difference[0] in COMPARED for difference in differences))


if __name__ == "__main__":
    sys.exit(main())
