"""A waiver takes a requirement out of the exit status until its last day, and not longer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.command import netprobe

SITE = """\
schema: netprobe.matrix/1
extends: ./tiny.yaml
requirements:
  - {{id: closed, from: node, to: node, tcp: [{port}], expect: denied}}
waive: {{closed: "the old console, till {until}"}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("until", "status"), [("2020-02-29", 1), ("2999-12-31", 0)])
def test_last_day(folder: Path, until: str, status: int) -> None:
    """Behind its last day a waiver is told as expired, and what it covered decides again."""
    with socket.create_server(("127.0.0.9", 0)) as live:
        port = live.getsockname()[1]
        (folder / "site.yaml").write_text(SITE.format(port=port, until=until))
        only = ("--only", "closed", "--from", "here", "--to", "gone")
        done = netprobe("run", "-m", "./site.yaml", *only, cwd=folder)

    assert done.returncode == status
    note = f"the waiver of closed expired on {until}; it decides again (the old console)"
    assert (note in done.stdout) == (status == 1)
    assert done.stdout.splitlines()[1].startswith("EXPOSED") == (status == 1)
    assert ("waived: the old console" in done.stdout) == (status == 0)
