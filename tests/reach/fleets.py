"""Recorded fleets of 1,000 and 5,000 hosts against the whole coordinator: ``make reach``.

Agents are answers (``recorded``); all else is the product: plan, orders, checks, judge, record,
report. Each fleet runs in a process of its own, which prints its processor seconds and its peak
memory, the recorded agents' part included.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from netprobe import pipeline
from netprobe.cli.report import finish
from netprobe.cli.run import run_until_end
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.model.matrix import Requirement
from netprobe.model.plan import Block, Plan
from netprobe.model.run import Silent
from netprobe.plan.choices import PlanPart
from netprobe.plan.select import Selection
from netprobe.probe.agents import live_fleet as fleet_module
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.collect import list_hosts
from netprobe.report.outputs import OutputTarget
from netprobe.report.record.collector import Collector
from netprobe.report.record.merge import ranges_of
from netprobe.report.record.record import RecordWriter, header_of
from netprobe.session import RunRequest
from netprobe.vantage.launch import Launcher
from tests.reach.recorded import Estate, starter

MOST_CPU_S, MOST_MB = 60.0, 300.0
SLICES = 10
# Few beats: they grow with the time that other programs make this one wait.
SILENCE_S = 600.0
FIRST_PORT = 30000


class Fleet(NamedTuple):
    """One recorded fleet: hosts of a matrix in full, or (``zones``) as a cover of zones has them.

    ``ports``: how many a pair of the cover is asked.
    """

    hosts: int
    matrix: str = ""
    zones: int = 0
    ports: int = 0

    @property
    def name(self) -> str:
        """The words for a reader."""
        what = self.matrix or f"cover of {self.zones} zones"
        return f"{self.hosts:,} hosts, {what}"


FLEETS = (
    Fleet(1000, "hypershift-hcp"),
    Fleet(1000, "okd-hcp"),
    Fleet(5000, "hypershift-hcp"),
    Fleet(5000, "okd-hcp"),
    Fleet(1000, zones=10, ports=40),
    Fleet(5000, zones=20, ports=4),
)


def make_plan(fleet: Fleet, folder: Path) -> Plan:
    """Give the plan of a fleet."""
    if not fleet.matrix:
        return cover_plan(fleet)
    path = folder / "inventory.yaml"
    path.write_text("\n".join(inventory_lines(fleet)), encoding="utf-8")
    return pipeline.make_plan([fleet.matrix], [str(path)], [], Selection())


def inventory_lines(fleet: Fleet) -> Iterator[str]:
    """Give an inventory of three hosts of control planes; all others are workers."""
    yield "schema: netprobe.inventory/1"
    yield "hosts:"
    for number in range(fleet.hosts):
        roles = "hcp, management-cluster" if number < 3 else "worker"
        address = address_of(number)
        yield f"  host-{number}: {{address: {address}, roles: [{roles}], vantage: local}}"


def address_of(number: int) -> str:
    """Give the address of a host."""
    return f"10.{1 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"


def cover_plan(fleet: Fleet) -> Plan:
    """Every host asks one host of every zone; pairs of zones share a range, a slice a pair."""
    hosts = tuple(
        Host(f"host-{number}", (Address(address_of(number), 4),), ("node",), Vantage("local"))
        for number in range(fleet.hosts)
    )
    ends = tuple((host, host.addresses[0]) for host in hosts)
    size = fleet.hosts // fleet.zones
    requirement = Requirement(
        id="nodeports", sources=("node",), destinations=("node",), tcp=((FIRST_PORT, 32767),),
        purpose="NodePorts",
    )  # fmt: skip
    blocks = []
    for slice_ in range(SLICES):
        first = FIRST_PORT + slice_ * fleet.ports
        chosen = tuple(
            tuple(
                zone * size + (number + 1 + zone) % size
                for zone in range(fleet.zones)
                if (number + zone) % SLICES == slice_
                and zone * size + (number + 1 + zone) % size != number
            )
            for number in range(fleet.hosts)
        )
        ports = ((first, first + fleet.ports - 1),)
        blocks.append(
            Block(slice_, "cover", requirement, "tcp", ports, 4, hosts, ends, chosen=chosen)
        )
    return Plan((), tuple(blocks))


def replay(fleet: Fleet) -> dict[str, Any]:
    """Run one fleet in this process; gives what it cost and what it found."""
    begun = time.monotonic()
    estate = Estate()
    setattr(fleet_module, "start_agent", starter(estate))  # noqa: B010
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(fleet, Path(folder))
        planned_mb = peak_mb()
        collector = Collector(ranges_of(plan))
        writer = RecordWriter(f"{folder}/run.record", header_of(plan, "2026-01-01T00:00:00Z"))
        request = RunRequest(part=PlanPart(plan, plan))
        events = Silent()
        agents = open_fleet(list_hosts(plan), Launcher(silence_s=SILENCE_S), events.host)
        info = run_until_end(request, agents, [collector, writer], events)
        writer.close(info)
        probed = (time.process_time(), peak_mb())
        outputs = [OutputTarget("text", f"{folder}/run.txt"), OutputTarget("json", f"{folder}/j")]
        stderr, sys.stderr = sys.stderr, io.StringIO()
        try:
            finish(info, collector, outputs, [])
        finally:
            sys.stderr = stderr
        counts = collector.summary(0).counts
    return {
        "fleet": fleet.name, "flows": plan.flow_count(), "counts": counts,
        "pairs": sum(block.pair_count() for block in plan.blocks), "frames": estate.orders,
        "probe_frames": estate.probe_orders,
        "cpu_s": round(time.process_time(), 1), "probed_cpu_s": round(probed[0], 1),
        "wall_s": round(time.monotonic() - begun, 1), "mb": round(peak_mb()),
        "planned_mb": round(planned_mb), "probed_mb": round(probed[1]),
    }  # fmt: skip


def peak_mb() -> float:
    """Give the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Run every fleet, or the one with this number; 1 where one is above its bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=int)
    chosen = parser.parse_args().one
    if chosen is not None:
        json.dump(replay(FLEETS[chosen]), sys.stdout)
        return 0
    failed = 0
    for number in range(len(FLEETS)):
        argv = [sys.executable, "-m", "tests.reach.fleets", "--one", str(number)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        good = found["counts"]["pass"] == found["flows"]
        met = good and found["cpu_s"] <= MOST_CPU_S and found["mb"] <= MOST_MB
        failed += not met
        words = "" if met else " (too much)" if good else f" WRONG: {found['counts']}"
        sys.stdout.write(
            f"{found['fleet']}: {found['flows']:,} flows of {found['pairs']:,} pairs, "
            f"{found['frames']:,} frames, {found['cpu_s']:.1f} s of processor, {found['mb']} MB"
            f"{words}\n"
        )
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
