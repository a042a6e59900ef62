"""Runs of which a part stands still for a while, at a random moment: ``python -m
tests.lab.stopped_parts --count 200 --lanes 10`` prints what each kind of part costs.

Each lane is a lab of its own: four machines with sshd, reached by a machine of the administrator,
and a firewall that drops two kinds of flows. A part costs answers; it makes no open flow blocked,
and none that is dropped a pass.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from netprobe.agent.wire.frames import PROCESS_NAME
from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab
from tests.lab.services import client_config, start_sshd
from tests.patience import PATIENCE_S

HOSTS = {"m0": ["master"], "m1": ["master"], "m2": ["node"], "m3": ["node"]}
# From each host the others are reached, but for these flows.
DROPS = """
table inet lab {
    chain forward {
        type filter hook forward priority 0;
        ip saddr 10.92.1.12 ip daddr 10.92.1.10 tcp dport 6443 drop
        ip saddr 10.92.1.13 ip daddr 10.92.1.12 udp dport 1-60000 drop
    }
}
"""
DROPPED = {("m2", "m0", "tcp"), ("m3", "m2", "udp")}
PARTS = ("agent", "coordinator", "ssh client", "ssh master")


class Stopped(NamedTuple):
    """One run: what stood still, when and for how long, and what was found; ``wrong``: results that
    are blocked although nothing drops them, or pass although something does."""

    part: str
    seed: int
    moment_s: float
    stopped_s: float
    verdicts: Counter[str]
    wrong: list[dict[str, Any]]


@contextlib.contextmanager
def open_dropping_lab() -> Iterator[Lab]:
    """Give the lab, with its inventory."""
    with Lab() as made:
        router = made.router("fw", "10.92.1.1")
        for number, name in enumerate(("admin", *HOSTS), start=9):
            made.host(name, router, f"10.92.1.{number}")
        router.nft(DROPS)
        for name in HOSTS:
            start_sshd(made, made[name])
        client_config(made, made["m0"], [made[name] for name in HOSTS if name != "m0"])
        options = ["-F", str(made.folder / "ssh_config")]
        made.inventory(
            HOSTS,
            settings={"modules": ["metallb"]},
            overrides={
                name: {
                    "vantage": "ssh",
                    "ssh": {"host": made[name].address(4), "user": "root", "options": options},
                }
                for name in HOSTS
            },
        )
        yield made


def is_dropped(result: dict[str, Any]) -> bool:
    """Whether the firewall drops some of the flow, or all datagrams of its ends."""
    ends = (result["source"], result["destination"])
    if (*ends, result["protocol"]) == ("m2", "m0", "tcp"):
        return bool(result["port"] <= 6443 <= result["end_port"])
    return ends == ("m3", "m2") and result["protocol"] not in ("tcp", "icmp")


def start_over_ssh(lab: Lab) -> subprocess.Popen[str]:
    """Start a run of all machines."""
    words = ["run", "-m", "deckhouse-nodes", "-i", str(lab.folder / "inventory.yaml"), "-o", "json"]
    return subprocess.Popen(
        [*lab["admin"].enter, *COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Give the results of a run, which ended in order."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 1, 3), stderr
    assert "Traceback" not in stderr, stderr
    results: list[dict[str, Any]] = json.loads(stdout)["results"]
    return results


def stop_part(lab: Lab, part: str, seed: int) -> Stopped:
    """Start a run, and stop one of its processes of this kind for 5 to 60 s."""
    chance = random.Random(seed)
    moment_s, stopped_s = chance.uniform(0.2, 6.0), chance.uniform(5.0, 60.0)
    process = start_over_ssh(lab)
    time.sleep(moment_s)
    victims = _find_part(lab, process, part)[:1]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(stopped_s if victims else 0)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    results = finish(process)
    wrong = [one for one in results if one["verdict"] == ("pass" if is_dropped(one) else "blocked")]
    verdicts = Counter(one["verdict"] for one in results)
    return Stopped(part, seed, moment_s, stopped_s, verdicts, wrong)


def _find_part(lab: Lab, process: subprocess.Popen[str], part: str) -> list[int]:
    """The processes that are such a part of the run."""
    if part == "coordinator":
        return [process.pid]
    hosts = HOSTS if part == "agent" else ["admin"]
    pids = [pid for name in hosts for pid in lab[name].pids()]
    return [pid for pid in pids if _name_process(pid) == part]


def _name_process(pid: int) -> str | None:
    """Which part of a run a process is; None: none of these, or it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        comm = Path(f"/proc/{pid}/comm").read_text().strip()
        ssh = "ssh master" if b"[mux]" in words else "ssh client"
        return {PROCESS_NAME: "agent", "ssh": ssh}.get(comm)
    return None


def make_table(found: Sequence[Stopped]) -> Iterator[str]:
    """Give the lines of the table: a line for each kind of part."""
    yield "stopped part   runs  with losses  not tested  inconclusive  wrong results"
    for part in PARTS:
        some = [one for one in found if one.part == part]
        lost = sum(one.verdicts["not-tested"] for one in some)
        unsure = sum(one.verdicts["inconclusive"] for one in some)
        losses = sum(one.verdicts["not-tested"] > 0 for one in some)
        wrong = sum(len(one.wrong) for one in some)
        yield f"{part:12} {len(some):6} {losses:12} {lost:11} {unsure:13} {wrong:14}"


def main() -> int:
    """Print the table; 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--lanes", type=int, default=4)
    given = parser.parse_args()
    lanes = [range(lane, given.count, given.lanes) for lane in range(given.lanes)]

    def go(numbers: range) -> list[Stopped]:
        with open_dropping_lab() as lab:
            return [
                stop_part(lab, PARTS[number % len(PARTS)], random.randrange(1 << 32))
                for number in numbers
            ]

    with ThreadPoolExecutor(given.lanes) as pool:
        found = [one for some in pool.map(go, lanes) for one in some]
    sys.stdout.write("\n".join(make_table(found)) + "\n")
    wrong = [one for one in found if one.wrong]
    for one in wrong:
        sys.stdout.write(f"wrong: {one}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
