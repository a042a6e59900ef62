"""``accept``, ``--accepted``, ``--baseline`` and ``diff``, as a user types them."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from netprobe.cli.main import status_of
from tests.cli.command import COMMAND, environment, netprobe
from tests.cli.test_retry import BROKEN, GOOD, INVENTORY, MATRIX, MENDED, CountingServer

# They start whole commands.
pytestmark = pytest.mark.slow

LIVE = ("-m", "./services.yaml", "--live")
TODAY = date.today()
SOON = (TODAY + timedelta(30)).isoformat()
WHO = ("--reason", "waits for the vendor", "--owner", "team-a", "--ticket", "CHG-77")
CONSENT = ("--finding", "1", *WHO, "--until", SOON)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, run.json and record r: one flow passes, two of one finding fail."""
    folder = tmp_path_factory.mktemp("accept")
    (folder / "services.yaml").write_text(MATRIX)
    (folder / "inventory.yaml").write_text(INVENTORY)
    server = CountingServer(GOOD)
    done = netprobe("run", *LIVE, "--record", "r", "-o", "json=run.json", cwd=folder)
    server.close()
    assert done.returncode == 1, done.stderr
    assert [one["verdict"] for one in read(folder / "run.json")["results"]] == [
        "pass",
        "blocked",
        "blocked",
    ]
    return folder


@pytest.fixture
def folder(before: Path, tmp_path: Path) -> Path:
    """A copy of it, for tests that leave something."""
    for name in ("services.yaml", "inventory.yaml", "run.json", "r"):
        (tmp_path / name).write_bytes((before / name).read_bytes())
    return tmp_path


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text())


def append(folder: Path, *words: str) -> str:
    """``netprobe WORDS >> accepted.yaml``, and what is said meanwhile."""
    with (folder / "accepted.yaml").open("a") as stream:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=folder,
            env=environment(),
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stderr


def run_served(folder: Path, *words: str, ports: tuple[int, ...] = (GOOD,)) -> Any:
    """A run while these ports are served: its end, its first line, and its report."""
    servers = [CountingServer(port) for port in ports]
    done = netprobe("run", *LIVE, *words, "-o", "text", "-o", "json=now.json", cwd=folder)
    for server in servers:
        server.close()
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout, read(folder / "now.json")


def test_numbers_of_findings_belong_to_the_file(folder: Path) -> None:
    """A record keeps its findings at its end, and every verb has these numbers."""
    lines = (folder / "r").read_text().splitlines()
    end = json.loads(lines[-1])["end"]
    (kept,) = end["findings"]
    assert [(one["requirement"], one["matrix"]) for one in kept["members"]] == [
        ("mended", "services"), ("broken", "services"),
    ]  # fmt: skip
    for each, number in ((kept, 7), (read(folder / "run.json")["findings"][0], 1)):
        assert each["number"] == (1 if number == 7 else number)
    kept["number"] = 7
    (folder / "r").write_text(
        "".join(f"{line}\n" for line in (*lines[:-1], json.dumps({"end": end})))
    )

    asked = ("accept", "r", "--finding", "7", *WHO, "--until", SOON)
    assert netprobe("accept", "r", *CONSENT, cwd=folder).returncode == 2
    assert netprobe(*asked, cwd=folder).stdout.count("finding 7 of r: ") == 1
    netprobe("report", "r", "-o", "json=again.json", "-o", "text", cwd=folder)
    assert [one["number"] for one in read(folder / "again.json")["findings"]] == [7]
    assert netprobe("accept", "again.json", *asked[2:], cwd=folder).returncode == 0
    rules = netprobe("request", "r", "-o", "json", cwd=folder).stdout
    assert {tuple(one["findings"]) for one in json.loads(rules)["rules"]} <= {(7,)}


def test_the_way_round(folder: Path) -> None:
    """Accepted into a new file and appended to it, the run passes; what is open is not accepted."""
    for until in (TODAY.isoformat(), SOON):
        said = append(folder, "accept", "r", "--finding", "1", *WHO, "--until", until)
        assert said == f"netprobe: 2 flows accepted until {until} (2 entries)\n"
    text = (folder / "accepted.yaml").read_text()
    text = text.replace(TODAY.isoformat(), (TODAY - timedelta(1)).isoformat())
    (folder / "accepted.yaml").write_text(text)
    status, stdout, report = run_served(folder, "--accepted", "accepted.yaml", "--record", "new")
    verdicts = {
        one["requirement"]: (one["verdict"], "accepted" in one) for one in report["results"]
    }

    assert text.count("schema: netprobe.accepted/1\naccepted:\n") == 1
    assert (status, stdout.splitlines()[0]) == (
        0,
        f"PASS: the other required flow is as it should be; 2 accepted until {SOON} did not pass",
    )
    assert verdicts == {
        "good": ("pass", False), "mended": ("blocked", True), "broken": ("blocked", True),
    }  # fmt: skip
    assert report["summary"]["accepted"] == 2
    assert [one["state"] for one in report["accepted"]] == ["expired"] * 2 + ["active"] * 2
    again = netprobe("report", "new", cwd=folder)
    assert (again.returncode, again.stdout) == (0, stdout)

    # The service comes: its entry is needless, or too wide where another flow shares it.
    status, stdout, report = run_served(folder, "--accepted", "accepted.yaml", ports=(GOOD, MENDED))
    assert status == 0
    assert "STALE" in stdout or "TOO WIDE" in stdout
    # Another one fails: nobody has accepted that.
    status, stdout, report = run_served(folder, "--accepted", "accepted.yaml", ports=())
    assert status == 1
    assert stdout.startswith("BLOCKED: 1 blocked of 1 required flow, 1 finding; 2 accepted until")

    assert netprobe("check", "accepted.yaml", cwd=folder).returncode == 0


