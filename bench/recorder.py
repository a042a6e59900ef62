"""What the packet recorder costs beside 200,000 packets a second of other traffic.

Windows take turns: two agents with recorders, and two without, as with ``--no-recorder``. Everything
else is the same in both. One row is the machine's own processor time (/proc/stat); where other
programs run too, the row of the generator's and the agents' own is the one to read.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.agent import AgentProcess
from bench.field import FIRST_PORT, Field
from bench.table import Row
from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import RecordOrder
from netprobe.probe.agents.fleet import NO_FLOW

PACKETS_PER_S = 200_000
OTHER_PORT = 9
WINDOW_S = 2.0
GOAL_PERCENT = 5.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# The run's own ports, which the filter compares each datagram with.
RUN_DATAGRAMS = [(53, 53), (123, 123), (FIRST_PORT, FIRST_PORT + 99)]


class Window(NamedTuple):
    """One window: how long the machine worked, and the generator with the agents; packets."""

    machine_s: float
    processes_s: float
    packets: int
    lost: int

    def percent(self, busy_s: float) -> float:
        """Give so much work in percent of a processor, for the wanted number of packets."""
        return busy_s / self.packets * PACKETS_PER_S * 100


def recorder(pairs: int) -> list[Row]:
    """The differences, in percent of one processor: medians over pairs of windows."""
    with Field(1) as field:
        field.rules(f"udp dport {OTHER_PORT} drop")
        program = field.compile("flood")
        # Each of a pair comes first as often as the other.
        measured = [_measure_pair(field, program, number % 2 == 0) for number in range(pairs)]
    rate = median(on.packets for _, on in measured) / WINDOW_S
    work = f"recorders at both ends beside {rate:,.0f} packets a second of other traffic"
    lost = f"{sum(on.lost for _, on in measured):,} lost"
    return [
        _make_row(f"{work}, {name}", lost, [
            (off.percent(getattr(off, field_name)), on.percent(getattr(on, field_name)))
            for off, on in measured
        ])
        for name, field_name in (("machine", "machine_s"), ("processes", "processes_s"))
    ]  # fmt: skip


def _make_row(work: str, lost: str, percents: Sequence[tuple[float, float]]) -> Row:
    without, with_it = (median(one[at] for one in percents) for at in (0, 1))
    differences = sorted(on - off for off, on in percents)
    percent = median(differences)
    return Row(
        work, f"{with_it:.1f} % of a processor", f"--no-recorder {without:.1f} %",
        f"{percent:+.1f} % ({differences[0]:+.1f} to {differences[-1]:+.1f}, {len(percents)} pairs)",
        f"< {GOAL_PERCENT:g} %", percent < GOAL_PERCENT, lost,
    )  # fmt: skip


def _measure_pair(field: Field, program: str, first: bool) -> tuple[Window, Window]:
    """Measure without and with recorders; ``first``: the latter first."""
    found = {
        records: _measure_window(field, program, records=records) for records in (first, not first)
    }
    return found[False], found[True]


def _measure_window(field: Field, program: str, *, records: bool) -> Window:
    agents = [AgentProcess(machine.enter) for machine in (field.source, field.target)]
    if records:
        for agent in agents:
            agent.send(RecordOrder(RUN_DATAGRAMS, [4], None))
    time.sleep(0.3)  # the start of an agent is not what is measured
    before_s = _read_busy_s(), _read_processes_s(agents)
    words = [*field.source.enter, program, field.addresses[0]]
    sent = subprocess.run(
        [*words, str(OTHER_PORT), str(PACKETS_PER_S), str(WINDOW_S)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    machine_s = _read_busy_s() - before_s[0]
    processes_s = _read_processes_s(agents) - before_s[1]
    lost = _count_lost(agents) if records else 0
    for agent in agents:
        agent.stop()
    return Window(machine_s, processes_s, int(sent), lost)


def _count_lost(agents: Sequence[AgentProcess]) -> int:
    lost = 0
    for agent in agents:
        agent.send(NO_FLOW)
        told = next(one for one in agent.messages() if isinstance(one, StoryTold))
        if not told.running:
            raise RuntimeError(f"no recorder: {told.failure}")
        lost += told.lost
    return lost


def _read_busy_s() -> float:
    """Give the seconds that all processors have worked so far, interrupts included."""
    line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def _read_processes_s(agents: Sequence[AgentProcess]) -> float:
    """Give the processor seconds of the agents, and of all programs that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for agent in agents:
        fields = Path(f"/proc/{agent.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1]
        ticks += sum(map(int, fields.split()[11:13]))
    return ended.ru_utime + ended.ru_stime + ticks / TICKS_PER_S
