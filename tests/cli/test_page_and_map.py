"""`-o html`, `-o map` and `--redact` as a user meets them: with `run`, and with `report` later."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, netprobe
from tests.ports import free_ports

pytestmark = pytest.mark.slow

MATRIX = """\
schema: netprobe.matrix/1
name: services
title: Services
document: {title: t, publisher: p, retrieved: 2026-11-20}
roles: {node: {}, client: {}}
requirements:
  - id: api
    from: client
    to: node
    tcp: [PORT]
    purpose: the API of acme.example
"""
INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  acme-1: {address: 127.0.0.1, roles: [client], vantage: local}
  acme-2: {address: 127.0.0.2, roles: [node], vantage: none}
"""


def test_a_run_writes_page_and_map_and_report_writes_them_again(tmp_path: Path) -> None:
    """The same bytes; for strangers without any name, while the record keeps them."""
    (tmp_path / "services.yaml").write_text(
        MATRIX.replace("PORT", str(free_ports("127.0.0.2", socket.SOCK_STREAM, 1)))
    )
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    outputs = ("-o", "html=run.html", "-o", "map")

    done = netprobe(
        "run", "-m", "./services.yaml", "--live", *outputs, "--record", "run.jsonl", cwd=tmp_path
    )

    assert done.returncode == 1, done.stderr
    assert "client  X 1/1" in done.stdout
    page = (tmp_path / "run.html").read_text()
    assert "acme-2" in page

    again = netprobe("report", "run.jsonl", "-o", "html=again.html", "-o", "map", cwd=tmp_path)

    assert (again.returncode, again.stdout) == (1, done.stdout)
    assert (tmp_path / "again.html").read_text() == page

    strange = ("-o", "html=strange.html", "-o", "json=strange.json", "-o", "wide", "--redact")
    hidden = netprobe("report", "run.jsonl", *strange, cwd=tmp_path)

    assert hidden.returncode == 1
    assert "host-2" in hidden.stdout
    for text in (
        hidden.stdout,
        *((tmp_path / f"strange.{one}").read_text() for one in ("html", "json")),
    ):
        assert "acme" not in text
    assert "acme-2" in (tmp_path / "run.jsonl").read_text()

    words = ("run", "-m", "./services.yaml", "--live", "--redact")
    assert "acme" not in netprobe(*words, cwd=tmp_path).stdout


def test_who_asks_for_no_page_imports_none_of_it() -> None:
    """A run without these outputs is as fast as it was."""
    code = "import sys, netprobe.cli.run; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    late = ("run.html", "run.html.document", "run.map", "run.pair_map", "record.redact")
    assert not {f"netprobe.report.{name}" for name in late} & set(done.stdout.split())
