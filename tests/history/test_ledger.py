"""The file of a history: what is kept, what is refused, and what survives."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.errors import NetprobeError, RequestError
from netprobe.history.ledger import open_ledger
from netprobe.history.looks import AskedFlows, asked_to_json
from netprobe.history.outages import replay
from netprobe.model.outage import RouteMark
from tests.history.test_outages import ASKED, DROP, OTHER, TCP, bad, look
from tests.patience import PATIENCE_S

DROPPED = bad({TCP: ((5, 9),)})
HOLE = bad({TCP: ((5, 9), (11, 20))}, DROP, "a hole")


def test_looks_come_back_in_the_order_of_time(tmp_path: Path) -> None:
    """Whatever the order in which they were added; all that an outage needs is kept."""
    path = str(tmp_path / "h.db")
    mark = RouteMark("hops", "a", ("b", "c"), 5.5, 8.5, "1", "2")
    looks = [
        look(30, HOLE),
        replace(look(10), marks=(mark,)),
        look(20, DROPPED, blind={TCP: ((1, 4),)}),
    ]
    with open_ledger(path, create=True) as ledger:
        for number, one in enumerate(looks):
            assert ledger.add(one, b"run %d" % number)
    with open_ledger(path) as ledger:
        assert list(ledger.looks()) == sorted(looks, key=lambda one: one.begun)
        assert ledger.run_at(25) == b"run 2"
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_a_run_is_added_once(tmp_path: Path) -> None:
    """A second time it is not, and many alike looks take little room."""
    path = str(tmp_path / "h.db")
    with open_ledger(path, create=True) as ledger:
        assert ledger.add(look(10), b"a")
        assert not ledger.add(look(10), b"a")
        size = Path(path).stat().st_size
        for number in range(50):
            ledger.add(look(20 + number, DROPPED), b"%d" % number)
        assert len(list(ledger.looks())) == 51
        grown = Path(path).stat().st_size - size

    assert grown / 50 < 200


def test_what_is_no_history_is_left_as_it_is(tmp_path: Path) -> None:
    """A text, another program's database, another schema, a folder, nothing at all."""
    text, other, later = tmp_path / "text", tmp_path / "other", tmp_path / "later"
    text.write_text("schema: netprobe.inventory/1\n")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with open_ledger(str(later), create=True):
        pass
    with sqlite3.connect(later) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    cases = {
        text: "this is no history of netprobe",
        other: "this is no history of netprobe",
        later: "this is a history of schema 9, expected 2",
    }
    for path, words in cases.items():
        before = path.read_bytes()
        for create in (False, True):
            with pytest.raises(RequestError, match=words):
                open_ledger(str(path), create=create)
        assert path.read_bytes() == before
    with pytest.raises(RequestError, match="there is no history"):
        open_ledger(str(tmp_path / "none"))
    with pytest.raises(RequestError, match="a history is a file"):
        open_ledger(str(tmp_path), create=True)
    assert {one.name for one in tmp_path.iterdir()} == {"text", "other", "later"}


def test_two_files_of_one_run_are_one_look(tmp_path: Path) -> None:
    """Its record and its JSON report differ as texts, and say the same."""
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        assert ledger.add(look(10, DROPPED, HOLE), b"the record")
        assert not ledger.add(look(10, DROPPED, HOLE), b"the report")
        assert ledger.add(look(10, DROPPED), b"another run that began then")
        assert len(list(ledger.looks())) == 2


def test_what_looks_have_in_common_is_one_object(tmp_path: Path) -> None:
    """So that a replay sees at once what has not changed."""
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        ledger.add(look(10, DROPPED), b"a")
        ledger.add(look(20, HOLE, DROPPED), b"b")
        first, second = ledger.looks()

    assert first.asked is second.asked
    assert first.findings[0] is second.findings[1]


@pytest.mark.slow
def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    """Whatever bytes of it are changed: it is read as it was, or refused in one line."""
    path = tmp_path / "h.db"
    with open_ledger(str(path), create=True) as ledger:
        for number in range(8):
            ledger.add(
                look(number, DROPPED, bad({OTHER: ((1, 9),)}, DROP, f"{number}")), b"%d" % number
            )
    whole, chance = path.read_bytes(), random.Random(7)
    refused: list[str] = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            with open_ledger(str(path)) as ledger:
                assert ledger.run_at(99)
                replay(ledger.looks())
                ledger.add(look(50), b"new")
        except NetprobeError as error:
            refused.append(str(error))

    known = re.compile(r"cannot (open|read|write) [^\n]+|--when: [^\n]+ has no look [^\n]+")
    assert [words for words in refused if not known.fullmatch(words)] == []
    assert len(refused) > 20


