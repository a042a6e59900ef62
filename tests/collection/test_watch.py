"""What a worker of Ansible waits for has an end: its time, its size, and the end of the play."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from tests.collection.ansible import COLLECTION
from tests.patience import wait_until
from tests.vantage.support import is_running

# They start whole commands.
pytestmark = pytest.mark.slow

UTILS = COLLECTION / "plugins" / "plugin_utils"
LIMIT_S = 240
PROGRAM = """
import subprocess, sys
sys.path.insert(0, {utils!r})
import watch
watch.AGAIN_S = 3.0

def run(*words):
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    print(child.pid, flush=True)
    return child.communicate()[0]

try:
    with watch.Watch("start", {most_s}, {most_bytes}) as watched:
        {body}
except watch.HostFailed as error:
    print(error)
print(watch._read_memory() // 1048576)
"""


def _watch(
    body: str,
    most_s: float | None = None,
    most_bytes: int | None = None,
    within: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start a process that watches what it does itself; ``within`` are words that start it."""
    utils = str(UTILS)
    program = PROGRAM.format(utils=utils, body=body, most_s=most_s, most_bytes=most_bytes)
    words = [*within, sys.executable, "-c", program]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _read(process: subprocess.Popen[str]) -> list[str]:
    """What it has printed at its end, line by line."""
    return process.communicate(timeout=LIMIT_S)[0].splitlines()


def test_a_host_that_sleeps_is_given_up() -> None:
    """At the limit the host has failed with the reason, and what was started for it is gone."""
    pid, reason, _ = _read(_watch('run("sh", "-c", "sleep 1000; true")', most_s=3))

    assert reason == "start took longer than 3 s"
    wait_until(lambda: not is_running(int(pid)), "the end of the shell")


def test_what_cleans_up_is_given_up_too() -> None:
    """The connection plugin's own end may go to the same host."""
    body = """
        try:
            run("sleep", "1000")
        finally:
            run("sleep", "1000")
    """
    begin = time.monotonic()
    first, second, reason, _ = _read(_watch(body.strip(), most_s=3))

    assert reason == "start took longer than 3 s"
    assert time.monotonic() - begin < LIMIT_S
    wait_until(lambda: not any(map(is_running, map(int, (first, second)))), "the end of both")


def test_a_host_that_floods_is_given_up() -> None:
    """Long before memory is full, whatever the connection plugin makes of what it reads."""
    flood = 'run("head", "-c", "4000000000", "/dev/zero")'
    pid, reason, memory = _read(_watch(flood, most_bytes=1048576))

    assert reason == "start printed more than 1 MiB"
    assert int(memory) < 600
    wait_until(lambda: not is_running(int(pid)), "the end of the flood")


def test_what_is_a_little_too_much_is_too_much() -> None:
    """The memory that it took is not noticed, and its size is."""
    _, reason, _ = _read(
        _watch('watched.check_size(len(run("echo")) * 1048577)', most_bytes=1048576)
    )

    assert reason == "start printed more than 1 MiB"


def test_what_stays_below_its_limits_is_left_alone() -> None:
    """Nothing is raised, and a later signal is nobody's."""
    printed = _read(_watch('print(len(run("head", "-c", "100000", "/dev/zero")))', 60, 1048576))

    assert printed[1] == "100000"
    assert len(printed) == 3


def test_a_worker_ends_with_its_play() -> None:
    """ansible-playbook was killed: the worker ends, and the connection that it waits for."""
    play = _watch('run("sleep", "1000")', within=("sh", "-c", '"$@" & wait', "sh"))
    assert play.stdout is not None
    pid = int(play.stdout.readline())
    play.kill()

    # What waited for the connection may come to its last line in the moment between both ends.
    assert not [line for line in _read(play) if not line.isdigit()]
    wait_until(lambda: not is_running(pid), "the end of the connection")
