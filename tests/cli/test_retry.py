"""``--resume`` and ``--retry``: what is kept, what is probed again, and what became of it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import netprobe
from tests.ports import free_ports

# They start whole commands, some of them many.
pytestmark = pytest.mark.slow

GOOD = free_ports("127.0.0.1", socket.SOCK_STREAM, 3)
MENDED, BROKEN = GOOD + 1, GOOD + 2

MATRIX = f"""\
schema: netprobe.matrix/1
name: services
title: Services
local: true
roles:
  node: {{description: any node}}
requirements:
  - {{id: good, from: node, to: node, tcp: [{GOOD}], purpose: Runs}}
  - {{id: mended, from: node, to: node, tcp: [{MENDED}], purpose: Runs later}}
  - {{id: broken, from: node, to: node, tcp: [{BROKEN}], purpose: Never runs}}
"""

INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {address: 127.0.0.1, roles: [node], vantage: local}
"""

LIVE = ("-m", "./services.yaml", "--live")


class CountingServer:
    """Accepts connections on a port of loopback, and counts them."""

    def __init__(self, port: int) -> None:
        self.accepted = 0
        self._socket = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while True:
                connection, _ = self._socket.accept()
                connection.close()
                self.accepted += 1
        except OSError:
            return

    def close(self) -> None:
        """End it; who waits in accept does not wake up by a close alone."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def good() -> Iterator[CountingServer]:
    """The service that runs all the time."""
    server = CountingServer(GOOD)
    yield server
    server.close()


@pytest.fixture
def mended() -> Iterator[list[CountingServer]]:
    """A place for the service that a test starts between two runs."""
    started: list[CountingServer] = []
    yield started
    for server in started:
        server.close()


@pytest.fixture
def before(tmp_path: Path, good: CountingServer) -> Path:
    """A folder with a run in it, as a.json and as record r: one passes, two are blocked."""
    (tmp_path / "services.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    done = netprobe("run", *LIVE, "--record", "r", "-o", "json=a.json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert verdicts(tmp_path / "a.json") == ["pass", "blocked", "blocked"]
    return tmp_path


def verdicts(path: Path) -> list[str]:
    """The verdicts of a JSON report, in plan order."""
    return [result["verdict"] for result in read(path)["results"]]


def read(path: Path) -> Any:
    """A JSON report."""
    return json.loads(path.read_text())


@pytest.mark.parametrize("file", ["a.json", "r"])
def test_retry_asks_what_failed(
    before: Path, good: CountingServer, mended: list[CountingServer], file: str
) -> None:
    """After a fix only what did not pass is probed; done, still blocked and the whole are told."""
    mended.append(CountingServer(MENDED))
    known = good.accepted
    words = ("--retry", file, "-o", "text", "-o", "json=b.json")
    done = netprobe("run", *LIVE, *words, cwd=before)
    first, second = done.stdout.splitlines()[:2]
    run = read(before / "b.json")

    assert done.returncode == 1
    assert first.startswith(f"RETRIED: 1 pass of {file} (begun 20")
    assert first.endswith("2 failed before: 1 pass now, 1 still blocked or exposed")
    assert second == "BLOCKED: 1 blocked of 3 required flows, 1 finding"
    assert "\nFIXED (1 flow)\n" in done.stdout
    assert "purpose   Runs later (services, mended)" in done.stdout
    assert verdicts(before / "b.json") == ["pass", "pass", "blocked"]
    assert (run["changes"]["fixed"], run["changes"]["still"], run["earlier"]) == (1, 1, first)
    assert good.accepted == known, "what passed was probed again"
    assert mended[0].accepted


def test_retry_until_all_is_done(
    before: Path, good: CountingServer, mended: list[CountingServer]
) -> None:
    """A retry's own record is retried again, into the same file; the last one is exit 0."""
    mended.append(CountingServer(MENDED))
    first = netprobe("run", *LIVE, "--retry", "r", "--record", "r", cwd=before)
    mended.append(CountingServer(BROKEN))
    second = netprobe("run", *LIVE, "--retry", "r", "--record", "r", cwd=before)
    again = netprobe("report", "r", cwd=before)

    assert (first.returncode, second.returncode, again.returncode) == (1, 0, 0)
    line = second.stdout.splitlines()[0]
    assert line.startswith("RETRIED: 2 pass of r (begun 20")
    assert line.endswith("1 failed before: 1 pass now")
    assert "\nPASS: all 3 required flows are as they should be\n" in second.stdout
    assert again.stdout.splitlines()[0] == line


