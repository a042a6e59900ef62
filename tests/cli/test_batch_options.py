"""Times as people give them to ``bundle``, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from netprobe.cli.given import read_seconds, read_start
from netprobe.errors import RequestError
from tests.cli.command import COMMAND, environment, netprobe

NOW = datetime(2027, 1, 31, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("14:00Z", "2027-01-31T14:00:00+00:00"),
        ("13:00Z", "2027-02-01T13:00:00+00:00"),
        ("14:00+02:00", "2027-02-01T12:00:00+00:00"),
        ("2027-02-03T04:05Z", "2027-02-03T04:05:00+00:00"),
        ("+2m", "2027-01-31T13:32:00+00:00"),
        ("+2h", "2027-01-31T15:30:00+00:00"),
    ],
)
def test_a_start_is_the_next_such_time(text: str, wanted: str) -> None:
    """Also the day after, in other zones, and so long after now."""
    assert read_start(text, NOW) == datetime.fromisoformat(wanted).timestamp()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("noon", "expected a time such as [+]10m, 14:00Z"),
        ("2027-01-30T14:00Z", "that is over"),
        ("+soon", "expected a time up to a day, such as 90s, 10m or 2h"),
        ("+0m", "expected a time up to a day"),
    ],
)
def test_other_starts_are_refused(text: str, words: str) -> None:
    """With what is wrong."""
    with pytest.raises(RequestError, match=f"^--start {re.escape(text)}: .*{words}"):
        read_start(text, NOW)


def test_spans_have_units() -> None:
    """Seconds, minutes, hours; a day at most."""
    assert [read_seconds("--window", text) for text in ("45", "90s", "10m", "2h")] == [
        45.0, 90.0, 600.0, 7200.0,
    ]  # fmt: skip
    for text in ("0", "ten", "25h", "-1s"):
        with pytest.raises(RequestError, match=r"^--window "):
            read_seconds("--window", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "./tiny.yaml"), "give --start TIME, or --no-listen"),
        (("-m", "./tiny.yaml", "--folder", "x", "--start", "14:00Z"), "leave it out with --folder"),
        (("-m", "./tiny.yaml", "--folder", "."), "exists; choose another name"),
        (("--next", "tiny.yaml"), "is no bundle"),
        (("a.npr", "-m", "./tiny.yaml"), "give --next FILE, too"),
        (("-m", "./tiny.yaml", "--per-host", "."), "--per-host .: exists; choose another name"),
        (("-m", "./tiny.yaml", "--per-host", "x", "-o", "y"), "one for all or one for each"),
    ],
)
def test_what_bundle_refuses(words: tuple[str, ...], said: str, folder: Path) -> None:
    """In one line, with exit status 2."""
    done = netprobe("bundle", *words, cwd=folder)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_bundle_is_for_its_owner_and_stays(folder: Path) -> None:
    """It holds the run's key, also where the shell made the file; a second one has its own name."""
    words = ("bundle", "-m", "./tiny.yaml", "--no-listen")
    with open(folder / "run.pyz", "wb") as file:
        subprocess.run([*COMMAND, *words], cwd=folder, env=environment(), stdout=file, check=True)
    first = (folder / "run.pyz").read_bytes()

    again = netprobe(*words, "-o", "run.pyz", cwd=folder)

    assert (folder / "run.pyz").stat().st_mode & 0o777 == 0o600
    assert (again.returncode, again.stderr) == (
        2,
        "netprobe: -o run.pyz: exists; choose another name\n",
    )
    assert (folder / "run.pyz").read_bytes() == first


@pytest.mark.slow
def test_a_window_that_is_too_short_is_a_note(folder: Path) -> None:
    """As far as the plan's cost tells; the run is written all the same."""
    words = ("bundle", "-m", "./tiny.yaml", "--no-listen", "-o")

    short = netprobe(*words, "short.pyz", "--window", "1", cwd=folder)
    long = netprobe(*words, "long.pyz", cwd=folder)

    assert (short.returncode, long.returncode) == (0, 0)
    assert "s, and --window gives it 1 s: what is not asked by then" in short.stderr
    assert "--window" not in long.stderr


@pytest.mark.slow
def test_a_run_with_a_file_for_each_host_stays_so(folder: Path) -> None:
    """Its plan merges, its next round has a file for each host too, and no other file does."""
    words = ("bundle", "-m", "./tiny.yaml", "--no-listen", "--per-host", "run")
    assert netprobe(*words, cwd=folder).returncode == 0
    names = {path.name for path in (folder / "run").iterdir()}
    assert "plan.pyz" in names
    assert len(names) > 1

    again = netprobe("bundle", "--next", "run/plan.pyz", cwd=folder)
    other = netprobe("merge", f"run/{min(names - {'plan.pyz'})}", cwd=folder)

    assert (again.returncode, again.stdout) == (2, "")
    assert "this run has a file for each host, and so has its next round" in again.stderr
    assert (other.returncode, other.stdout) == (2, "")
    assert "is for a host; give the plan.pyz" in other.stderr


@pytest.mark.slow
def test_files_of_hosts_carry_a_run_out(folder: Path) -> None:
    """Each host runs its own, and the plan merges what they wrote; nothing is said of trust."""
    words = ("bundle", "-m", "./tiny.yaml", "--no-listen", "--per-host", "run")
    assert netprobe(*words, cwd=folder).returncode == 0
    for name in ("here", "gone"):
        done = subprocess.run(
            [sys.executable, f"run/{name}.pyz", "--host", name, "--out", "."], cwd=folder,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stderr
        assert f", round 1, {name}: " in done.stdout

    merged = netprobe("merge", "run/plan.pyz", ".", "-o", "text", "-o", "json=r.json", cwd=folder)

    # Without a recorder refusals of a machine's own pass.
    assert merged.returncode in (0, 1, 3), merged.stderr
    report = json.loads((folder / "r.json").read_text())
    assert {host["name"]: host["state"] for host in report["hosts"]} == {
        "here": "agent", "gone": "agent",
    }  # fmt: skip
    assert report["trust"] is None
    assert "TRUST" not in merged.stdout