def test_the_end(folder: Path) -> None:
    """On its last day it holds; when that is over, its flows count again. --accepted decides."""
    for until, status, words in (
        (TODAY, 0, "expiring until"),
        (TODAY - timedelta(1), 1, "EXPIRED on"),
    ):
        done = netprobe("accept", "run.json", *CONSENT, cwd=folder)
        text = re.sub('since: ".*"', f'since: "{TODAY - timedelta(9)}"', done.stdout)
        (folder / "accepted.yaml").write_text(text.replace(SOON, until.isoformat()))
        report = netprobe("report", "run.json", "--accepted", "accepted.yaml", cwd=folder)

        assert (report.returncode, words in report.stdout) == (status, True), report.stdout
    assert netprobe("report", "run.json", cwd=folder).returncode == 1


def test_what_is_kept_is_held_against_today(folder: Path) -> None:
    """--resume keeps results, never what somebody accepted then."""
    done = netprobe("accept", "run.json", *CONSENT, cwd=folder)
    (folder / "accepted.yaml").write_text(done.stdout)
    words = ("--resume", "r", "--record", "r")
    first = netprobe("run", *LIVE, *words, "--accepted", "accepted.yaml", cwd=folder)
    second = netprobe("run", *LIVE, *words, cwd=folder)

    assert (first.returncode, second.returncode) == (0, 1), first.stdout
    assert '"accepted"' not in "".join((folder / "r").read_text().splitlines()[1:4])


def test_baseline(folder: Path) -> None:
    """Only what is new since the baseline fails; the rest is told as known."""
    base = ("--baseline", "run.json")
    status, stdout, report = run_served(folder, *base, "--fail-on", "new", "--record", "same")

    assert (status, stdout.splitlines()[0]) == (
        0,
        "PASS: the other required flow is as it should be; 2 known from the baseline did not pass",
    )
    assert stdout.splitlines()[1].startswith("BASELINE: run.json (begun 20")
    assert "0 newly blocked or exposed, 2 still, 0 fixed" in stdout.splitlines()[1]
    assert [one.get("known") for one in report["results"]] == [None, "run.json", "run.json"]
    assert netprobe("report", "same", cwd=folder).returncode == 0

    status, stdout, report = run_served(folder, *base, "--fail-on", "new", ports=(BROKEN,))
    assert status == 1
    assert stdout.startswith("BLOCKED: 1 blocked of 2 required flows, 1 finding; 1 known from")
    assert "1 newly blocked or exposed, 1 still, 1 fixed" in stdout.splitlines()[1]
    assert "\nNEWLY BLOCKED OR EXPOSED (1 flow)\n" in stdout

    diff = netprobe(
        "diff", "run.json", "now.json", "-o", "json=d.json", "-o", "markdown", cwd=folder
    )
    assert diff.returncode == 1
    assert diff.stdout.startswith("# run.json to now.json\n")
    changes = read(folder / "d.json")
    assert [one["requirement"] for one in changes["worse"]] == ["good"]
    assert [one["requirement"] for one in changes["fixed"]] == ["broken"]

    status, stdout, _ = run_served(folder, *base)
    assert status == 1, "without --fail-on new every failure decides"


def test_diff_of_a_part(folder: Path) -> None:
    """A run of a part is compared with that part; what it has not is told, and is no failure."""
    part = netprobe("run", *LIVE, "--only", "broken", "-o", "json=part.json", cwd=folder)
    there = netprobe("diff", "part.json", "run.json", cwd=folder)
    back = netprobe("diff", "run.json", "part.json", cwd=folder)

    assert (part.returncode, there.returncode, back.returncode) == (1, 0, 0)
    assert "\nONLY THE LATER RUN PROBED (2 flows, 1 of them blocked or exposed)\n" in there.stdout
    assert "\nONLY THE EARLIER RUN PROBED (2 flows, 1 of them blocked or exposed)\n" in back.stdout
    assert "1 flow of both runs compared: 0 newly blocked" in back.stdout


