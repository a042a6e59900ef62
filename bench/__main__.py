"""``python -m bench``: measure, print the table, and write docs/performance.md.

``--full`` takes 100,000 flows and more repeats. Parts can be named to measure only them, and then
the page stays as it is, or with ``--update`` keeps all its other rows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
# A plain path: shims of version managers start a shell before every Python.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
sys.path.insert(0, str(ROOT))

from bench import many, packets, page, recorder, rehearsals, runs, table, tcp, whole  # noqa: E402


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    flows: int
    udp_flows: int
    repeats: int
    hosts: int
    port_probes: int


SMALL = Size(30_000, 20_000, 3, 60, 10_000_000)
FULL = Size(100_000, 50_000, 5, 120, 10_000_000)

PARTS: dict[str, Callable[[Size], list[table.Row]]] = {
    # What is short and stands near its goal is repeated more: a median then outlives a disturbance.
    "scans": lambda size: tcp.scans(size.flows, 2 * size.repeats - 1),
    "drops": lambda size: tcp.drops(size.flows, max(1, size.repeats - 2)),
    "udp": lambda size: packets.udp(size.udp_flows, size.repeats),
    "echo": lambda size: packets.echo(4 * size.repeats - 1),
    "recorder": lambda size: recorder.recorder(4 * size.repeats - 1),
    "run": lambda size: whole.whole_run(size.repeats),
    "scanning": lambda size: runs.without_agents(size.flows, size.repeats),
    "pairs": lambda size: runs.pairs(size.repeats),
    "faults": lambda size: runs.faults(size.repeats),
    "demo": lambda size: runs.demo_run(size.repeats),
    "mesh": lambda size: runs.mesh(size.repeats),
    "dead": lambda size: runs.dead_host(size.repeats),
    "files": lambda size: many.few_files(),
    "loaded": lambda size: many.loaded(),
    "recorded": lambda size: many.recorded(4 * size.repeats - 1),
    "cover": lambda size: many.cover(),
    "ansible": lambda size: many.played(),
    "rounds": lambda size: many.rounds(),
    "overlay": lambda size: rehearsals.overlay(size.repeats),
    "segment": lambda size: rehearsals.segment(size.repeats),
    "balancer": lambda size: rehearsals.balancer(),
    "hosts": lambda size: whole.many_hosts(size.hosts),
    "commands": lambda size: whole.commands(size.repeats),
    "memory": lambda size: whole.memory(size.port_probes),
}


def main() -> int:
    """Measure what was asked for; 0 whatever comes out: goals are the page's business."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--full", action="store_true", help="100,000 flows, more repeats")
    parser.add_argument("--update", action="store_true", help="put the named parts into the page")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    size = FULL if options.full else SMALL
    rows = []
    for part in options.parts or PARTS:
        print(f"bench: {part} ...", file=sys.stderr, flush=True)
        rows += PARTS[part](size)
    print(table.plain(rows))
    print(whole.machine())
    if not options.parts or options.update:
        lines = [table.line(row) for row in rows]
        full = options.full and not options.parts
        if options.parts:
            lines = page.merged(PAGE.read_text(encoding="utf-8"), lines)
        PAGE.write_text(page.text(lines, whole.machine(), full=full), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
