"""Results as they are written: together what came together, and nothing after a failure."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from netprobe.agent.batch.results import FLUSH_MESSAGES, HostClock, ResultFile
from netprobe.agent.core.loop import Loop
from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import CloseOrder
from netprobe.agent.wire.parts import SeenPackets, SeenRun
from netprobe.batch.results import read_results
from tests.batch.support import IDENTITY, start


def make(path: Path | str, loop: Loop | None = None, shift_s: float = 0.0) -> ResultFile:
    """The results of a host in a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    return ResultFile(loop or Loop(), descriptor, start(), HostClock(shift_s))


def test_what_comes_together_is_one_line(tmp_path: Path) -> None:
    """A line is written after a while, at a mark, and when much has come."""
    loop = Loop()
    results = make(tmp_path / "a", loop)
    for number in range(3):
        results.add(CloseOrder(number))
    assert len((tmp_path / "a").read_bytes().splitlines()) == 1
    loop.call_later(0.5, loop.stop)
    loop.run()
    assert len((tmp_path / "a").read_bytes().splitlines()) == 2
    results.mark(1, "told")
    for number in range(FLUSH_MESSAGES):
        results.add(CloseOrder(10 + number))
    assert len((tmp_path / "a").read_bytes().splitlines()) == 4
    results.close()
    found = read_results(tmp_path / "a", IDENTITY)
    assert len(found.orders) == FLUSH_MESSAGES + 3
    assert (found.source, replace(found, source="").name) == (str(tmp_path / "a"), "node-1")


def test_a_full_disk_is_noticed_once() -> None:
    """Nothing is written behind what is missing."""
    results = make("/dev/full")
    failure = results.failure
    assert failure is not None
    assert "No space" in str(failure)
    results.mark(1, "begin")
    results.close()
    assert results.failure is failure


def test_a_shift_moves_every_time_of_the_kernel() -> None:
    """Inside of records and lists, too, and nothing else."""
    run = SeenRun([(1, 2)], SeenPackets(1, 2, 5_000_000_000, 64, "lo"), None, None, [7])
    told = StoryTold(1, True, None, [run], [], [], True, True, 0, False)
    moved = HostClock(2.0).shift(told)
    assert moved.runs[0].requests.first_ns == 7_000_000_000
    assert moved._replace(runs=told.runs) == told
    assert HostClock().shift(told) is told