def test_retry_of_what_is_not_planned(before: Path) -> None:
    """A failure that the plan has no more is said to be so: it is not done."""
    done = netprobe("run", *LIVE, "--only", "good", "--retry", "r", cwd=before)

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith(
        "2 failed before: 2 outside of this selection (the exit status does not count them)"
    )


def test_resume_says_what_it_keeps(before: Path, mended: list[CountingServer]) -> None:
    """Who resumes after a fix reads first that blocked results were kept, and how to ask again."""
    mended.append(CountingServer(MENDED))
    done = netprobe("run", *LIVE, "--resume", "r", cwd=before)
    first, second = done.stdout.splitlines()[:2]

    assert done.returncode == 1
    assert first.startswith("RESUMED: 1 pass, 2 blocked of r (begun 20")
    assert first.endswith(" kept, not probed again; --retry r probes again what did not pass")
    assert second == "BLOCKED: 2 blocked of 3 required flows, 1 finding"
    assert done.stderr.splitlines()[0] == f"netprobe: note: {first}", "not said before it probes"
    quiet = netprobe("run", *LIVE, "--resume", "r", "--quiet", cwd=before)
    assert (quiet.stderr, quiet.stdout.splitlines()[0]) == ("", first)
    assert not mended[0].accepted


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a run in it from before the installation, as a.json: our listeners answered."""
    (tmp_path / "services.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    done = netprobe("run", "-m", "./services.yaml", "-o", "json=a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("option", ["--retry", "--resume"])
def test_our_listeners_are_no_services(installed: Path, option: str) -> None:
    """What nothing serves passed before the installation, and is asked again with --live."""
    done = netprobe("run", *LIVE, option, "a.json", "-o", "json=b.json", cwd=installed)

    assert done.returncode == 1, done.stderr
    assert verdicts(installed / "b.json") == ["blocked", "blocked", "blocked"]
    assert (
        "; asked again although they passed: 3 that this run may ask otherwise (addresses, rows, "
        "--live, --strict)" in done.stderr
    )


@pytest.mark.parametrize("option", ["--retry", "--resume"])
def test_a_row_that_must_run_now_is_asked_again(installed: Path, option: str) -> None:
    """The other rows are as they were, and kept."""
    other = MATRIX.replace("id: mended,", "id: mended, existing: true,")
    (installed / "services.yaml").write_text(other)
    words = ("-m", "./services.yaml", option, "a.json", "-o", "json=b.json")
    done = netprobe("run", *words, cwd=installed)

    assert done.returncode == 1, done.stderr
    assert verdicts(installed / "b.json") == ["pass", "blocked", "pass"]
    assert "2 pass of a.json" in done.stderr


def test_one_of_them(tmp_path: Path) -> None:
    """Both options at once contradict each other, and other files are refused by their schema."""
    (tmp_path / "services.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "other.json").write_text('{"schema": "netprobe.plan/1"}')
    both = netprobe("run", *LIVE, "--resume", "r", "--retry", "r", cwd=tmp_path)
    other = netprobe("run", *LIVE, "--retry", "other.json", cwd=tmp_path)

    assert (both.returncode, other.returncode) == (2, 2)
    words = "--resume and --retry contradict each other: give one of them"
    assert both.stderr == f"netprobe: {words}\n"
    assert other.stderr.startswith("other.json:1:1: schema is 'netprobe.plan/1', expected")
