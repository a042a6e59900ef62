"""What the packet recorder costs beside 200,000 packets a second of other traffic.

The machine's own processor time (/proc/stat) in windows that take turns: two agents with recorders,
and two without, as with ``--no-recorder``. Everything else is the same in both.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

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


def recorder(pairs: int) -> list[Row]:
    """The difference, in percent of one processor: the median over pairs of windows."""
    with Field(1) as field:
        field.rules(f"udp dport {OTHER_PORT} drop")
        program = field.compile("flood")
        measured = [_measure_pair(field, program, number) for number in range(pairs)]
    without_s, with_s = (median(one[at] for one in measured) for at in (0, 1))
    differences = sorted((on - off) / WINDOW_S * 100 for off, on, _, _ in measured)
    percent = median(differences)
    packets = median(rate for _, _, rate, _ in measured)
    lost = sum(missed for *_, missed in measured)
    return [
        Row(
            f"recorders at both ends beside {packets:,.0f} packets a second of other traffic",
            f"{with_s / WINDOW_S * 100:.1f} % of a processor",
            f"--no-recorder {without_s / WINDOW_S * 100:.1f} %",
            f"+{percent:.1f} % ({differences[0]:.1f} to {differences[-1]:.1f} in {pairs} pairs)",
            f"< {GOAL_PERCENT:g} %", percent < GOAL_PERCENT, f"{lost:,} lost",
        )
    ]  # fmt: skip


def _measure_pair(field: Field, program: str, number: int) -> tuple[float, float, float, int]:
    """Give busy seconds without and with recorders, packets a second, and packets missed."""
    found: dict[bool, tuple[float, float, int]] = {}
    # Each comes first as often as the other.
    for records in (number % 2 == 0, number % 2 == 1):
        found[records] = _measure_window(field, program, records=records)
    (off_s, _, _), (on_s, rate, lost) = found[False], found[True]
    return off_s, on_s, rate, lost


def _measure_window(field: Field, program: str, *, records: bool) -> tuple[float, float, int]:
    agents = [AgentProcess(machine.enter) for machine in (field.source, field.target)]
    if records:
        for agent in agents:
            agent.send(RecordOrder(RUN_DATAGRAMS, [4], None))
    time.sleep(0.3)  # the start of an agent is not what is measured
    before_s = _read_busy_s()
    words = [*field.source.enter, program, field.addresses[0]]
    sent = subprocess.run(
        [*words, str(OTHER_PORT), str(PACKETS_PER_S), str(WINDOW_S)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    busy_s = _read_busy_s() - before_s
    lost = _count_lost(agents) if records else 0
    for agent in agents:
        agent.stop()
    return busy_s, int(sent) / WINDOW_S, lost


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
