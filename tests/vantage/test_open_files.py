"""Open files of a coordinator with many agents, from the command line."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment
from tests.patience import PATIENCE_S

# Three pipes each: so many do not fit into the soft limit of the tests.
HOSTS = 24
SOFT = 64
MATRIX = """\
schema: netprobe.matrix/1
name: files
title: One port everywhere
roles: {node: {description: has an agent}}
requirements:
  - {id: one, from: node, to: node, tcp: [45001], purpose: One port}
"""


def limit_files(hard: int) -> Callable[[], None]:
    """Let a child process have few open files, and raise that to ``hard`` at most."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, hard))


def run(folder: Path, hard: int) -> subprocess.CompletedProcess[str]:
    """Run local agents, every one of which is asked by the first."""
    hosts = [f"  h{n}: {{address: 127.0.88.{n}, roles: [node], vantage: local}}\n"
             for n in range(1, HOSTS + 1)]  # fmt: skip
    (folder / "m.yaml").write_text(MATRIX)
    (folder / "i.yaml").write_text(f"schema: netprobe.inventory/1\nhosts:\n{''.join(hosts)}")
    return subprocess.run(
        [*COMMAND, "run", "-m", "./m.yaml", "-i", "i.yaml", "--from", "h1", "--record", "r"],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
        timeout=PATIENCE_S, preexec_fn=limit_files(hard),
    )  # fmt: skip


@pytest.mark.slow
def test_the_soft_limit_is_raised_for_many_agents(tmp_path: Path) -> None:
    """Every agent starts, and its own listener proves every flow."""
    done = run(tmp_path, 4096)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{HOSTS - 1} flows: {HOSTS - 1} pass (0 on a refusal)" in done.stdout


@pytest.mark.slow
def test_a_hard_limit_that_is_too_small_is_one_line_before_the_first_probe(tmp_path: Path) -> None:
    """It says how many files are needed, how many there may be, and what to do."""
    done = run(tmp_path, 100)

    assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "r").exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"netprobe: {HOSTS} agents at once need 1")
    assert "open files, and this login may have 100 (ulimit -Hn): raise that limit" in line
