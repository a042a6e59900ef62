"""A run that a signal ends half-way keeps what was answered, also beside a silent port."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.cli import COMMAND, environment, netprobe
from tests.lab.netlab import Lab, wait_for
from tests.lab.test_truth import table
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.lab

SILENT = 2150
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "both-ways",
    "title": "A range, both ways",
    "roles": {"node": {}},
    "requirements": [{"id": "range", "from": "node", "to": "node", "tcp": ["2000-2299"]}],
}
# All but the silent port, both ways.
PASSING = {(name, port) for name in "ab" for port in range(2000, 2300) if port != SILENT}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts, and a firewall between them that drops one port of the range."""
    with Lab() as made:
        router = made.router("fw", "10.99.0.1")
        for at, name in enumerate("ab", start=1):
            made.host(name, router, f"10.99.{at}.2")
        made.wait_until_ready()
        router.nft(table("filter hook forward priority 0", "wall", f"tcp dport {SILENT} drop"))
        made.inventory({"a": ["node"], "b": ["node"]})
        made.write("matrix.yaml", yaml.safe_dump(MATRIX))
        yield made


def _words(lab: Lab) -> list[str]:
    matrix, inventory = lab.folder / "matrix.yaml", lab.folder / "inventory.yaml"
    return ["run", "-m", str(matrix), "-i", str(inventory), "-o", "json"]


def _passes(results: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Each port of which a result passes: early answers cut a range anywhere."""
    passing = [one for one in results if one["verdict"] == "pass"]
    ports = ((one["source"], range(one["port"], one["end_port"] + 1)) for one in passing)
    return {(source, port) for source, some in ports for port in some}


def _recorded(record: Path) -> set[tuple[str, int]]:
    lines = record.read_text().splitlines() if record.exists() else []
    return _passes([one for one in map(json.loads, lines[1:]) if "verdict" in one])


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.full)
                      for one in (signal.SIGTERM, signal.SIGHUP))],
)  # fmt: skip
def test_a_signal_keeps_what_was_answered(lab: Lab, number: signal.Signals) -> None:
    """All but the silent port is in record and report at once, and only that one is asked again."""
    record = lab.folder / f"{number}.jsonl"
    run = subprocess.Popen(
        # nohup makes its children ignore SIGHUP: this process may be one.
        ["env", "--default-signal", *COMMAND, *_words(lab), "--timeout", "60",
         "--record", str(record)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        wait_for(lambda: _recorded(record) == PASSING or run.poll() is not None, "passes")
        run.send_signal(number)
        stdout, stderr = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        run.wait()

    results = json.loads(stdout)["results"]
    assert run.returncode == 130, stderr
    assert _passes(results) == PASSING
    rest = [one for one in results if one["verdict"] != "pass"]
    assert {(one["port"], one["verdict"], one["reason"]) for one in rest} == {
        (SILENT, "not-tested", "stopped")
    }
    done = netprobe(*_words(lab), "--resume", str(record))
    assert done.status == 1
    assert _passes(done.results) == PASSING
    assert {(one["port"], one["verdict"]) for one in done.results if one["verdict"] != "pass"} == {
        (SILENT, "blocked")
    }
