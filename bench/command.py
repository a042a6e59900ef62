"""The whole command as a bench runs it: timed, its results held against what is true, as a row."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.agent import children_cpu_s
from bench.table import Row, seconds
from bench.tools import Timed
from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Namespace


def run_command(
    folder: Path,
    matrix: str,
    hosts: Mapping[str, Any],
    is_wrong: Callable[[Mapping[str, Any]], int],
    flows: int | None = None,
    options: Sequence[str] = (),
) -> Timed:
    """Run netprobe from its start to its end; ``is_wrong`` counts the wrong flows of a result."""
    path = folder / "matrix.yaml"
    if "\n" in matrix:
        path.write_text(matrix, encoding="utf-8")
        matrix = str(path)
    inventory = folder / "inventory.yaml"
    document = {"schema": "netprobe.inventory/1", "hosts": dict(hosts)}
    inventory.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    output = folder / "run.json"
    output.unlink(missing_ok=True)
    words = ["run", "-m", matrix, "-i", str(inventory), "-o", f"json={output}", *options]
    words += ["-v"] if os.environ.get("V") else []
    cpu_s, begun = children_cpu_s(), time.monotonic()
    subprocess.run(
        [*COMMAND, *words], check=False, env=environment(),
        stdout=subprocess.DEVNULL, stderr=None if os.environ.get("V") else subprocess.DEVNULL,
    )  # fmt: skip
    wall_s, cpu_s = time.monotonic() - begun, children_cpu_s() - cpu_s
    read = json.loads(output.read_text(encoding="utf-8"))
    answers = Counter(
        {word: count for word, count in read["summary"].items() if isinstance(count, int)}
    )
    told = sum(
        result["end_port"] - result["port"] + 1 if result["port"] else 1
        for result in read["results"]
    )
    wrong = sum(is_wrong(result) for result in read["results"])
    return Timed(wall_s, cpu_s, answers, wrong + max(0, (flows or told) - told))


def best_row(work: str, runs: Sequence[Timed], goal_s: float) -> Row:
    """Give the row of a work whose quickest run counts; the goal is in seconds."""
    best_s = min(run.wall_s for run in runs)
    return Row(work, seconds(runs), "", f"best {best_s:.1f} s", f"<= {goal_s:g} s",
               round(best_s, 1) <= goal_s, most_wrong(runs))  # fmt: skip


def list_agents(ends: Mapping[str, tuple[Namespace, str]]) -> dict[str, Any]:
    """Give entries of an inventory: each host has an agent and a role."""
    return {name: make_entry(host, role) for name, (host, role) in ends.items()}


def make_entry(host: Namespace, *roles: str) -> dict[str, Any]:
    """Give the entry of a host with an agent, for an inventory."""
    return {
        "addresses": list(host.addresses),
        "roles": list(roles),
        "vantage": {"command": host.enter},
    }


def set_forward(router: Namespace, *lines: str) -> None:
    """Let a router forward by these rules from now on."""
    chain = "\n".join(("chain forward {", "type filter hook forward priority 0;", *lines, "}"))
    router.nft(f"table inet bench {{}}\ndelete table inet bench\ntable inet bench {{\n{chain}\n}}")


def most_wrong(runs: Iterable[Timed]) -> str:
    """Give the most wrong flows of any run."""
    return f"{max(run.wrong for run in runs):,}"
