"""The page for the first day is true: every command of it runs on the demo's cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.cli import ROOT, environment
from tests.lab.printed import check_output, read_commands
from tests.patience import PATIENCE_S

PAGE = ROOT / "docs" / "first-day.md"
PROMPT = "demo$ "
END = "=== end of a command ==="


@pytest.mark.full
@pytest.mark.needs("namespaces")
def test_every_command_of_the_first_day_prints_what_the_page_shows(
    tmp_path: Path,
) -> None:
    """From the first check to the run after the fix, in one shell of `make demo-shell`."""
    commands = read_commands(PAGE, PROMPT)
    typed = "".join(
        f"{command} 2>&1; status=$?; echo '{END}'; (exit $status)\n" for command, _ in commands
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "demo" / "shell.py"), str(tmp_path)],
        input=typed,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=10 * PATIENCE_S,
        check=True,
    )
    outputs = done.stdout.split(f"{END}\n")

    assert len(commands) > 10
    for (command, shown), output in zip(commands, outputs, strict=False):
        check_output(command, shown, output)
