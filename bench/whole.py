"""Whole commands: a run over eight hosts, a hundred agents at once, plans, start-up, memory."""

from __future__ import annotations

import compileall
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.table import Row
from demo import estate
from release.onefile import build_onefile
from release.places import own_arch
from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab

ROOT = Path(__file__).parents[1]
RUN_S = 15.0
PLAN_HOSTS, PLAN_S, PLAN_MB = 1000, 3.0, 150
STREAM_MB, STREAM_RUN = 300, 100
FLAT_MB = 20
HELP_S, LIST_S = 0.080, 0.200
ONEFILE_MORE_S = 0.050
EVERY_ROLE = "external, external-dns, external-ntp, external-registry"

MESH = """\
schema: netprobe.matrix/1
name: mesh
title: A few ports between all hosts
roles: {node: {description: any}}
requirements:
  - {id: mesh, from: node, to: node, tcp: [10250, "30000-30009"], purpose: bench}
"""


def whole_run(repeats: int) -> list[Row]:
    """deckhouse-nodes in full, ranges too, on eight namespaces, nothing blocked."""
    with Lab() as lab:
        router = lab.router("router", estate.ROUTER[0])
        for name in estate.ROLES:
            lab.host(name, router, *estate.ADDRESSES[name])
        lab.wait_until_ready()
        inventory = lab.inventory(estate.ROLES)
        runs = [_run(lab, inventory, estate.MATRIX) for _ in range(repeats)]
    return [_run_row("`run` of deckhouse-nodes in full, 8 hosts", runs, RUN_S)]


def many_hosts(hosts: int) -> list[Row]:
    """Every host probes every other: as many agents at once."""
    with Lab() as lab:
        router = lab.router("router", "10.10.0.1")
        names = [f"h{number}" for number in range(hosts)]
        for number, name in enumerate(names):
            lab.host(name, router, f"10.20.{number // 200}.{number % 200 + 1}")
        inventory = lab.inventory({name: ["node"] for name in names})
        matrix = str(lab.write("mesh.yaml", MESH))
        return [
            _run_row(f"`run` of a mesh, {hosts} agents at once", [_run(lab, inventory, matrix)])
        ]


def _run(lab: Lab, inventory: Path, matrix: str) -> dict[str, Any]:
    output = lab.folder / "run.json"
    words = ["run", "--matrix", matrix, "-i", str(inventory), "-o", f"json={output}"]
    cost = _time([*COMMAND, *words])
    document = json.loads(output.read_text(encoding="utf-8"))
    return {**cost, "summary": document["summary"]}


def _run_row(work: str, runs: list[dict[str, Any]], goal_s: float | None = None) -> Row:
    wall_s = median(run["wall_s"] for run in runs)
    summary = runs[0]["summary"]
    flows = sum(summary[word] for word in ("pass", "blocked", "inconclusive", "not_tested"))
    wrong = max(flows - run["summary"]["pass"] for run in runs)
    return Row(
        f"{work}, {flows:,} flows", f"{wall_s:.1f} s", "",
        f"{runs[0]['coordinator_mb']:.0f} MB coordinator",
        "" if goal_s is None else f"<= {goal_s:g} s",
        None if goal_s is None else wall_s <= goal_s, f"{wrong:,}",
    )  # fmt: skip