def test_a_name_has_no_other_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of SQLite's own names, and of characters of addresses, each is a file's name."""
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:h?mode=memory", "100% #1.db"):
        with open_ledger(name, create=True) as ledger:
            assert ledger.add(look(10), b"a")
        assert (tmp_path / name).is_file()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RequestError, match="pipe: "):
        open_ledger("pipe")


def test_no_look_before_the_first(tmp_path: Path) -> None:
    """A moment before the first look has no report."""
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        ledger.add(look(10), b"a")
        with pytest.raises(RequestError, match="has no look at 1970-01-01T00:00:05Z or before"):
            ledger.run_at(5)


ADDER = """
import sys
from netprobe.history.ledger import open_ledger
from netprobe.history.outages import replay
from tests.history.test_outages import look
with open_ledger(sys.argv[1], create=True) as ledger:
    for number in range(10_000):
        ledger.add(look(number), b"%d" % number)
        print(number, flush=True)
"""


@pytest.mark.slow
def test_a_kill_loses_no_look_that_was_added(tmp_path: Path) -> None:
    """Killed at any moment: what was said to be added is there, and the file opens."""
    path = str(tmp_path / "h.db")
    for kill in range(3):
        Path(path).unlink(missing_ok=True)
        adder = subprocess.Popen(
            [sys.executable, "-c", ADDER, path],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert adder.stdout is not None
        lines = [adder.stdout.readline() for _ in range(7 * kill + 1)]
        os.kill(adder.pid, signal.SIGKILL)
        lines += adder.stdout.read().splitlines()
        adder.stdout.close()
        adder.wait(PATIENCE_S)
        with open_ledger(path) as ledger:
            assert len(list(ledger.looks())) >= len([line for line in lines if line.strip()])
            assert ledger.add(look(99_999), b"last")


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """What has no room is not added, and what was there before is whole."""
    path = str(tmp_path / "h.db")
    with open_ledger(path, create=True) as ledger:
        ledger.add(look(10), b"a")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = Path(path).stat().st_size
    heeded = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        with (
            open_ledger(path) as ledger,
            pytest.raises(NetprobeError, match=f"cannot write {path}"),
        ):
            ledger.add(look(20), os.urandom(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, heeded)
    with open_ledger(path) as ledger:
        assert [one.begun for one in ledger.looks()] == [10]
        assert [dict(one.asked) for one in ledger.looks()] == [ASKED]


def test_all_flows_of_a_look_are_read_as_they_were() -> None:
    """Also of hosts with many addresses and rows of other ports; a flow that is not there is
    none."""
    asked = {**ASKED, (*TCP[:4], "fd00::2", "tcp"): ((1, 20), (30, 31))}
    read = AskedFlows(json.loads(json.dumps(asked_to_json(asked))))
    assert dict(read) == asked
    assert len(read) == len(asked)
    others = [(*TCP[:at], "other", *TCP[at + 1 :]) for at in range(len(TCP))]
    assert [one for one in others if one in read] == []


def test_what_two_reports_have_in_common_is_kept_once(tmp_path: Path) -> None:
    """A watch's next report takes the room of what is another in it, wherever that is; each is read
    as it was written."""
    chance = random.Random(7)
    lines = [b"%d %s\n" % (number, chance.randbytes(40).hex().encode()) for number in range(4000)]
    path = tmp_path / "h.db"
    runs = [b"".join(lines)]
    for at in (0, 2000, 4000):
        runs.append(b"".join([*lines[:at], b"another\n", *lines[at + 1 :]]))
    sizes = []
    with open_ledger(str(path), create=True) as ledger:
        for at, run in enumerate(runs):
            ledger.follow(look(at), run)
            sizes.append(path.stat().st_size)
        assert [ledger.run_at(at) for at in range(len(runs))] == runs
    assert sizes[-1] - sizes[0] < sizes[0] / 2
