"""A host that lets the agent open only few files: said, slower, and no less true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import netprobe

TINY = ("-m", "./tiny.yaml")
INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {{address: 127.0.0.1, roles: [node], vantage: local}}
  tight:
    address: 127.0.0.9
    roles: [node]
    vantage: {{command: [sh, -c, 'ulimit -n {files}; exec "$@"', sh]}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("files", [32, 100])
def test_listeners_are_opened_a_few_at_a_time(folder: Path, files: int) -> None:
    """Every flow to that host is proved by our listener, none by a refusal."""
    (folder / "inventory.yaml").write_text(INVENTORY.format(files=files))
    done = netprobe("run", *TINY, "-o", "text", "-o", "json=run.json", cwd=folder)
    run = json.loads((folder / "run.json").read_text())

    found = {(one["verdict"], one["proof"], one["reason"]) for one in run["results"]}
    assert found == {("pass", "nonce", "nonce-answer")}, done.stdout
    assert run["summary"]["pass"] == 92
    assert f"tight: only {files} files may be open at once (ulimit -n)" in done.stdout
    assert "here: only" not in done.stdout


@pytest.mark.slow
def test_check_hosts_says_so(folder: Path) -> None:
    """Before the run, too."""
    (folder / "inventory.yaml").write_text(INVENTORY.format(files=64))
    done = netprobe("check", "--hosts", *TINY, cwd=folder)

    assert done.returncode == 0
    assert "tight: only 64 files may be open at once (ulimit -n)" in done.stdout
