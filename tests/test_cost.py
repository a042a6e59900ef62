"""What a command costs is its own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.cost import run_measured

LARGE = 100 << 20
OWN = 40 << 20


def test_memory_of_the_test_process_does_not_count() -> None:
    """Only that of the command, and not what this process has or had."""
    large = b"x" * LARGE
    small = run_measured([sys.executable, "-c", "pass"])
    larger = run_measured([sys.executable, "-c", f"b'x' * {OWN}"])
    inherited = subprocess.Popen([sys.executable, "-c", "pass"])
    _, _, used = os.wait4(inherited.pid, 0)
    inherited.returncode = 0

    assert used.ru_maxrss * 1024 > len(large)
    assert small.kib * 1024 < LARGE
    assert OWN < larger.kib * 1024 < small.kib * 1024 + 2 * OWN
    assert small.seconds > 0


def test_its_status_and_its_streams_are_those_of_the_command() -> None:
    """As if it had been started without the small process between."""
    assert run_measured(["/bin/sh", "-c", "exit 3"]).status == 3
    assert run_measured(["/bin/sh", "-c", "kill -9 $$"]).status == -9
    read, write = os.pipe()
    with os.fdopen(read) as out, os.fdopen(write, "w") as into:
        run_measured(["/bin/sh", "-c", "echo hello"], stdout=into)
        into.close()
        assert out.read() == "hello\n"
