"""Two hundred real agents on this machine: ``python -m tests.reach.agents`` (``make reach``).

Every host is an agent process with an address of its own on the loopback; each probes every other.
What is measured is the process that coordinates them; ``--tree`` measures another version's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOSTS = 200
FLOWS_OF_A_PAIR = 11
MOST_MB = 80.0
LOOK_S = 0.1
ROOT = Path(__file__).parents[2]
TICKS = os.sysconf("SC_CLK_TCK")

MATRIX = """\
schema: netprobe.matrix/1
name: mesh
title: Every host to every other
roles: {node: {description: any node}}
requirements:
  - {id: mesh, from: node, to: node, purpose: Mesh, icmp: echo, tcp: [21000-21007],
     udp: [21000-21001]}
"""


class Cost(NamedTuple):
    """What a run took: seconds on the wall, of the coordinator's processor, and its peak memory."""

    wall_s: float
    cpu_s: float
    mb: float
    passed: int


def write_files(folder: Path, hosts: int) -> None:
    """Write the matrix and an inventory of so many hosts."""
    (folder / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    lines = list(_inventory_lines(hosts))
    (folder / "inventory.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _inventory_lines(hosts: int) -> Iterator[str]:
    yield "schema: netprobe.inventory/1"
    yield "hosts:"
    for number in range(hosts):
        address = f"127.7.{number // 200}.{number % 200 + 1}"
        yield f"  h{number}: {{address: {address}, roles: [node], vantage: local}}"


def measure(folder: Path, tree: Path = ROOT) -> Cost:
    """Run the matrix in a folder with the netprobe of a tree."""
    argv = [
        sys.executable, "-m", "netprobe", "run", "-m", str(folder / "matrix.yaml"),
        "-i", str(folder / "inventory.yaml"), "-o", f"json={folder / 'run.json'}",
    ]  # fmt: skip
    begun = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with (
        (folder / "words").open("w") as words,
        subprocess.Popen(argv, cwd=folder, env=environment, stdout=words, stderr=words) as run,
    ):
        cpu_s, mb = 0.0, 0.0
        while run.poll() is None:
            cpu_s, mb = _read_usage(run.pid) or (cpu_s, mb)
            time.sleep(LOOK_S)
        wall_s = time.monotonic() - begun
    if not (folder / "run.json").exists():
        raise SystemExit((folder / "words").read_text())
    counts: dict[str, int] = json.loads((folder / "run.json").read_text())["summary"]
    return Cost(wall_s, cpu_s, mb, counts["pass"])


def _read_usage(pid: int) -> tuple[float, float] | None:
    """Give the seconds of processor of one process, without its children, and its peak MB."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
    except OSError:
        return None
    if "VmHWM" not in status:
        return None
    return (int(words[11]) + int(words[12])) / TICKS, int(status["VmHWM"].split()[0]) / 1024


def main() -> int:
    """Measure once; 1 where a flow is missing or the memory is above its bound."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--tree", type=Path, default=ROOT)
    chosen = parser.parse_args()
    flows = chosen.hosts * (chosen.hosts - 1) * FLOWS_OF_A_PAIR
    with tempfile.TemporaryDirectory(prefix="netprobe-reach-") as folder:
        write_files(Path(folder), chosen.hosts)
        cost = measure(Path(folder), chosen.tree)
    met = cost.passed == flows and cost.mb <= MOST_MB
    sys.stdout.write(
        f"{chosen.hosts} agents, {cost.passed:,} of {flows:,} flows pass: {cost.wall_s:.1f} s, "
        f"{cost.cpu_s:.1f} s of the coordinator's processor, {cost.mb:.0f} MB"
        f"{'' if met else ' (NOT MET)'}\n"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
