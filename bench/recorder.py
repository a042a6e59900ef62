"""What the packet recorder costs beside 200,000 packets a second of other traffic.

Windows take turns: an agent with a recorder, and one without, as with ``--no-recorder``. Everything
else is the same in both. What counts is the machine's processor time (/proc/stat); where other
programs run too, the least time of the agent and of the generator, whose packets are filtered in
its own time, says more.
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
from netprobe.probe.agents.live_fleet import NO_FLOW
from tests.lab.netlab import Namespace

PACKETS_PER_S = 200_000
OTHER_PORT = 9
WINDOW_S = 1.0
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
        return [
            # Each of a pair comes first as often as the other.
            _make_row(
                what, [_measure_pair(field, program, host, at % 2 == 0) for at in range(pairs)]
            )
            for what, host in (("receives", field.target), ("sends", field.source))
        ]


def _make_row(what: str, measured: Sequence[tuple[Window, Window]]) -> Row:
    machine = sorted(on.percent(on.machine_s) - off.percent(off.machine_s) for off, on in measured)
    # Other programs only add to what a packet costs: the least windows are the truest.
    without, with_it = (
        min(pair[at].percent(pair[at].processes_s) for pair in measured) for at in (0, 1)
    )
    rate = median(on.packets for _, on in measured) / WINDOW_S
    percent = median(machine)
    return Row(
        f"recorder of a host that {what} {PACKETS_PER_S:,} other packets a second",
        f"{percent:+.1f} % of a processor ({machine[0]:+.1f} to {machine[-1]:+.1f})",
        f"{rate:,.0f} packets a second came",
        f"least of agent and generator: {with_it:.1f} % - {without:.1f} % = "
        f"{with_it - without:+.1f} %",
        f"< {GOAL_PERCENT:g} %", percent < GOAL_PERCENT,
        f"{sum(on.lost for _, on in measured):,} lost",
    )  # fmt: skip


def _measure_pair(
    field: Field, program: str, host: Namespace, first: bool
) -> tuple[Window, Window]:
    """Measure without and with recorders; ``first``: the latter first."""
    found = {
        records: _measure_window(field, program, host, records=records)
        for records in (first, not first)
    }
    return found[False], found[True]


def _measure_window(field: Field, program: str, host: Namespace, *, records: bool) -> Window:
    agent = AgentProcess(host.enter)
    if records:
        agent.send(RecordOrder(RUN_DATAGRAMS, [4], None))
    time.sleep(0.3)  # the start of an agent is not what is measured
    before_s = _read_busy_s(), _read_processes_s(agent)
    words = [*field.source.enter, program, field.addresses[0]]
    sent = subprocess.run(
        [*words, str(OTHER_PORT), str(PACKETS_PER_S), str(WINDOW_S)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    machine_s = _read_busy_s() - before_s[0]
    processes_s = _read_processes_s(agent) - before_s[1]
    lost = _count_lost(agent) if records else 0
    agent.stop()
    return Window(machine_s, processes_s, int(sent), lost)


def _count_lost(agent: AgentProcess) -> int:
    agent.send(NO_FLOW)
    told = next(one for one in agent.messages() if isinstance(one, StoryTold))
    if not told.running:
        raise RuntimeError(f"no recorder: {told.failure}")
    return told.lost


def _read_busy_s() -> float:
    """Give the seconds that all processors have worked so far, interrupts included."""
    line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def _read_processes_s(agent: AgentProcess) -> float:
    """Give the processor seconds of the agent, and of all programs that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    fields = Path(f"/proc/{agent.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1]
    ticks = sum(map(int, fields.split()[11:13]))
    return ended.ru_utime + ended.ru_stime + ticks / TICKS_PER_S
