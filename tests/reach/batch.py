"""`python -m tests.reach.batch`: the demo's estate without a coordinator, held against `run`.

Every machine of the demo runs a bundle by itself, started at a random moment before the hour, and
once more as an engine drives it; what `merge` says is compared with what `run` says, flow by flow.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from demo import estate
from tests.batch.support import change_content
from tests.lab.batch import (
    COMPARED,
    MOST_ROUNDS,
    carry_out,
    compare,
    count,
    drive,
    netprobe,
    rows_of,
    stop,
    word_start,
)
from tests.lab.netlab import Lab

START_S, WINDOW, MARGIN = 60.0, "150s", "30s"
# Its clock is so far ahead or behind.
SHIFTS = {"worker-2": 120.0}
CUTS = 40
USAGE = 2


def print_line(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class DemoRuns:
    """The demo's estate, run in all ways."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        estate.build(lab)
        zones: dict[str, dict[str, object]] = {
            name: {"zone": zone} for name, zone in estate.ZONES.items()
        }
        inventory = str(lab.inventory(estate.ROLES, overrides=zones))
        self.words = ["-m", estate.MATRIX, "-i", inventory]
        self.hosts = list(estate.ROLES)
        self.wrong = 0

    def run(self) -> dict[str, Any]:
        """Run live."""
        began = time.monotonic()
        live: dict[str, Any] = json.loads(netprobe("run", *self.words, "-o", "json").stdout)
        print_line(f"run: {time.monotonic() - began:.1f} s, {count(live)}")
        return live

    def drive_engine(self, live: dict[str, Any]) -> None:
        """Drive an engine's folder until nothing is left to ask."""
        folder = self._lab.folder / "engine"
        began = time.monotonic()
        netprobe("bundle", *self.words, "--folder", str(folder))
        for number in range(1, MOST_ROUNDS + 1):
            drive(self._lab, folder)
            asked = json.loads((folder / "engine.json").read_bytes())["hosts"]
            print_line(
                f"engine: round {number} on {len(asked)} hosts, {time.monotonic() - began:.1f} s"
            )
            if number < MOST_ROUNDS:
                netprobe("bundle", "--next", str(folder))
            if not json.loads((folder / "engine.json").read_bytes())["hosts"]:
                break
        order = json.loads((folder / "plan.json").read_bytes())["order"]
        stop(self._lab, folder, enumerate(order))
        self._hold(live, "engine", [str(folder)])

    def carry(self, live: dict[str, Any]) -> tuple[Path, list[str]]:
        """Run a bundle on every host by hand."""
        bundle, out = self._lab.folder / "run.pyz", self._lab.folder / "out"
        began = time.monotonic()
        done = netprobe(
            "bundle", *self.words, "--start", word_start(START_S), "--window", WINDOW,
            "--margin", MARGIN, "-o", str(bundle),
        )  # fmt: skip
        print_line(f"bundle: {time.monotonic() - began:.1f} s, {bundle.stat().st_size:,} bytes; "
                   f"{done.stderr.decode().strip()}")  # fmt: skip
        for name, said in sorted(carry_out(self._lab, bundle, out, self.hosts, 20.0).items()):
            print_line(f"  {name}: {said.strip().splitlines()[-1][:160]}")
        files = sorted(map(str, out.glob("*.npr")))
        sizes = [Path(file).stat().st_size for file in files]
        print_line(f"  {len(files)} files of {min(sizes):,}-{max(sizes):,} bytes")
        self._hold(live, "carried", [str(bundle), *files])
        return bundle, files

    def hurt(self, live: dict[str, Any], bundle: Path, files: list[str]) -> None:
        """Cut, swap, alter and drop files: nothing may be blocked that is not."""
        stopped = {key for key, one in rows_of(live).items() if one["verdict"] == "blocked"}
        copies = self._lab.folder / "copies"
        shutil.copytree(Path(files[0]).parent, copies)
        there = sorted(copies.glob("*.npr"))
        began = time.monotonic()
        for number in range(CUTS):
            path = there[number % len(there)]
            whole = path.read_bytes()
            path.write_bytes(whole[: random.randrange(len(whole))])
            done = netprobe("merge", str(bundle), str(copies), "-o", "json", ok=(0, 1, 2, 3))
            if done.returncode == USAGE:
                # Not even its first line is there.
                self._demand(b"not even its first line" in done.stderr, done.stderr.decode())
            else:
                told = {key for key, one in rows_of(json.loads(done.stdout)).items()
                        if one["verdict"] == "blocked"}  # fmt: skip
                self._demand(told <= stopped, f"{path.name} cut: {len(told - stopped)} too many")
            path.write_bytes(whole)
        print_line(f"{CUTS} cuts: {time.monotonic() - began:.1f} s")
        merged = json.loads(netprobe("merge", str(bundle), *files[2:], "-o", "json").stdout)
        lost = {Path(file).stem for file in files[:2]}
        for key, one in rows_of(merged).items():
            touched = key[1] in lost or (key[2] in lost and key[4] != "icmp")
            untested = one["verdict"] == "not-tested"
            self._demand(untested or not touched, f"{key}: {one['verdict']}")
            self._demand(one["verdict"] != "blocked" or key in stopped, f"{key} is not blocked")
        print_line(f"without the files of {', '.join(sorted(lost))}: {count(merged)}")
        self._refuse_strangers(bundle, there)

    def _refuse_strangers(self, bundle: Path, there: list[Path]) -> None:
        first, second = there[0].read_bytes(), there[1].read_bytes()
        altered = change_content(first)
        for data, words in ((second, b"swapped"), (altered, b"not as the host wrote it")):
            there[0].write_bytes(data)
            done = netprobe("merge", str(bundle), str(there[0]), ok=(USAGE,))
            self._demand(words in done.stderr, done.stderr.decode())
            print_line(f"refused: {done.stderr.decode().strip()}")
        other = self._lab.folder / "other.pyz"
        netprobe("bundle", *self.words, "--start", word_start(3600), "-o", str(other))
        there[0].write_bytes(first)
        done = netprobe("merge", str(other), str(there[0]), ok=(USAGE,))
        print_line(f"refused: {done.stderr.decode().strip()}")

    def shift_clocks(self, live: dict[str, Any]) -> None:
        """Run once more with a clock that is wrong: its host's flows are not tested."""
        bundle, out = self._lab.folder / "late.pyz", self._lab.folder / "late"
        netprobe(
            "bundle", *self.words, "--start", word_start(START_S), "--window", WINDOW,
            "--margin", "15s", "-o", str(bundle),
        )  # fmt: skip
        carry_out(self._lab, bundle, out, self.hosts, 20.0, SHIFTS)
        document = json.loads(netprobe("merge", str(bundle), str(out), "-o", "json").stdout)
        stopped = {key for key, one in rows_of(live).items() if one["verdict"] == "blocked"}
        told = Counter[str]()
        for key, one in rows_of(document).items():
            if set(SHIFTS) & {key[1], key[2]}:
                told[one["verdict"]] += 1
                self._demand(one["verdict"] != "blocked", f"{key} is blocked by a wrong clock")
            self._demand(one["verdict"] != "blocked" or key in stopped, f"{key} is not blocked")
        print_line(f"clock shifted by {SHIFTS}: its flows {dict(told)}; all {count(document)}")
        words = [one["because"] for one in document["results"] if one["reason"] == "no-overlap"]
        print_line(f"  {words[0] if words else 'no word of windows'}")

    def _demand(self, holds: bool, words: str) -> None:
        if not holds:
            self.wrong += 1
            print_line(f"WRONG: {words}")

    def _hold(self, live: dict[str, Any], what: str, words: list[str]) -> None:
        began = time.monotonic()
        merged = json.loads(netprobe("merge", *words, "-o", "json").stdout)
        print_line(f"merge ({what}): {time.monotonic() - began:.1f} s, {count(merged)}")
        differences = compare(live, merged)
        for difference, flows in differences.most_common():
            print_line(f"  {flows} flows differ: {', '.join(difference)}")
        self.wrong += sum(difference[0] in COMPARED for difference in differences)


def main() -> int:
    """Run everything, print what came of it; 0 where all is as it should be."""
    with Lab() as lab:
        runs = DemoRuns(lab)
        live = runs.run()
        if "--carried" not in sys.argv:
            runs.drive_engine(live)
        if "--engine" not in sys.argv:
            runs.hurt(live, *runs.carry(live))
            runs.shift_clocks(live)
    print_line("BATCH FAILED" if runs.wrong else "BATCH OK")
    return int(bool(runs.wrong))


if __name__ == "__main__":
    sys.exit(main())
