"""The page for the first day is true: every command of it runs on the demo's cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.cli import ROOT, environment
from tests.patience import PATIENCE_S

PAGE = ROOT / "docs" / "first-day.md"
PROMPT = "demo$ "
END = "=== end of a command ==="
# What differs from run to run, or would be too long to show.
LEFT_OUT = "..."


def _read_commands() -> list[tuple[str, list[str]]]:
    """Each command of the page, and the parts of its output that the page shows."""
    blocks = re.findall(
        r"^```console\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    found = []
    for block in blocks:
        for text in block.split(PROMPT)[1:]:
            command, _, output = text.partition("\n")
            shown = [_join_words(part) for part in output.split(LEFT_OUT)]
            found.append((command, [part for part in shown if part]))
    return found


def _join_words(text: str) -> str:
    """Without line breaks, which depend on how wide the reader's terminal is."""
    return " ".join(text.split())


@pytest.mark.full
@pytest.mark.needs("namespaces")
def test_every_command_of_the_first_day_prints_what_the_page_shows(
    tmp_path: Path,
) -> None:
    """From the first check to the run after the fix, in one shell of `make demo-shell`."""
    commands = _read_commands()
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
        rest = _join_words(output)
        for part in shown:
            before, found, rest = rest.partition(part)
            assert found, (
                f"{command}: the page shows {part!r}, the rest of the output is {before!r}"
            )
