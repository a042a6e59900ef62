"""``make steady``: ``make test`` again and again, quiet and beside two busy loops in turn.

The tests run in a clone of the commit, so that nobody's editing disturbs them. Each run adds a line
to ``tests/steady.log``, which says where to go on. Two runs, a quiet one and a loaded one, take the
same Python, the next two another one. What a failed run printed stays in ``.tox/steady-failed``.

With ``--tests`` only these tests run, all repetitions in one pytest, in this checkout, loaded.
"""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

from tests.lab.netlab import sweep

ROOT = Path(__file__).parents[1]
LOG = ROOT / "tests/steady.log"
CLONE = ROOT / ".tox/steady"
FAILED = ROOT / ".tox/steady-failed"
SUITE = "make test"
# Words of tests/places.sh; other logins are the own one.
PLACES = frozenset(("files", "user", "container"))
BUSY_LOOPS = 2
# pytest ends its workers, and they their labs; a loaded machine takes its time.
STOPPING_S = 60.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The loop ends with the process that started it, however that one ended.
_BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(10**6):
        pass
"""
# Make hands its variables down to every make below it.
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "COUNT", "TESTS", "PYTEST_ARGS")


class Turn(NamedTuple):
    """What a run differs in: beside busy loops or not, and its Python (``3.12``)."""

    loaded: bool
    python: str


class Ended(NamedTuple):
    """How a run ended: pytest's closing lines, and the names of the tests that failed."""

    passed: bool
    result: str
    failed: tuple[str, ...]


class Job(NamedTuple):
    """A run that is to be made: its command, and what its line in the log says of it."""

    commit: str
    what: str
    turn: Turn
    command: Sequence[str]
    folder: Path
    place: str = ""


def next_turn(log: str, commit: str, pythons: Sequence[str], place: str = "") -> Turn:
    """The turn after those runs of the whole suite that the log has of this commit and place."""
    rows = [line.split("\t") for line in log.splitlines()]
    suites = [row for row in rows if row[1:3] == [commit, SUITE]]
    done = sum(row[5] == place or (not place and row[5] not in PLACES) for row in suites)
    return Turn(loaded=done % 2 == 1, python=pythons[done // 2 % len(pythons)])


def ending_of(output: str, status: int) -> Ended:
    """Read what pytest printed: ``make test`` may run it twice."""
    closing = re.findall(r"^=+ (.+ in [0-9.]+s.*?) =+$", output, re.MULTILINE)
    failed = re.findall(
        r"^(?:FAILED|ERROR) (\S+::\w+(?:\[.*?\])?)(?:#\d+\]?)?(?: - .*)?$", output, re.MULTILINE
    )
    result = " + ".join(closing) or f"no closing line of pytest, exit status {status}"
    return Ended(status == 0, result, tuple(dict.fromkeys(failed)))


def make_runs(jobs: Iterator[Job]) -> bool:
    """Make one run after the other; True if all passed."""
    passed = True
    for job in jobs:
        passed = _make_run(job) and passed
    return passed


def _make_run(job: Job) -> bool:
    begin, before = time.time(), os.getloadavg()[0]
    output = FAILED / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(begin))}-{job.commit}.txt"
    FAILED.mkdir(parents=True, exist_ok=True)
    print(f"{_line_start(begin, job)}: {output}", flush=True)
    with output.open("w", encoding="utf-8") as stream, _busy_loops(job.turn.loaded):
        status = _run_to_its_end(job.command, job.folder, stream)
        after = os.getloadavg()[0]
    ended = ending_of(output.read_text(encoding="utf-8", errors="replace"), status)
    columns = (
        _line_start(begin, job), f"{before:.1f}-{after:.1f}", _login_of(job), job.turn.python,
        f"{(time.time() - begin) / 60:.1f}", ended.result, " ".join(ended.failed) or "-",
    )  # fmt: skip
    with LOG.open("a", encoding="utf-8") as log:
        log.write("\t".join(columns) + "\n")
    print("\t".join(columns[2:]), flush=True)
    if ended.passed:
        output.unlink()
    return ended.passed


