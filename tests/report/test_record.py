"""The record: nothing that was measured is lost, and a second run takes it up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.errors import FileErrors, NetprobeError
from netprobe.model.result import Result
from netprobe.report.record.changes import key_of
from netprobe.report.record.record import RecordWriter, header_of, make_record, read_record
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, port
from tests.report.strategies import possible_results

HEADER = header_of(PLAN, "2026-11-20T10:00:00Z")


def written(path: Path, *some: Result, end: bool = True) -> Path:
    """A record with these results, with or without its end."""
    writer = RecordWriter(str(path), HEADER)
    for result in some:
        writer.add(result)
    writer.close(INFO if end else None)
    return path


@pytest.mark.slow
@given(some=st.lists(possible_results(), max_size=10, unique_by=key_of))
def test_round_trip(some: list[Result], tmp_path_factory: pytest.TempPathFactory) -> None:
    """What was written is read back, in the order of writing, with header and end."""
    path = written(tmp_path_factory.mktemp("record") / "r", *some)
    recorded = read_record(str(path))

    assert list(recorded.read_results()) == some
    assert recorded.info == INFO
    assert recorded.info.complete


def test_a_record_that_is_no_file_is_the_same(tmp_path: Path) -> None:
    """Made in memory, for a history, it has the bytes that a file has."""
    path = written(tmp_path / "r", PASSED, port(BLOCKED, 2381))
    assert make_record(HEADER, [PASSED, port(BLOCKED, 2381)], INFO) == path.read_bytes()


def test_every_result_is_on_its_way_at_once(tmp_path: Path) -> None:
    """A reader of the file sees a result as soon as it was added, without any close."""
    writer = RecordWriter(str(tmp_path / "r"), HEADER)
    writer.add(PASSED)

    assert list(read_record(str(tmp_path / "r")).read_results()) == [PASSED]
    writer.close(None)
    assert not read_record(str(tmp_path / "r")).info.complete


@pytest.mark.slow
def test_crash_leaves_a_readable_record(tmp_path: Path) -> None:
    """Wherever a crash tore the file after its header, the whole lines before are read."""
    path = written(tmp_path / "r", PASSED, port(BLOCKED, 2381), port(PASSED, 2380))
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    for length in (*range(header, len(whole), 13), len(whole) - 1):
        path.write_bytes(whole[:length])
        recorded = read_record(str(path))
        found = list(recorded.read_results())

        assert found == [PASSED, port(BLOCKED, 2381), port(PASSED, 2380)][: len(found)]
        assert len(found) == min(3, whole[:length].count(b"\n") - 1)
        assert not recorded.info.complete
        assert recorded.info.planned_flows == PLAN.flow_count()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "",
            "r:1:1: is no report of netprobe, expected a JSON report (netprobe.run/1) or a record",
        ),
        ("{}\n", "r:1:1: is no report of netprobe, expected a JSON report"),
        ('{"schema": "netprobe.record/2"}\n', "schema is 'netprobe.record/2', expected"),
        ("[]\n", "is no JSON object, expected a result"),
        ("hello\n", "r:1:1: is not JSON, expected a line of a record"),
    ],
)
def test_not_a_record(tmp_path: Path, text: str, problem: str) -> None:
    """A file that is no record of this schema is refused with its place."""
    path = tmp_path / "r"
    path.write_text(text)

    with pytest.raises(FileErrors) as caught:
        read_record(str(path))
    assert problem in str(caught.value)


def test_garbage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    """A broken line that is not the last one is no crash: it is said, with its line."""
    path = written(tmp_path / "r", PASSED)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"order": [1]}', *lines[1:]]) + "\n")

    with pytest.raises(FileErrors, match=r"r:2:1: is no result"):
        list(read_record(str(path)).read_results())


def test_missing_file_and_full_disk(tmp_path: Path) -> None:
    """A record that cannot be begun is one clear line before anything is probed."""
    with pytest.raises(FileErrors, match="none: there is no such file, expected a JSON report"):
        read_record(str(tmp_path / "none"))
    with pytest.raises(NetprobeError, match="cannot write the record /dev/full: No space left"):
        RecordWriter("/dev/full", HEADER)
    with pytest.raises(NetprobeError, match="No such file or directory"):
        RecordWriter(str(tmp_path / "no" / "folder"), HEADER)


def test_disk_that_fills_up_does_not_stop_the_run() -> None:
    """The first failed write is kept as one line; later results go on to the report."""
    writer = RecordWriter("/dev/null", HEADER)
    writer._file.close()
    writer._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    writer.add(PASSED)
    writer.add(PASSED)
    writer.close(INFO)

    assert writer.problem == "cannot write the record /dev/full: No space left on device".replace(
        "/dev/full", "/dev/null"
    )


def test_ranges_are_in_the_header(tmp_path: Path) -> None:
    """A record tells which neighbouring ports may be merged when it is read again."""
    recorded = read_record(str(written(tmp_path / "r")))

    assert recorded.ranges["deckhouse-nodes", "drbd", "tcp"] == ((7000, 7999),)


def test_lines_are_json(tmp_path: Path) -> None:
    """Header, results, end: each line is one JSON object, and the results have the run's keys."""
    lines = written(tmp_path / "r", PASSED).read_text().splitlines()
    header, result, end = map(json.loads, lines)

    assert header["schema"] == "netprobe.record/1"
    assert (result["order"], result["requirement"]) == ([0, 0, 0], "etcd")
    assert end["end"]["complete"] is True


def test_only_the_user_may_read_it(tmp_path: Path) -> None:
    """A record is private from its first byte on, unless a file stood there, and has no rival."""
    path = tmp_path / "r"
    (tmp_path / "r.new").symlink_to(tmp_path / "elsewhere")
    writer = RecordWriter(str(path), HEADER)
    modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir() if one.exists()}
    writer.close(INFO)

    assert modes == {"r": 0o600}
    path.chmod(0o640)
    RecordWriter(str(path), HEADER).close(INFO)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ([["m", "etcd", "tcp"]], r"ranges\[0\]: 3 items, expected 4"),
        ([["m", "etcd", "tcp", [[1, 2, 3]]]], r"ranges\[0\]\[3\]\[0\]: 3 items, expected 2"),
        ([["m", "etcd", "tcp", [[5, 1]]]], "5 to 1 is no range of ports, expected 1 to 65535"),
        (5, "ranges: a whole number, expected a list"),
    ],
)
def test_odd_ranges(tmp_path: Path, ranges: object, words: str) -> None:
    """The header's port ranges are checked as everything else is."""
    path = tmp_path / "r"
    path.write_text(json.dumps({**HEADER, "ranges": ranges}) + "\n")

    with pytest.raises(FileErrors, match=f"r:1:1: {words}"):
        read_record(str(path))
