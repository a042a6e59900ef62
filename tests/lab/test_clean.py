"""Nothing stays behind: no listener, no process and no file, however a run ends."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cli import COMMAND, environment, netprobe
from tests.lab.netlab import Lab, wait_for
from tests.patience import PATIENCE_S

HOSTS = {"master-0": ["master"], "worker-0": ["node"], "worker-1": ["node"]}
# An agent whose stdin ends has nothing to wait for; one that hears nothing gives up after 30 s.
GONE_S = 25.0


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Three hosts, and a firewall that drops enough to keep a run busy for seconds."""
    with Lab() as made:
        router = made.router("fw", "10.90.0.1")
        for number, name in enumerate(HOSTS, start=10):
            made.host(name, router, f"10.90.0.{number}")
        router.nft(
            "table inet lab {\n chain forward {\n type filter hook forward priority 0;\n"
            " tcp dport 4200-4300 drop\n }\n}"
        )
        for name in ("tmp", "home"):
            (made.folder / name).mkdir()
        made.inventory(HOSTS, settings={"modules": ["metallb"]})
        yield made


def _words(lab: Lab) -> list[str]:
    inventory = str(lab.folder / "inventory.yaml")
    return ["run", "--matrix", "deckhouse-nodes", "-i", inventory, "-o", "json"]


def _environment(lab: Lab) -> dict[str, str]:
    private = {"TMPDIR": str(lab.folder / "tmp"), "HOME": str(lab.folder / "home")}
    return environment() | private


@pytest.fixture
def process(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """A run whose listeners are open: it is in the middle of its work."""
    running = subprocess.Popen(
        [*COMMAND, *_words(lab)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(lab),
        cwd=lab.folder / "home",
    )
    try:
        wait_for(lambda: lab["worker-1"].listening() or running.poll() is not None, "listeners")
        assert running.poll() is None, running.communicate()
        yield running
    finally:
        running.kill()
        running.send_signal(signal.SIGCONT)
        running.communicate(timeout=PATIENCE_S)


def _left(lab: Lab) -> list[str]:
    """Every socket, process and file that the run left."""
    left = []
    for host in lab.namespaces.values():
        left += [f"{host.name}: {place}" for place in host.listening()]
        left += [f"{host.name}: process {_command(pid)}" for pid in host.pids()]
    for name in ("tmp", "home"):
        left += [str(path) for path in (lab.folder / name).rglob("*")]
    return left


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return f"{pid} (gone)"
    return f"{pid} {words[:80].decode(errors='replace')}"


def _assert_nothing_left(lab: Lab, limit_s: float = GONE_S) -> None:
    try:
        wait_for(lambda: not _left(lab), "everything to be gone", limit_s)
    finally:
        assert not _left(lab)


def test_nothing_is_left_after_a_run(lab: Lab) -> None:
    """A run that came to its end left nothing, not even for a moment: it waits for its agents."""
    done = subprocess.run(
        [*COMMAND, *_words(lab)],
        capture_output=True,
        text=True,
        env=_environment(lab),
        cwd=lab.folder / "home",
        check=False,
    )

    assert not _left(lab)
    assert done.returncode == 1, done.stderr


def test_nothing_is_left_where_one_host_fails(lab: Lab) -> None:
    """A host without a way in makes its own flows not tested, and no agent of the others stays."""
    broken: dict[str, dict[str, object]] = {"worker-0": {"vantage": {"command": ["false"]}}}
    path = lab.inventory(HOSTS, settings={"modules": ["metallb"]}, overrides=broken)
    done = netprobe("run", "--matrix", "deckhouse-nodes", "-i", str(path), "-o", "json")

    verdicts = {(r["source"], r["verdict"]) for r in done.results}
    assert {v for source, v in verdicts if source == "worker-0"} == {"not-tested"}
    assert ("worker-1", "pass") in verdicts
    _assert_nothing_left(lab)


def test_nothing_is_left_where_the_report_cannot_be_written(lab: Lab) -> None:
    """netprobe's own failure ends its agents too."""
    target = "json=/proc/no-such-folder/run.json"
    done = netprobe(*_words(lab)[:-1], target)

    assert done.status in (2, 4)
    assert "Traceback" not in done.stderr
    _assert_nothing_left(lab)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_closes_and_reports(
    lab: Lab, process: subprocess.Popen[str], number: signal.Signals
) -> None:
    """Ctrl-C stops, closes everything and still reports what was measured: exit status 130."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130, stderr
    assert json.loads(stdout)["complete"] is False
    assert "Traceback" not in stderr
    _assert_nothing_left(lab)


def test_a_second_interrupt_ends_at_once(lab: Lab, process: subprocess.Popen[str]) -> None:
    """Whoever presses Ctrl-C twice does not want to wait, and still nothing stays."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    _assert_nothing_left(lab)


def test_agents_end_with_a_killed_coordinator(lab: Lab, process: subprocess.Popen[str]) -> None:
    """SIGKILL cannot be answered: the agents see the end of their stdin and close everything."""
    process.kill()
    process.communicate(timeout=PATIENCE_S)

    _assert_nothing_left(lab)


@pytest.mark.slow
def test_agents_end_when_the_coordinator_falls_silent(
    lab: Lab, process: subprocess.Popen[str]
) -> None:
    """A coordinator that hangs sends no beat: after 30 s its agents close everything."""
    process.send_signal(signal.SIGSTOP)
    hosts = [lab[name] for name in HOSTS]
    wait_for(
        lambda: not any(host.listening() or host.pids() for host in hosts),
        "agents to give up",
    )
