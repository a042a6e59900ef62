"""`make compose` without an engine: it says SKIPPED and why, and never that it passed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "compose" / "try.sh"


def _try(folder: Path, front: str | None, **commands: str) -> tuple[int, str]:
    """Status and output of the script, where only these commands and the basic ones exist."""
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    for name in ("bash", "dirname", "env"):
        path = next(Path(p) / name for p in ("/usr/bin", "/bin") if (Path(p) / name).exists())
        (folder / name).symlink_to(path)
    environment = {"PATH": str(folder), "HOME": os.environ.get("HOME", "/")}
    if front is not None:
        environment["NETPROBE_DOCKER_ENGINE"] = front
    done = subprocess.run(
        [SCRIPT], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stdout


def test_no_docker(tmp_path: Path) -> None:
    """Without a docker command the reason is that."""
    assert _try(tmp_path, None) == (
        0,
        "SKIPPED: make compose: there is no docker command on this machine\n",
    )


def test_no_answer(tmp_path: Path) -> None:
    """With a docker command and no engine the reason is docker's own."""
    docker = 'echo "Cannot connect to the Docker daemon" >&2; exit 1'
    assert _try(tmp_path, None, docker=docker) == (
        0,
        "SKIPPED: make compose: no Docker engine answers: Cannot connect to the Docker daemon\n",
    )


def test_no_engine_to_be_had(tmp_path: Path) -> None:
    """The command in front says with 75 that it can give no engine."""
    status, output = _try(tmp_path, "engine now", engine="exit 75")
    assert status == 0
    assert output == (
        "SKIPPED: make compose: no engine: engine now could start none (its words are above)\n"
    )


def test_any_other_end_is_the_end(tmp_path: Path) -> None:
    """The command in front gets the script as its last word, and its failure is a failure."""
    status, output = _try(tmp_path, "engine now", engine='echo "$@"; exit 3')
    assert (status, output) == (3, f"now {SCRIPT}\n")