def commands(repeats: int) -> list[Row]:
    """``plan --count`` of a thousand hosts, ``--help`` and ``matrix list``."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "inventory.yaml"
        inventory.write_text("\n".join(_thousand()), encoding="utf-8")
        plan = ["plan", "--count", "--matrix", "deckhouse-nodes", "-i", str(inventory)]
        plans = [_time([*COMMAND, *plan]) for _ in range(repeats)]
    wall_s = median(each["wall_s"] for each in plans)
    peak_mb = max(each["coordinator_mb"] for each in plans)
    program = [str(Path(sys.executable).parent / "netprobe")]
    # As pip does where netprobe is installed.
    compileall.compile_dir(ROOT / "netprobe", quiet=1)
    rows = [
        Row(f"`plan --count`, {PLAN_HOSTS:,} hosts, all roles", f"{wall_s:.2f} s", "",
            f"{peak_mb:.0f} MB", f"< {PLAN_S:g} s, < {PLAN_MB} MB",
            wall_s < PLAN_S and peak_mb < PLAN_MB)
    ]  # fmt: skip
    for words, goal_s in ((["--help"], HELP_S), (["matrix", "list"], LIST_S)):
        times = [_time([*program, *words])["cpu_s"] for _ in range(max(9, repeats))]
        # The least: what other programs do to the caches is not netprobe's.
        rows.append(
            Row(f"`netprobe {' '.join(words)}`", f"{min(times) * 1000:.0f} ms CPU", "",
                f"median {median(times) * 1000:.0f} ms", f"< {goal_s * 1000:.0f} ms",
                min(times) < goal_s)
        )  # fmt: skip
    return [*rows, _start_of_onefile(program, max(9, repeats))]


def _start_of_onefile(program: list[str], repeats: int) -> Row:
    """``--help`` of the one file, once unpacked, beside that of the installed program."""
    arch = own_arch()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "netprobe.run")
        path.write_bytes(build_onefile(arch))
        environment = dict(os.environ) | {"XDG_CACHE_HOME": folder}
        pairs = []
        for _ in range(repeats + 1):
            argv = ["sh", str(path), "--help"]
            pairs.append((_wall_of(argv, environment), _wall_of([*program, "--help"], environment)))
    # The first start unpacks it.
    more = min(ours for ours, _ in pairs[1:]) - min(theirs for _, theirs in pairs[1:])
    ours, theirs = (median(pair[side] for pair in pairs[1:]) * 1000 for side in (0, 1))
    return Row("`netprobe.run --help`, unpacked before", f"{ours:.0f} ms",
               f"installed {theirs:.0f} ms", f"{more * 1000:+.0f} ms",
               f"<= {ONEFILE_MORE_S * 1000:.0f} ms more", more <= ONEFILE_MORE_S)  # fmt: skip


def _wall_of(argv: list[str], environment: dict[str, str]) -> float:
    started = time.monotonic()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    return time.monotonic() - started


def _thousand() -> Iterator[str]:
    yield "schema: netprobe.inventory/1"
    yield "hosts:"
    for number in range(PLAN_HOSTS):
        roles = "master" if number < 5 else "frontend" if number < 15 else "node"
        roles = EVERY_ROLE if number == PLAN_HOSTS - 1 else roles
        address = f"10.1.{number // 250}.{number % 250 + 1}"
        yield f"  host-{number}: {{address: {address}, roles: [{roles}], vantage: local}}"


def memory(port_probes: int) -> list[Row]:
    """Evidence through judge, collector and spool; every hundred ports another outcome."""
    argv = [sys.executable, "-m", "bench.stream", str(port_probes), str(STREAM_RUN)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    growth_mb = found["late_mb"] - found["early_mb"]
    return [
        Row(f"coordinator, {port_probes:,} port probes stream in", f"{found['peak_mb']:.0f} MB", "",
            f"+{growth_mb:.0f} MB after the first tenth; {found['results']:,} results",
            f"< {STREAM_MB} MB, flat", found["peak_mb"] < STREAM_MB and growth_mb < FLAT_MB)
    ]  # fmt: skip


def _time(argv: Sequence[str]) -> dict[str, float]:
    """Wall and processor seconds of a command, and the peak memory of its first process."""
    begun = time.monotonic()
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "wall_s": time.monotonic() - begun,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "coordinator_mb": usage.ru_maxrss / 1024,
    }


def machine() -> str:
    """What this was measured on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.*)", info)
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    # Whose kernel it is says nothing to a reader.
    kernel = ".".join(os.uname().release.split(".")[:2])
    return (
        f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} processors, "
        f"Linux {kernel}, load {load} at the end"
    )