def test_diff_of_runs_that_share_no_flow(folder: Path) -> None:
    """Whoever gives a wrong file is told so; the status stays that of earlier versions."""
    other = (folder / "run.json").read_text().replace('"services"', '"others"')
    (folder / "other.json").write_text(other)
    done = netprobe("diff", "run.json", "other.json", cwd=folder)

    assert done.returncode == 0
    assert done.stderr == (
        "netprobe: nothing is compared: both runs probed no flow in common (run.json is of "
        "services; other.json is of others); give two runs of the same matrix and hosts\n"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("accept", "run.json", *CONSENT[2:]), "Missing option '--finding'"),
        (("accept", "run.json", *CONSENT[:-2]), "Missing option '--until'"),
        (("accept", "run.json", *CONSENT, "--finding", "9"), "--finding 9: this run has "),
        (("accept", "run.json", *CONSENT, "--owner", " "), "--owner: the text is empty, expected"),
        (("accept", "run.json", *CONSENT, "--until", "31.1.2027"), "expected YYYY-MM-DD or never"),
        (("accept", "run.json", *CONSENT, "--until", "2020-01-01"), "2020-01-01: that day is over"),
        (("accept", "run.json", *CONSENT, "--until", "2999-01-01"), "365 at most (--max-acceptan"),
        (("accept", "run.json", *CONSENT, "--max-acceptance", "29d"), "29 at most (--max-accept"),
        (("accept", "run.json", *CONSENT, "--max-acceptance", "1y"), "1y: expected days, such as"),
        (("accept", "services.yaml", *CONSENT), "services.yaml:1:1: is not JSON, expected a JSON"),
        (("report", "run.json", "--accepted", "bad.yaml"), 'bad.yaml:3:5: the key "from" is miss'),
        (("run", *LIVE, "--accepted", "bad.yaml"), 'bad.yaml:3:5: the key "from" is missing, ex'),
        (("run", *LIVE, "--accepted", "none"), "none: there is no such file, expected a YAML file"),
        (("run", *LIVE, "--accepted", "services.yaml"), "services.yaml:1:9: this is a netprobe.ma"),
        (("check", "bad.yaml"), 'bad.yaml:3:5: the key "from" is missing, expected the host'),
        (("check", "--accepted", "bad.yaml"), 'bad.yaml:3:5: the key "from" is missing, expected'),
        (
            ("check", *LIVE[:2], "--accepted", "typo.yaml"),
            'typo.yaml:3:44: unknown requirement "brokn", did you',
        ),
        (("run", *LIVE, "--baseline", "bad.yaml"), "bad.yaml:1:1: is not JSON, expected a JSON r"),
        (
            ("run", *LIVE, "--baseline", "other.json"),
            "--baseline other.json: that run is of others",
        ),
        (("run", *LIVE, "--fail-on", "new"), "--fail-on new: new since when? Give --baseline RUN"),
        (
            ("run", *LIVE, "--retry", "r", "--baseline", "r"),
            "--retry and --baseline contradict each other: give one of them",
        ),
        (("diff", "run.json", "bad.yaml"), "bad.yaml:1:1: is not JSON, expected a JSON report"),
    ],
)
def test_wrong_requests(
    words: tuple[str, ...],
    problem: str,
    before: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each is exit 2 and says what is wrong, before anything is probed or written."""
    monkeypatch.chdir(before)
    (before / "bad.yaml").write_text(
        "schema: netprobe.accepted/1\naccepted:\n"
        "  - {id: a, matrix: m, requirement: r, to: a, protocol: icmp, verdict: blocked,\n"
        "     reason: r, owner: o, ticket: t, since: 2026-11-22, until: never}\n"
    )
    text = (before / "run.json").read_text().replace('"services"', '"others"')
    (before / "other.json").write_text(text)
    (before / "typo.yaml").write_text(
        "schema: netprobe.accepted/1\naccepted:\n"
        "  - {id: a, matrix: services, requirement: brokn, from: here, to: here, ports: [1],\n"
        "     reason: r, owner: o, ticket: t, since: 2026-11-22, until: never,\n"
        "     protocol: tcp, verdict: blocked}\n"
    )

    assert status_of(words) == 2
    told = capfd.readouterr()
    assert problem in told.err
    assert told.out == ""


def test_what_is_accepted_already(folder: Path) -> None:
    """Nobody accepts a finding twice, and a second file of first lines can be left out."""
    done = netprobe("accept", "run.json", *CONSENT, "--append", cwd=folder)
    assert done.stdout.startswith("  # finding 1 of run.json: ")
    (folder / "a.yaml").write_text(f"schema: netprobe.accepted/1\naccepted:\n{done.stdout}")
    report = netprobe("report", "run.json", "--accepted", "a.yaml", "-o", "json=x.json", cwd=folder)
    again = netprobe("accept", "x.json", *CONSENT, cwd=folder)

    assert report.returncode == 0
    assert again.returncode == 2
    assert "--finding 1: it does not decide the exit status anyway (accepted until " in again.stderr
    assert netprobe("request", "x.json", cwd=folder).returncode == 0
