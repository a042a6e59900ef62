"""The collection at length: 40 machines with sshd, 400 local hosts, releases of ansible-core.

``python -m tests.reach.ansible [FOLDER ...]``: FOLDER holds the programs of a release, such as
``.tox/ansible-2.21/bin``; without one, the release of the virtual environment is tried.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.collection.ansible import BESIDE, Played, find_ansible, play
from tests.collection.estate import MATRIX, Lost, build, lost_flows
from tests.lab.netlab import Lab

MACHINES, LOST, SEED = 40, 12, 15
LOCAL_HOSTS = 400
MOST_CPU_A_HOST_S, MOST_MB = 0.3, 100.0
# prctl: orphans become our children, so that agents that detach are counted too.
_SET_CHILD_SUBREAPER = 36


class Cost(NamedTuple):
    """What a command and all that it started took; memory is that of the largest process.

    ``agents_s`` is the part of ``cpu_s`` that hosts have of it: agents, which have detached.
    """

    wall_s: float
    cpu_s: float
    agents_s: float
    memory_mb: float


def main() -> int:
    """Try every release; give 1 where a number or a verdict is wrong."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[BESIDE])
    parser.add_argument("--only", choices=("machines", "local"))
    parser.add_argument("--local-hosts", type=int, default=LOCAL_HOSTS)
    parser.add_argument("--machines", type=int, default=MACHINES)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wrong = 0
    if options.only != "local":
        wrong += _try_machines(options.folders, options.machines)
    if options.only != "machines":
        wrong += sum(_try_local_hosts(folder, options.local_hosts) for folder in options.folders)
    return min(wrong, 1)


def _try_machines(folders: list[Path], count: int) -> int:
    """Compare plays of every release with a live run and with the firewall's rules."""
    wrong = 0
    with Lab() as lab:
        estate = build(lab, count)
        estate.inventory()
        lost = estate.drop(LOST, SEED)
        begin = time.monotonic()
        live = estate.run_live()
        took = time.monotonic() - begin
        flows = _count_verdicts(live.results)
        print(f"run: {count} machines, {flows}, {took:.1f} s, "
              f"{_compare(lost, lost_flows(live.results))}")  # fmt: skip
        for folder in folders:
            played, cost = _play_measured(
                lab.folder, folder, "-i", "hosts.ini", "-e", f"matrix={MATRIX}",
                within=list(estate.admin),
            )  # fmt: skip
            found = lost_flows(played.results)
            wrong += not (lost == found and played.status == 2)
            print(f"{_release(folder)}: {_count_verdicts(played.results)}, {cost}, "
                  f"{_compare(lost, found)}")  # fmt: skip
    return wrong


def _try_local_hosts(folder: Path, count: int) -> int:
    """Measure a whole check of many hosts that are all this machine."""
    with Lab() as lab:
        host = lab.namespace("many")
        names = _name_hosts(count)
        host.ip(*(f"address add {address}/32 dev lo" for address in names.values()))
        lab.write("hosts.ini", _write_hosts(names))
        played, cost = _play_measured(
            lab.folder, folder, "-i", "hosts.ini", "-e", "matrix=okd-hcp", within=host.enter
        )
        report = (played.reports / "netprobe.txt").read_text() if played.reports.exists() else ""
    each = cost.cpu_s / count
    fits = played.status == 0 and each <= MOST_CPU_A_HOST_S and cost.memory_mb <= MOST_MB
    print(f"{_release(folder)}: {count} local hosts: {cost}, {each * 1000:.0f} ms a host")
    print(f"  {report.splitlines()[0] if report else played.stdout[-2000:]}")
    return not fits


def _play_measured(home: Path, folder: Path, *words: str, within: list[str]) -> tuple[Played, Cost]:
    before, begin = _read_cpu_s(), time.monotonic()
    played = play(home, *words, within=within, folder=folder)
    took, without_agents = time.monotonic() - begin, _read_cpu_s()
    _reap_orphans()
    memory_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    cpu = _read_cpu_s() - before
    agents = _read_cpu_s() - without_agents
    return played, Cost(round(took, 1), round(cpu, 1), round(agents, 1), round(memory_kb / 1024))


def _read_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap_orphans() -> None:
    """Wait for agents that have detached themselves: their processor time is a part of the play."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    for pid in map(int, own.read_text().split()):
        # sshd of the lab goes on; what is dead already has no command line.
        if b"sshd" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.waitpid(pid, 0)


def _name_hosts(count: int) -> dict[str, str]:
    first = {"control": "10.93.0.1", "management": "10.93.0.2"}
    workers = range(count - len(first))
    return first | {f"worker-{n}": f"10.93.{1 + n // 200}.{1 + n % 200}" for n in workers}


def _write_hosts(names: dict[str, str]) -> str:
    lines = [f"{name} ansible_host={address}" for name, address in names.items()]
    parts = ["[hcp]", lines[0], "[management_cluster]", lines[1], "[worker]", *lines[2:]]
    return "\n".join([*parts, "[all:vars]", "ansible_connection=local", ""])


def _release(folder: Path) -> str:
    program = find_ansible("ansible", folder)
    assert program is not None, f"{folder}: no ansible there"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.partition("\n")[0]


def _count_verdicts(results: list[dict[str, Any]]) -> str:
    verdicts = sorted({one["verdict"] for one in results})
    return ", ".join(f"{len(lost_flows(results, word)):,} {word}" for word in verdicts)


def _compare(lost: set[Lost], found: set[Lost]) -> str:
    """Say whether what the firewall drops is what was found, and what else there is."""
    if lost == found:
        return f"exactly the {len(lost)} dropped flows are blocked"
    return f"WRONG: not found {sorted(lost - found)}, invented {sorted(found - lost)[:5]}"


if __name__ == "__main__":
    sys.exit(main())