def _line_start(begin: float, job: Job) -> str:
    when = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(begin))
    return "\t".join((when, job.commit, job.what, "loaded" if job.turn.loaded else "quiet"))


def _login_of(job: Job) -> str:
    if job.place:
        return job.place
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return f"{getpass.getuser()}, {files} files"


@contextmanager
def _busy_loops(wanted: bool) -> Iterator[None]:
    command = [sys.executable, "-c", _BUSY]
    loops = [subprocess.Popen(command) for _ in range(BUSY_LOOPS * wanted)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run_to_its_end(command: Sequence[str], folder: Path, output: IO[str]) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    # A stop that comes before the process is known would leave it behind: it waits for that.
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in _ENDING}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            raise KeyboardInterrupt(signal.Signals(came[0]).name)
        return process.wait()
    except KeyboardInterrupt:
        _end_group(process)
        raise


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Let pytest and its workers take down their labs; end at once what still runs after that."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        deadline = time.monotonic() + STOPPING_S
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    sweep()


def suite_jobs(number: int | None, place: str) -> Iterator[Job]:
    """``make test`` of the commit, in turn, in a clone of its own, as the login of a place."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    _check_out()
    pythons = _make_in_clone("pythons").split()
    for _ in range(number) if number else count():
        turn = next_turn(LOG.read_text(encoding="utf-8"), commit, pythons, place)
        # Installing is no part of the minutes.
        _make_in_clone("setup", f"PY={turn.python}")
        # The user of a place has the machine's own Python.
        python = [] if place == "user" else [f"PY={turn.python}"]
        login = ["tests/places.sh", place] if place else []
        yield Job(commit, SUITE, turn, [*login, "make", "test", *python], CLONE, place)


def _check_out() -> None:
    if not CLONE.exists():
        _git("clone", "--quiet", "--no-checkout", str(ROOT), str(CLONE))
    here = ("-C", str(CLONE))
    _git(*here, "fetch", "--quiet", str(ROOT), "HEAD")
    _git(*here, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    # Virtual environments stay: they are good as long as requirements.lock is the same.
    _git(*here, "clean", "--quiet", "-ffdx", "--exclude=.tox")


def _make_in_clone(*words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    command = ["make", "--silent", *words]
    done = subprocess.run(
        command, cwd=CLONE, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def tests_job(tests: str, number: int, pytest: Sequence[str]) -> Job:
    """So many times the tests that ``tests`` names, as arguments of pytest, in this checkout."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!tests/steady.log")
    commit = _git("rev-parse", "--short=10", "HEAD") + ("+changes" if changed else "")
    words = [*pytest, "-p", "tests.repeat", "--repeat", str(number), *shlex.split(tests)]
    turn = Turn(loaded=True, python=platform.python_version().rpartition(".")[0])
    return Job(commit, f"{number} x {tests}", turn, words, ROOT)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def _stop(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(argv: list[str]) -> int:
    """Run what was asked for until it ended or was stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.steady", description=__doc__)
    parser.add_argument("--count", default="", help="how many runs, or how often each test")
    parser.add_argument("--tests", default="", help="arguments of pytest that choose tests")
    parser.add_argument("--place", default="", help="as which login: a word of tests/places.sh")
    parser.add_argument("pytest", nargs="*", help="the command that runs pytest, for --tests")
    asked = parser.parse_args(argv)
    for number in _ENDING:
        signal.signal(number, _stop)
    times = int(asked.count or 0)
    try:
        jobs = (
            iter([tests_job(asked.tests, times or 200, asked.pytest)])
            if asked.tests
            else suite_jobs(times, asked.place)
        )
        return 0 if make_runs(jobs) else 1
    except KeyboardInterrupt:
        print(f"Stopped. That run is not in the log; what it printed is in {FAILED}.", flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
