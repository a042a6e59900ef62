"""What a long watch of many agents costs its coordinator: ``python -m tests.lab.long_watch``.

First rounds follow each other as fast as they may, and its memory is noted after each; then they
are far apart, and its processor time between them is. The agents run in one namespace, each with
an address of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab
from tests.patience import LOOK_S, PATIENCE_S

SERVERS = 3
# Rounds after which the first ones are over, in which the process still grows.
WARM = 20
FAR_APART_S = 90
# What is left to do after the first round, such as to send agents the rest of their program.
SETTLE_S = 20.0
QUIET_S = 30.0
# The first round waits until all agents have started.
MOST_ROUND_S = 900.0
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "fleet",
    "title": "A fleet",
    "roles": {"client": {}, "server": {}},
    "requirements": [
        {"id": "web", "from": "client", "to": "server", "tcp": [3000], "purpose": "p"},
        {"id": "dns", "from": "client", "to": "server", "udp": [53], "purpose": "q"},
    ],
}


class LongWatch:
    """A watch that runs, seen from outside."""

    def __init__(self, process: subprocess.Popen[bytes], db: Path) -> None:
        self.process, self.db = process, db

    def wait_for_round(self) -> None:
        """Wait until one more round is in the history: each is written at its end."""
        stamp, late = self._stamp(), time.monotonic() + MOST_ROUND_S
        while self._stamp() == stamp:
            assert time.monotonic() < late, f"waited {MOST_ROUND_S:g} s for a round in {self.db}"
            time.sleep(LOOK_S)

    def _stamp(self) -> int:
        assert self.process.poll() is None
        return self.db.stat().st_mtime_ns if self.db.exists() else 0

    @property
    def memory_mb(self) -> float:
        """The memory that it has now."""
        words = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(words[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def processor_s(self) -> float:
        """The processor time that it has used, its children's aside."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def watching_fleet(lab: Lab, agents: int, every_s: int) -> Iterator[LongWatch]:
    """Watch so many agents."""
    fleet = lab["fleet"]
    hosts = {
        f"host-{number}": {
            "address": address_of(number),
            "roles": ["server" if number < SERVERS else "client"],
            "vantage": {"command": fleet.enter},
        }
        for number in range(agents)
    }
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
    files = (
        *("-m", str(lab.write("matrix.yaml", json.dumps(MATRIX)))),
        *("-i", str(lab.write("inventory.yaml", yaml.safe_dump(inventory)))),
    )
    db = lab.folder / f"every-{every_s}.db"
    argv = [*COMMAND, "watch", *files, "--every", f"{every_s}s", "--history", str(db)]
    with (lab.folder / "log").open("ab") as log:
        process = subprocess.Popen(argv, env=environment(), stdout=log, stderr=log)
    try:
        yield LongWatch(process, db)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def address_of(number: int) -> str:
    """Give the address of an agent."""
    return f"10.96.{number // 250}.{number % 250 + 1}"


def watch_long(agents: int, rounds: int, limit_s: float) -> Iterator[str]:
    """Watch, and give what is seen as lines; at most so long for the first part."""
    with Lab() as lab:
        fleet = lab.namespace("fleet")
        fleet.ip(*(f"address add {address_of(one)}/32 dev lo" for one in range(agents)))
        with watching_fleet(lab, agents, 1) as watch:
            end = time.monotonic() + limit_s
            memory: list[float] = []
            while len(memory) < rounds and time.monotonic() < end:
                watch.wait_for_round()
                memory.append(watch.memory_mb)
        yield f"{agents} agents, {len(memory)} rounds; memory of the coordinator after each, in MB"
        yield from _describe_memory(memory)
        with watching_fleet(lab, agents, FAR_APART_S) as watch:
            watch.wait_for_round()
            time.sleep(SETTLE_S)
            begin_s, begin = watch.processor_s, time.monotonic()
            time.sleep(QUIET_S)
            share = (watch.processor_s - begin_s) / (time.monotonic() - begin)
        yield f"between rounds, for {QUIET_S:g} s: {share:.2%} of a core"


def _describe_memory(memory: list[float]) -> Iterator[str]:
    settled = memory[WARM:] or memory
    size = min(100, len(settled) // 2 or 1)
    for name, some in (("first", settled[:size]), ("last", settled[-size:])):
        middle = statistics.median(some)
        yield f"{name} {size}: {min(some):.1f} to {max(some):.1f}, median {middle:.1f}"


def main() -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=60, help="at most, for all rounds")
    given = parser.parse_args()
    for line in watch_long(given.agents, given.rounds, 60 * given.minutes):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
