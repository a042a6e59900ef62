"""Runs without a coordinator in a lab: by hand, or as an engine would drive them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.lab.cli import environment
from tests.lab.netlab import Lab
from tests.patience import PATIENCE_S
from tests.warm import run_warm

# What the reports of a run and of a merge must agree on; the proof of a live service is weaker
# where nobody speaks over the connection.
COMPARED = ("verdict", "state", "reason", "where")
MOST_ROUNDS = 4
# Requirement, source, destination, address, protocol, port.
Key = tuple[str, str, str, str, str, int]


def netprobe(
    *words: str, ok: Iterable[int] = (0, 1, 3), limit_s: float = PATIENCE_S, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the real command, with these variables set."""
    done = run_warm(words, environment() | variables, Path.cwd(), limit_s)
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
        words = ["--host", name]
        if shifts and name in shifts:
            words += ["--shift-clock", str(shifts[name])]
        running[name] = subprocess.Popen(
            [*lab[name].enter, sys.executable, str(bundle), "--out", str(out), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    return {name: process.communicate()[0].decode() for name, process in running.items()}


def drive(lab: Lab, folder: Path) -> None:
    """Do what an engine does: each step on all hosts at once, before the next begins."""
    told = json.loads((folder / "engine.json").read_bytes())
    hosts = told["hosts"]
    steps = next(iter(hosts.values()))["steps"] if hosts else []
    for step in steps:
        with ThreadPoolExecutor(len(hosts)) as pool:
            list(pool.map(lambda name, step=step: _take_step(lab, folder, told, name, step), hosts))


def stop(lab: Lab, folder: Path, hosts: Iterable[tuple[int, str]]) -> None:
    """End the run on all hosts, as an engine does at its end."""
    told = json.loads((folder / "engine.json").read_bytes())
    for index, name in hosts:
        _run_there(lab, name, f"{told['commands'][told['last']]} h{index}", b"")


def _take_step(lab: Lab, folder: Path, told: dict[str, Any], name: str, step: str) -> None:
    host = told["hosts"][name]
    fed = b"".join((folder / file).read_bytes() for file in host["stdin"].get(step, ()))
    said = _run_there(lab, name, f"{told['commands'][step]} {host['word']}", fed)
    with (folder / host["results"]).open("ab") as file:
        file.write(said)


def _run_there(lab: Lab, name: str, command: str, fed: bytes) -> bytes:
    done = subprocess.run(
        [*lab[name].enter, "sh", "-c", command], input=fed, capture_output=True, check=False
    )
    assert done.returncode == 0, (name, command[:60], done.stderr.decode())
    return done.stdout


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


def count(document: dict[str, Any]) -> str:
    """Count the flows of each verdict."""
    found = Counter(one["verdict"] for one in rows_of(document).values())
    return ", ".join(f"{flows:,} {verdict}" for verdict, flows in sorted(found.items()))
