"""`make compose` that fails says why in its last line: of a long log often only the end is kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "compose" / "try.sh"
# A docker command as far as the script asks it; one of its answers is bad.
DOCKER = """#!/bin/sh
case "$*" in
*"compose build"*) {build} ;;
*netprobe*) echo BLOCKED; {run} ;;
*nft*) echo "tcp dport 53 counter packets 3 drop"; {nft} ;;
*check.py*) {check} ;;
*logs*) for n in 1 2 3; do echo "master-0 | a line of a machine"; done ;;
*"ps --quiet"*) ;;
*) echo docker ;;
esac
"""
GOOD = {"build": "true", "run": "exit 1", "nft": "true", "check": "echo all verdicts are right"}


def _try(folder: Path, **answers: str) -> tuple[int, list[str]]:
    docker = folder / "docker"
    docker.write_text(DOCKER.format(**{**GOOD, **answers}))
    docker.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    environment.pop("NETPROBE_DOCKER_ENGINE", None)
    done = subprocess.run(
        [SCRIPT], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("step", "bad", "end"),
    [
        ("build", "echo no space left; exit 1",
         ["no space left", "compose: FAILED: docker compose build"]),
        ("run", "echo a bug >&2; exit 4",
         ["a bug",
          "compose: FAILED: netprobe run --matrix deckhouse-nodes ended with 4, expected 1"]),
        ("nft", 'echo "udp dport 8472 counter packets 0 drop"',
         ["udp dport 8472 counter packets 0 drop",
          "compose: FAILED: these rules of the firewall met no packet"]),
        ("check", "echo missing: tcp 53; exit 1",
         ["missing: tcp 53", "compose: FAILED: netprobe did not report what the firewall does"]),
    ],
)  # fmt: skip
def test_the_last_lines_say_what_failed(
    tmp_path: Path, step: str, bad: str, end: list[str]
) -> None:
    """Behind the logs of the machines and the way down stand what was found and what failed."""
    status, lines = _try(tmp_path, **{step: bad})

    assert status == 1
    assert lines[-2:] == end
    assert any(line.startswith("compose: taken down") for line in lines) == (step != "build")


def test_a_good_end(tmp_path: Path) -> None:
    """Nothing is repeated where nothing failed."""
    status, lines = _try(tmp_path)

    assert status == 0
    assert lines[-2].startswith("COMPOSE OK: ")
    assert lines[-1].startswith("compose: taken down")
