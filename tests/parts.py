"""Run pytest in two parts where a user namespace has rights that this process lacks.

    python -m tests.parts PYTEST-WORDS...

Tests that need such a right run in the namespace, all others outside. The last lines say for each
reason to skip tests how many they are, and what would make them run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from tests.lab import userns
from tests.needs import APART, SKIPS, report_skips
from tests.rights import missing_rights


def main(words: list[str]) -> int:
    """Run it; pytest's exit status, of two parts the worse one."""
    command = [sys.executable, "-m", "pytest", *words]
    apart = rights_of_a_namespace()
    if not apart:
        return subprocess.run(command, check=False).returncode
    print(
        f"This login lacks {', '.join(apart)}: tests that need them run in a user namespace.",
        flush=True,
    )
    return _run_parts([command, userns.command_inside(command)], apart)


def rights_of_a_namespace() -> list[str]:
    """The rights that this process lacks and the root of a user namespace has."""
    missing = missing_rights()
    if not missing:
        return []
    ask = userns.command_inside([sys.executable, "-m", "tests.rights"])
    done = subprocess.run(ask, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return []
    there = {line.partition(":")[0] for line in done.stdout.splitlines()}
    return [name for name in missing if name not in there]


def _run_parts(parts: list[list[str]], apart: list[str]) -> int:
    with tempfile.NamedTemporaryFile("r") as notes:
        environment = dict(os.environ) | {APART: ",".join(apart), SKIPS: notes.name}
        statuses = []
        for part in parts:
            statuses.append(subprocess.run(part, env=environment, check=False).returncode)
            if statuses[-1] == pytest.ExitCode.INTERRUPTED:
                break
        report_skips(notes.read().splitlines(), print)
    ran = [status for status in statuses if status != pytest.ExitCode.NO_TESTS_COLLECTED]
    return max(ran, default=pytest.ExitCode.NO_TESTS_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
