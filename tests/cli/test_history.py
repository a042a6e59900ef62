"""``netprobe history``: runs become looks, and looks outages."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from netprobe.report.run import REPORTS
from tests.cli.command import netprobe
from tests.report.samples import BLOCKED, INFO, PASSED, flow, report_of

# They start whole commands.
pytestmark = pytest.mark.slow


def write_run(folder: Path, name: str, begun: str, *results: object) -> None:
    """A JSON report of a run that took 20 s."""
    info = replace(INFO, started_at=begun, elapsed_s=20.0, findings=None)
    stream = io.StringIO()
    REPORTS["json"](report_of(list(results), info=info), stream)  # type: ignore[arg-type]
    (folder / name).write_text(stream.getvalue(), encoding="utf-8")


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A good run, a bad one, and a good one again, in a folder."""
    other = flow(PASSED, 1, destination="master-2", address="10.0.0.12")
    write_run(tmp_path, "1.json", "2026-11-20T08:00:00Z", PASSED, other)
    write_run(tmp_path, "2.json", "2026-11-20T09:00:00Z", BLOCKED, other)
    write_run(tmp_path, "3.json", "2026-11-20T10:00:00Z", PASSED, other)
    return tmp_path


def test_runs_become_outages(three: Path) -> None:
    """Added in any order, by hand: the interval is as wide as the runs are apart."""
    added = netprobe("history", "add", "2.json", "1.json", "3.json", cwd=three)
    again = netprobe("history", "add", "3.json", cwd=three)
    shown = netprobe("history", cwd=three)
    (outage,) = json.loads(netprobe("history", "-o", "json", cwd=three).stdout)["outages"]

    assert added.returncode == 0
    assert added.stderr.splitlines()[0] == (
        "netprobe: 2.json: a look of 2026-11-20 09:00:00Z, 1 finding"
    )
    assert "3.json is in netprobe.db already" in again.stderr
    assert shown.stdout.splitlines()[0] == (
        "1 outage, 0 open; 3 looks from 2026-11-20 08:00:00Z to 2026-11-20 10:00:20Z"
    )
    assert (
        "began between 2026-11-20 08:00:00Z and 2026-11-20 09:00:20Z, "
        "ended between 2026-11-20 09:00:00Z and 2026-11-20 10:00:20Z; seen by 1 look"
    ) in shown.stdout
    assert outage["last_good"] == "2026-11-20T08:00:00.000000Z"
    assert outage["first_good"] == "2026-11-20T10:00:20.000000Z"
    assert [(one["destination"], one["port"]) for one in outage["members"]] == [("master-1", 2379)]


def test_the_report_of_a_moment(three: Path) -> None:
    """It is that run's, with its exit status; before the first look there is none."""
    netprobe("history", "add", "1.json", "2.json", "3.json", cwd=three)
    then = netprobe("history", "--when", "2026-11-20T09:30Z", "-o", "json", cwd=three)
    early = netprobe("history", "--when", "2026-11-20T07:30Z", cwd=three)

    assert then.returncode == 1
    assert json.loads(then.stdout)["started_at"] == "2026-11-20T09:00:00Z"
    assert early.returncode == 2
    assert "netprobe.db has no look at 2026-11-20T07:30:00Z or before" in early.stderr


def test_a_part_of_the_history(three: Path) -> None:
    """``--since`` keeps what overlaps, ``--flow`` what has that flow."""
    netprobe("history", "add", "1.json", "2.json", "3.json", cwd=three)
    cases = {
        ("--since", "2026-11-20T10:00:00Z"): 1,
        ("--since", "2026-11-20T10:01:00Z"): 0,
        ("--flow", "master-0:master-1:tcp/2379"): 1,
        ("--flow", "master-0:master-2:tcp/2379"): 0,
    }
    for words, count in cases.items():
        table = netprobe("history", *words, "-o", "csv", cwd=three).stdout.splitlines()
        assert len(table) == 1 + count, words


def test_wrong_requests_are_one_line(three: Path) -> None:
    """No history, no run, no time, no flow: exit 2, and nothing is made or changed."""
    (three / "text").write_text("hello\n")
    cases = {
        ("history",): "netprobe.db: there is no history",
        ("history", "add", "1.json", "text"): "text:1:1: ",
        ("history", "add", "gone.json"): "gone.json: this is no file",
        ("history", "--history", "text"): "text: this is no history of netprobe",
        ("history", "--since", "yesterday"): "--since yesterday: expected how long ago",
        ("history", "--flow", "a->b"): "--flow a->b: expected SOURCE:DESTINATION:PROTOCOL/PORT",
        ("history", "-o", "wide"): "-o wide: no such format, expected one of text, json, csv, html",
    }
    for words, expected in cases.items():
        done = netprobe(*words, cwd=three)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert expected in done.stderr, words
        assert not (three / "netprobe.db").exists()


def test_the_page_has_a_lane_for_each_outage(three: Path) -> None:
    """It loads nothing and runs no program, and says all in words too."""
    netprobe("history", "add", "1.json", "2.json", "3.json", cwd=three)
    page = netprobe("history", "-o", "html", cwd=three).stdout

    assert page.isascii()
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert "began between" not in page
    assert "Began between 2026-11-20 08:00:00Z and 2026-11-20 09:00:20Z, ended between" in page
