"""Scripts of a host and what it wrote, for tests of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netprobe.agent.wire.answers import (
    Closed,
    Done,
    HelloLine,
    Listening,
    ProbeOutcomes,
)
from netprobe.agent.wire.batch import (
    BATCH_FORMAT,
    BatchStart,
    HostBudgets,
    PhaseClock,
    ResultHeader,
)
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.orders import CloseOrder, ListenOrder, RecordOrder, SeenOrder
from netprobe.agent.wire.parts import ListeningBlock, OutcomeKind, OutcomeRun
from netprobe.agent.wire.result_lines import LineMaker
from netprobe.batch.checked_lines import BatchIdentity
from netprobe.batch.results import HostRecording
from netprobe.batch.script import derive_result_key, own_ids
from tests.vantage.support import TEMPLATES, block, probe

KEY, RESULTS_KEY = bytes(range(32)), bytes(range(32, 64))
RUN = "7f3a0c1d2e4b5968"
HOSTS = {3: "node-1", 4: "node-2"}
FLOWS = dict.fromkeys(HOSTS.values(), 10)
IDENTITY = BatchIdentity(RUN, RESULTS_KEY, 1, HOSTS, next_id=10_000, flows=FLOWS)
NO_BUDGETS = HostBudgets(0, 0, 0, 0)
PORT = 40123


def result_key(host: int = 3) -> bytes:
    """The key of a host's results."""
    return derive_result_key(RESULTS_KEY, host)


def start(host: int = 3, **changes: Any) -> BatchStart:
    """The first line of a host's script."""
    usual = BatchStart(
        BATCH_FORMAT, WIRE_VERSION, RUN, 1, host, HOSTS[host], ["127.0.0.1"], "none",
        starts_at=None, window_s=20.0, margin_s=0.0, ends_at=None, silence_s=20.0, key=KEY,
        result_key=result_key(host), own_ids=own_ids(host, 1), budgets=NO_BUDGETS,
    )  # fmt: skip
    return usual._replace(**changes)


def header(host: int = 3, **changes: Any) -> ResultHeader:
    """The first line of a host's results."""
    usual = ResultHeader(
        BATCH_FORMAT, WIRE_VERSION, RUN, 1, host, HOSTS[host], "2026-11-22T14:00:00Z"
    )
    return usual._replace(**changes)


HELLO = HelloLine(
    WIRE_VERSION, "3.6.8", 4711, 0, "root", "node one", "5.10.0", True, True, True, 1024, 2,
    "raw", False, None, "boot/1", ["127.0.0.1"], [], 100.0,
)  # fmt: skip
KIND = OutcomeKind("answer", None, None, True, "nonce", 3, None, 64, 1, None, None, None)
RANGES = [(PORT, PORT)]


def messages() -> list[list[Any]]:
    """What a host writes in one round, as it writes it: some messages a line."""
    up = ListeningBlock(RANGES, [], [], [], [], [], False)
    return [
        [HELLO, PhaseClock(1, "begin", 100.0)],
        [ListenOrder(1, [block("tcp", "127.0.0.1", RANGES)]), Listening(1, [up])],
        [PhaseClock(1, "listening", 101.0), PhaseClock(1, "go", 102.0)],
        [probe(2, "tcp", "127.0.0.1", RANGES)],
        [ProbeOutcomes(2, [(1, 1)], [KIND], [OutcomeRun(PORT, PORT, 0, [90], 1)], [])],
        [Done(2, False), PhaseClock(1, "probed", 103.0)],
        [CloseOrder(1), Closed(1)],
        [PhaseClock(1, "told", 104.0), PhaseClock(1, "end", 104.0)],
    ]


def written(host: int = 3, **changes: Any) -> list[bytes]:
    """The lines of a result file."""
    maker = LineMaker(result_key(host))
    return [maker.begin(header(host, **changes)), *map(maker.add, messages())]


def write_file(folder: Path, lines: list[bytes], name: str = "node-1") -> Path:
    """A result file as a host leaves it."""
    path = folder / f"{name}.npr"
    path.write_bytes(b"".join(lines))
    return path


def phases(port: int, first: int = 1) -> list[tuple[str, list[Any]]]:
    """Listen at a port of this host, ask it and the closed one behind it, and tell what came."""
    ports, closed = [(port, port)], [(port + 1, port + 1)]
    blocks = [block("tcp", "127.0.0.1", ports), block("udp", "127.0.0.1", ports)]
    return [
        ("listen", [TEMPLATES, RecordOrder(ports, [], None), ListenOrder(first + 900, blocks)]),
        (
            "go",
            [
                probe(first, "tcp", "127.0.0.1", ports),
                probe(first + 1, "udp", "127.0.0.1", ports),
                probe(first + 2, "tcp", "127.0.0.1", closed),
            ],
        ),
        (
            "tell",
            [
                SeenOrder(first + 901, first + 900, [first, first + 1], rest=True),
                CloseOrder(first + 900),
            ],
        ),
    ]


def outcomes_of(found: HostRecording) -> dict[int, tuple[str | None, str | None]]:
    """What became of each probe order: failure and answer of its only port."""
    said = {}
    for number, some in found.answers.items():
        for answer in some:
            if isinstance(answer, ProbeOutcomes):
                (kind,) = answer.kinds
                said[number] = kind.failure, kind.answer
    return said


# What ``phases`` finds, whose first order is 1.
FOUND = {1: (None, "nonce"), 2: (None, "nonce"), 3: ("refused", None)}


def change_content(results: bytes) -> bytes:
    """Change a letter of what the line behind the header says; with another beginning or end it
    would be a line that was cut off, which may come again."""
    header, line, rest = results.split(b"\n", 2)
    letter = b"B" if line.endswith(b"A") else b"A"
    return b"\n".join([header, line[:-1] + letter, rest])
