"""The program behind ``make steady``: whose turn it is, what a line says, how it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import steady
from tests.cli.test_signals import assert_gone, children_of
from tests.lab.netlab import wait_for
from tests.steady import BUSY_LOOPS, ROOT, SUITE, Job, Turn, ending_of, make_runs, next_turn

PYTHONS = ("3.11", "3.12", "3.13")
TWICE = """\
FAILED tests/a/test_b.py::test_c[a - b] - AssertionError: no
ERROR tests/a/test_d.py::test_e
FAILED tests/a/test_f.py::test_g#17
FAILED tests/a/test_f.py::test_g#18 - AssertionError: no
= 1 failed, 8128 passed, 1 error in 101.18s (0:01:41) =
================== 293 passed, 117 skipped in 22.01s ==================
"""


def lines_of(commit: str, number: int, what: str = SUITE, login: str = "root, 1024 files") -> str:
    """So many lines of a log."""
    return f"2025-01-01T00:00Z\t{commit}\t{what}\tquiet\t1\t{login}\n" * number


def test_a_series_of_six_covers_both_loads_with_every_python() -> None:
    """Six runs of a commit are a quiet and a loaded one with each of three Pythons."""
    turns = [next_turn(lines_of("new", number), "new", PYTHONS) for number in range(6)]

    assert turns == [Turn(loaded, python) for python in PYTHONS for loaded in (False, True)]
    assert next_turn(lines_of("new", 6), "new", PYTHONS) == turns[0]


def test_other_lines_of_the_log_take_no_turn() -> None:
    """Other commits, repeated tests and the head of the log do not move a series."""
    log = "# head\n" + lines_of("old", 3) + lines_of("new", 3, "200 x test_a")

    assert next_turn(log, "new", PYTHONS) == Turn(False, "3.11")
    log += lines_of("new", 1)
    assert next_turn(log, "new", PYTHONS) == Turn(True, "3.11")
    assert next_turn(log, "new", PYTHONS, "user") == Turn(False, "3.11")
    assert next_turn(log + lines_of("new", 1, login="user"), "new", PYTHONS) == Turn(True, "3.11")


def test_the_closing_lines_of_a_run() -> None:
    """Both closing lines of a normal user's run are kept, and the failed tests by name."""
    ended = ending_of(TWICE, 1)

    assert ended.result == (
        "1 failed, 8128 passed, 1 error in 101.18s (0:01:41) + 293 passed, 117 skipped in 22.01s"
    )
    assert ended.failed == (
        "tests/a/test_b.py::test_c[a - b]",
        "tests/a/test_d.py::test_e",
        "tests/a/test_f.py::test_g",
    )
    assert not ended.passed


def test_a_run_without_a_closing_line() -> None:
    """A run that died says how."""
    assert ending_of("make: *** killed", 2).result == "no closing line of pytest, exit status 2"


def test_every_run_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails keeps its output, one that passes does not, and both have a line."""
    monkeypatch.setattr(steady, "LOG", tmp_path / "log")
    monkeypatch.setattr(steady, "FAILED", tmp_path / "failed")
    script = "echo '= 1 passed in 0.10s ='; exit $0"
    runs = [
        Job("new", "1 x this", Turn(loaded, "3.12"), ["sh", "-c", script, status], tmp_path)
        for loaded, status in ((False, "0"), (True, "3"))
    ]

    assert not make_runs(iter(runs))
    lines = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line[3], line[6], line[8]) for line in lines] == [
        ("quiet", "3.12", "1 passed in 0.10s"),
        ("loaded", "3.12", "1 passed in 0.10s"),
    ]
    (kept,) = (tmp_path / "failed").iterdir()
    assert kept.read_text() == "= 1 passed in 0.10s =\n"


STOPPED = """
import sys
from pathlib import Path
from tests import steady

folder = Path(sys.argv[1])
steady.LOG, steady.FAILED, steady.STOPPING_S = folder / "log", folder / "failed", 0.2
# What a shell starts in the background ignores SIGINT.
command = ["sh", "-c", "sleep 1000 & echo $! >pid; wait"]
steady.suite_jobs = lambda *_: [steady.Job("new", "x", steady.Turn(True, "3.12"), command, folder)]
sys.exit(steady.main([]))
"""


@pytest.mark.slow
def test_a_stop_ends_all_that_was_started(tmp_path: Path) -> None:
    """SIGINT ends the run with its children and the busy loops, and the run has no line."""
    pid = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: pid.exists() and pid.read_text().endswith("\n"), "the run")
        started = [*children_of(process.pid), int(pid.read_text())]
        process.send_signal(signal.SIGINT)
        printed = process.communicate(timeout=30)[0]

    assert (process.returncode, len(started)) == (130, 1 + 1 + BUSY_LOOPS)
    assert "Stopped" in printed
    assert_gone(started)
    assert not (tmp_path / "log").exists()


@pytest.mark.slow
def test_repeated_tests_run_side_by_side(tmp_path: Path) -> None:
    """Every repetition is a test of its own with fixtures of its own, in any number of workers."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('row', ['a', 'b'])\n"
        "def test_it(row, tmp_path):\n"
        "    (tmp_path / 'once').mkdir()\n"
        "    assert row == 'a'\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.repeat", "--repeat", "5"]
    command += ["-n", "2", "--dist", "loadscope"]
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist"}
    done = subprocess.run(
        [*command, f"{tmp_path}/test_it.py::test_it[a]", f"--rootdir={tmp_path}"],
        cwd=ROOT, env=alone, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ending_of(done.stdout, done.returncode).result.startswith("5 passed"), done.stdout
