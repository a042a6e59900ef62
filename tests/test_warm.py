"""A command that has imported netprobe already does what a fresh one does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment
from tests.warm import run_warm

# With a variable, a status, a folder, and streams of its own.
CASES: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (("matrix", "list"), {}),
    (("plan", "--matrix", "no-such"), {}),
    (("check", "here.yaml"), {}),
    (("check",), {"NETPROBE_INVENTORY": "here.yaml"}),
    (("plan", "--matrix", "dce", "--count"), {"NETPROBE_DEBUG": "1"}),
)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "variables"), CASES)
def test_a_warm_start_changes_nothing(
    words: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    """The same streams and the same status, in the same folder."""
    (tmp_path / "here.yaml").write_text("schema: netprobe.inventory/1\nhosts: {}\n")
    env = environment(**variables)
    fresh = subprocess.run(
        [*COMMAND, *words], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    warm = run_warm(words, env, tmp_path, 60.0)

    assert (warm.returncode, warm.stdout, warm.stderr) == (
        fresh.returncode, fresh.stdout, fresh.stderr,
    )  # fmt: skip


def test_who_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A command that waits for its input for ever is killed, and its asker gets the error."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(subprocess.TimeoutExpired):
        run_warm(("check", "./fifo"), environment(), tmp_path, 0.5)
