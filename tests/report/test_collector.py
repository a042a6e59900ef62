"""Results kept in plan order, counted in flows, with flat memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.errors import NetprobeError
from netprobe.model.result import Result
from netprobe.report.record.collector import collect
from netprobe.report.record.merge import PlannedPorts, merge_neighbours
from netprobe.report.record.spool import Spool, place
from tests.report.samples import BLOCKED, PASSED, flow, port
from tests.report.strategies import results

# A result and the strings that only it has.
RESULT_BYTES = 514
ROOT = Path(__file__).parents[2]
RANGE: PlannedPorts = {
    ("deckhouse-nodes", "etcd", "tcp"): ((2379, 2379), (2380, 2380), (7000, 7999))
}


@pytest.mark.slow
@given(st.lists(results(last_place=3), max_size=60), st.integers(1, 7))
def test_spool_sorts(some: list[Result], chunk: int) -> None:
    """However small the chunks, the spool gives back what it took, in plan order, every time."""
    spool = Spool(chunk)
    for result in some:
        spool.add(result)
    expected = sorted(map(place, some))

    assert [place(result) for result in spool] == expected
    assert sorted(map(repr, spool)) == sorted(map(repr, some))
    spool.close()


def test_spool_takes_more_after_reading() -> None:
    """Reading in the middle changes nothing."""
    spool = Spool(2)
    for index in (3, 1, 2):
        spool.add(flow(PASSED, index))
    assert [result.order[0] for result in spool] == [1, 2, 3]
    spool.add(flow(PASSED, 0))

    assert [result.order[0] for result in spool] == [0, 1, 2, 3]
    spool.close()


def test_spool_says_where_it_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder that cannot be written is one clear line with the way out."""
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    spool = Spool(1)

    with pytest.raises(NetprobeError, match=r"cannot keep the results in /proc/nowhere: .*TMPDIR"):
        spool.add(PASSED)


def test_a_full_disk_is_named_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is in the file's buffer until it is closed."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "w+b"))  # noqa: SIM115
    spool = Spool(1)

    with pytest.raises(NetprobeError, match=r"cannot keep the results in .* No space left"):
        list(map(spool.add, [PASSED] * 10_000))
    spool.close()


def test_passes_and_failures_in_plan_order() -> None:
    """Results come back in plan order over all verdicts; failures leave the passes out."""
    mixed = [flow(BLOCKED if index % 3 else PASSED, index) for index in range(9)]
    collector = collect(mixed[::-1])

    assert list(collector.results()) == mixed
    assert list(collector.failures()) == [one for one in mixed if one.verdict == "blocked"]


def test_neighbours_merge_within_a_range() -> None:
    """Equal neighbours of one range are one result: weakest proof, median time, most attempts."""
    parts = [
        port(PASSED, 7000, 7001, rtt_ms=1.0, attempts=1, because="once", warnings=("w",)),
        port(PASSED, 7002, rtt_ms=9.0, attempts=3, because="thrice", proof="handshake"),
        port(PASSED, 7003, 7010, rtt_ms=2.0, attempts=2, warnings=("v", "w")),
    ]
    (merged,) = collect(parts[::-1], RANGE).results()

    assert (merged.port, merged.end_port) == (7000, 7010)
    assert (merged.proof, merged.rtt_ms, merged.attempts) == ("handshake", 2.0, 3)
    assert (merged.because, merged.warnings) == ("thrice", ("w", "v"))


@pytest.mark.parametrize(
    "other",
    [
        port(PASSED, 7002),
        port(PASSED, 7001, state="closed"),
        port(PASSED, 7001, reason="reset"),
        port(PASSED, 7001, last_hop="10.0.0.1"),
        port(PASSED, 7001, rejected_by="10.0.0.1"),
        port(PASSED, 7001, where=("service",)),
        port(PASSED, 7001, verdict="inconclusive"),
        port(PASSED, 7001, source="master-2"),
        port(PASSED, 7001, address="10.0.0.12"),
        port(PASSED, 7001, requirement="kubelet"),
    ],
)
def test_different_neighbours_stay_apart(other: Result) -> None:
    """A gap, another fate or another flow keeps two results apart."""
    assert len(list(merge_neighbours([port(PASSED, 7000), other], RANGE))) == 2


def test_listed_ports_stay_apart() -> None:
    """2379 and 2380, listed one by one, are two results; without known ranges nothing merges."""
    listed = [port(PASSED, 2379), port(PASSED, 2380)]

    assert list(collect(listed, RANGE).results()) == listed
    ranged = [port(PASSED, 7000), port(PASSED, 7001)]
    assert list(collect(ranged).results()) == ranged


def test_portless_results_stay_apart() -> None:
    """ICMP results have no ports and never merge."""
    echo = replace(PASSED, protocol="icmp", port=None, end_port=None)

    assert len(list(collect([echo, echo], RANGE).results())) == 2


def test_warnings_are_counted() -> None:
    """A warning is kept once, with its first flow and the number of flows that carry it."""
    collector = collect(
        [flow(PASSED, 5, warnings=("held",)), flow(PASSED, 6, warnings=("held",), end_port=2389)]
    )

    assert collector.warned["held"].flows == 12
    assert collector.warned["held"].first.order == (5, 0, 0)


def stream(count: int) -> Iterator[Result]:
    """As many results as asked, no two of them alike, one in ten of them blocked."""
    for index in range(count):
        base = BLOCKED if index % 10 == 0 else PASSED
        yield port(base, 1 + index % 65535, order=(index // 65535, 0, 0), because=f"flow {index}")


@pytest.mark.full
@pytest.mark.slow
def test_memory_is_flat() -> None:
    """The spool holds a tenth of what a list of its results would, written and read."""
    tracemalloc.start()
    spool = Spool(2_000)
    for result in stream(40_000):
        spool.add(result)
    assert sum(1 for _ in spool) == 40_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    spool.close()

    assert peak < 40_000 * RESULT_BYTES / 10


WHOLE = """
from netprobe.report.record.collector import collect
from tests.report.test_collector import stream
assert sum(1 for _ in collect(stream(200_000)).results()) == 200_000
# Not ru_maxrss: that counts what the parent had when it forked.
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""


@pytest.mark.slow
@pytest.mark.full
def test_memory_of_a_whole_process() -> None:
    """200,000 results pass through a process that never holds more than 100 MB."""
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WHOLE], check=True, capture_output=True, cwd=ROOT
    )

    assert int(printed.stdout) < 100_000  # KiB


def test_nothing_is_left_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The spool's file has no name: a killed netprobe leaves nothing behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = Spool(1)
    spool.add(PASSED)

    assert list(tmp_path.iterdir()) == []
    assert list(spool) == [PASSED]
    spool.close()
