"""``netprobe history``: runs become looks, and looks outages."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.report.run import REPORTS
from tests.cli.command import netprobe
from tests.report.samples import BLOCKED, INFO, PASSED, flow, report_of

# They start whole commands.
pytestmark = pytest.mark.slow


def write_run(folder: Path, name: str, begun: str, *results: object, **changes: Any) -> None:
    """A JSON report of a run that took 20 s."""
    info = replace(INFO, **{"started_at": begun, "elapsed_s": 20.0, "findings": None, **changes})
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
        "1 outage, 0 open; 3 looks from 2026-11-20 08:00:00Z to 2026-11-20 10:00:21Z"
    )
    assert (
        "began between 2026-11-20 08:00:00Z and 2026-11-20 09:00:21Z, "
        "ended between 2026-11-20 09:00:00Z and 2026-11-20 10:00:21Z; seen by 1 look"
    ) in shown.stdout
    assert outage["last_good"] == "2026-11-20T08:00:00.000000Z"
    assert outage["first_good"] == "2026-11-20T10:00:21.000000Z"
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
    never = netprobe("history", "--flow", "master-0:master-2:tcp/99", cwd=three)
    refused = "no look of netprobe.db asked this flow"
    assert (never.returncode, never.stdout) == (2, "")
    assert never.stderr == f"netprobe: --flow master-0:master-2:tcp/99: {refused}\n"


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
        (
            "history",
            "--flow",
            "a:b:tcp",
        ): "--flow a:b:tcp: expected SOURCE:DESTINATION:PROTOCOL/PORT",
        ("history", "--flow", "a:b:tcp/99999"): "--flow a:b:tcp/99999: expected SOURCE",
        ("history", "--flow", ""): "--flow : expected SOURCE",
        ("history", "--since", ""): "--since : expected how long ago",
        ("history", "--when", ""): "--when : expected how long ago",
        ("history", "--since", "999999w"): "--since 999999w: expected how long ago",
        ("history", "--when", "9d", "--since", "9d"): "give it without --since and --flow",
        ("history", "--history", "h", "add", "1.json"): "--history stands before 'add'",
        ("history", "-o", "json=netprobe.db"): "which would be overwritten",
        ("history", "--when", "1d", "-o", "json=netprobe.db"): "which would be overwritten",
        ("history", "-o", "wide"): "-o wide: no such format, expected one of text, json, csv, html",
    }
    for words, expected in cases.items():
        done = netprobe(*words, cwd=three)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert expected in done.stderr, words
        assert not (three / "netprobe.db").exists()


def test_what_since_leaves_out_is_not_counted(three: Path) -> None:
    """Looks and their time are those since then; where there are none, the page is whole too."""
    netprobe("history", "add", "1.json", "2.json", cwd=three)
    words = ("--since", "2026-11-20T08:30:00Z")
    found = json.loads(netprobe("history", *words, "-o", "json", cwd=three).stdout)
    later = netprobe("history", "--since", "2030-01-01", "-o", "json", cwd=three)
    page = netprobe("history", "--since", "2030-01-01", "-o", "html", cwd=three).stdout

    assert (found["looks"], found["begin"]) == (1, "2026-11-20T09:00:00.000000Z")
    none = json.loads(later.stdout)
    assert (none["looks"], none["begin"], len(none["outages"])) == (0, None, 1)
    assert "0 looks<" in page
    assert 'width="-' not in page


def test_a_flow_that_was_never_seen_good(three: Path) -> None:
    """The first look that asked it may be a later one: it says no more than that."""
    netprobe("history", "add", "2.json", cwd=three)

    assert "began before 2026-11-20 09:00:21Z, no look before saw it good, still there" in (
        netprobe("history", cwd=three).stdout
    )


def read_times(folder: Path, *names: str) -> list[tuple[object, ...]]:
    """The four times of the outages that these files give, without their day."""
    assert netprobe("history", "add", *names, cwd=folder).returncode == 0
    found = json.loads(netprobe("history", "-o", "json", cwd=folder).stdout)["outages"]
    names_of_times = ("last_good", "first_bad", "last_bad", "first_good")
    return [tuple(one[name] and one[name][11:19] for name in names_of_times) for one in found]


def test_what_a_run_did_not_see_itself(three: Path) -> None:
    """What it kept of a run that it retried or resumed."""
    day, kept = "2026-11-20T", "kept, not probed again"
    write_run(
        three, "retry.json", f"{day}09:20:00Z", PASSED,
        earlier=f"RETRIED: 1 pass of 1.json (begun {day}08:00:00Z) {kept}",
    )  # fmt: skip
    write_run(
        three, "resume.json", f"{day}09:30:00Z", PASSED,
        earlier=f"RESUMED: 1 pass of 1.json (begun {day}08:00:00Z) {kept}; and so on",
    )  # fmt: skip
    names = ("1.json", "2.json", "retry.json", "resume.json")

    assert read_times(three, *names) == [("08:00:00", "09:00:21", "09:00:00", None)]
    write_run(
        three, "mended.json", f"{day}09:40:00Z", PASSED,
        earlier=f"RETRIED: 1 pass of 2.json (begun {day}09:00:00Z) {kept}",
    )  # fmt: skip
    assert read_times(three, "mended.json") == [("08:00:00", "09:00:21", "09:00:00", "09:40:21")]


def test_a_run_without_an_end(three: Path) -> None:
    """It may have seen a failure as late as its file was written."""
    write_run(three, "killed.json", "2026-11-20T09:00:00Z", BLOCKED, elapsed_s=0.0, complete=False)
    written = datetime(2026, 11, 20, 9, 5, tzinfo=UTC).timestamp()
    os.utime(three / "killed.json", (written, written))

    assert read_times(three, "1.json", "killed.json") == [
        ("08:00:00", "09:05:00", "09:00:00", None)
    ]


def test_times_that_no_calendar_has(three: Path) -> None:
    """A run that lasts for ever, and one that began before there were years: one line each."""
    write_run(three, "long.json", "2026-11-20T09:00:00Z", BLOCKED, elapsed_s=1e15)
    write_run(three, "early.json", "0001-01-01T00:00:00+14:00", BLOCKED)
    for name in ("long.json", "early.json"):
        done = netprobe("history", "add", name, cwd=three)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"{name}: the run does not say when it " in done.stderr


def test_the_page_has_a_lane_for_each_outage(three: Path) -> None:
    """It loads nothing and runs no program, and says all in words too."""
    netprobe("history", "add", "1.json", "2.json", "3.json", cwd=three)
    page = netprobe("history", "-o", "html", cwd=three).stdout

    assert page.isascii()
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert "began between" not in page
    assert "Began between 2026-11-20 08:00:00Z and 2026-11-20 09:00:21Z, ended between" in page
