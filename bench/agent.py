"""The packed agent without a coordinator: fed over its stdin as the product does it, and timed.

Nothing here interprets an outcome: a run is counted by the words that came over the wire.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from netprobe.agent.wire.answers import Done, EchoOutcomes, Fault, ProbeOutcomes
from netprobe.agent.wire.frames import HELLO_PREFIX, READY_LINE, FrameReader, encode_frame
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, StartOrder, StopOrder
from netprobe.agent.wire.parts import OutcomeKind, ProbeBlock
from netprobe.vantage.pack import bundle
from netprobe.vantage.script import agent_script

Order = ProbeOrder | EchoOrder
Outcomes = ProbeOutcomes | EchoOutcomes
# (address, port): one flow; what the agent said of it.
Answers = dict[tuple[str, int], str]
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Timed:
    """One run of a program: wall and processor seconds of the whole process, and its answers."""

    wall_s: float
    cpu_s: float
    answers: Counter[str]
    wrong: int = 0


class AgentProcess:
    """A running agent, started by these words before the product's own shell script."""

    def __init__(self, within: Sequence[str]) -> None:
        argv = [*within, "sh", "-c", agent_script()]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._reader = FrameReader(ANSWERS)
        head = self._read_line(READY_LINE)
        self._write(bundle())
        head = self._read_line(HELLO_PREFIX)
        self._waiting: list[Any] = []
        if head:
            self._waiting += self._reader.feed(head)
        self.send(StartOrder(bytes(32), 1, 600.0))

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """One frame to the agent."""
        self._write(encode_frame(message))

    def messages(self) -> Iterator[Any]:
        """Messages as they come, until the agent ends."""
        while True:
            # One by one: a caller that stops here finds the rest next time.
            while self._waiting:
                yield self._waiting.pop(0)
            data = os.read(self._out.fileno(), READ_BYTES)
            if not data:
                return
            self._waiting += self._reader.feed(data)

    def probe(self, orders: Sequence[Order]) -> Iterator[tuple[Order, Outcomes]]:
        """Send all orders; gives every order with each of its outcomes, until all are done."""
        by_id = {order.id: order for order in orders}
        for order in orders:
            self.send(order)
        left = len(orders)
        for message in self.messages():
            if isinstance(message, (ProbeOutcomes, EchoOutcomes)):
                yield by_id[message.id], message
            elif isinstance(message, Done):
                left -= 1
                if not left:
                    return
            elif isinstance(message, Fault):
                raise RuntimeError(message.words)
        raise RuntimeError("the agent ended early")

    def stop(self) -> float:
        """Stop it; the processor seconds that it and its starting shell took."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.send(StopOrder())
        with contextlib.suppress(BrokenPipeError):
            self._in.close()
        for _ in self.messages():
            pass
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0
        self._out.close()
        return usage.ru_utime + usage.ru_stime

    def _write(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def _read_line(self, marker: bytes) -> bytes:
        """Skip to the end of the line that begins with the marker; what came after it."""
        seen = b""
        while marker not in seen or b"\n" not in seen.split(marker, 1)[1]:
            data = os.read(self._out.fileno(), READ_BYTES)
            if not data:
                raise RuntimeError("the agent did not start")
            seen += data
        return seen.split(marker, 1)[1].split(b"\n", 1)[1]


def word(kind: OutcomeKind) -> str:
    """What one outcome means to a scanner: open, closed, rejected, silent, or the raw words."""
    if kind.answer is not None:
        return "open"
    if kind.failure == "no-answer":
        return "silent"
    if kind.icmp is not None:
        return "closed" if (kind.icmp.type, kind.icmp.code) == (3, 3) else "rejected"
    return "closed" if kind.failure == "refused" else str(kind.failure)


def port_order(
    number: int, protocol: str, address: str, ports: tuple[int, int], mode: str
) -> ProbeOrder:
    """An order as the product gives it where nothing of ours listens."""
    return ProbeOrder(
        id=number, proto=protocol, number=None, dst=address, src=None,
        blocks=[ProbeBlock([ports], mode, 0)], first_ms=None, look_ms=4000, looks=2,
        pace=None, min_ttl=None, ttl=None, size=None, host=None, sport=None, more=[],
    )  # fmt: skip


def run(within: Sequence[str], orders: Sequence[ProbeOrder]) -> tuple[float, float, Answers]:
    """Start an agent, let it work through the orders, end it: wall s, processor s, every answer."""
    found: list[tuple[str, Outcomes]] = []
    begun = time.monotonic()
    agent = AgentProcess(within)
    for order, outcomes in agent.probe(orders):
        assert isinstance(order, ProbeOrder)
        found.append((order.dst, outcomes))
    cpu_s = agent.stop()
    wall_s = time.monotonic() - begun
    return wall_s, cpu_s, answers_of(found)


def answers_of(found: Sequence[tuple[str, Outcomes]]) -> Answers:
    """Every flow's answer. Raises where a flow was answered twice."""
    answers: Answers = {}
    for address, outcomes in found:
        words = [word(kind) for kind in outcomes.kinds]
        for run in outcomes.runs:
            for port in range(run.first, run.last + 1):
                if (address, port) in answers:
                    raise RuntimeError(f"{address} {port} was answered twice")
                answers[address, port] = words[run.kind]
    return answers


def children_cpu_s() -> float:
    """Processor seconds of every child that has ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
