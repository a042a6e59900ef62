"""Signals that end a run: reported, recorded, and nothing is left; and what is no bug."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from netprobe.cli import main as cli_main
from netprobe.signals import run_until_signal
from tests.cli.command import COMMAND, environment
from tests.patience import PATIENCE_S, wait_until

# They start whole commands, some of them many.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("heeds_signals")]

TINY = ("-m", "./tiny.yaml")


def start(folder: Path, *before: str, out: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A run of which one host never says hello."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("/no/such/program", "sh, -c, cat"))
    run = subprocess.Popen(
        [*before, *COMMAND, "run", *TINY, "--record", "r"],
        cwd=folder, env=environment(), text=True, start_new_session=True, stdout=out, stderr=out,
    )  # fmt: skip
    while not children_of(run.pid):
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the run ended: {run.wait(timeout=0.02)}")
    return run


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def assert_gone(pids: list[int]) -> None:
    """Assert that these processes end; what was killed needs a moment."""
    wait_until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "the agents")


def ended_in_order(folder: Path) -> bool:
    """Whether the record has its last line, of a run that was interrupted."""
    last = json.loads((folder / "r").read_text().splitlines()[-1])
    return "end" in last and last["end"]["interrupted"] is True


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_hangup_ends_a_run_as_a_kill_does(folder: Path, number: signal.Signals) -> None:
    """Report and record are kept, and the agents are gone."""
    run = start(folder)
    agents = children_of(run.pid)
    run.send_signal(number)
    stdout, stderr = run.communicate(timeout=PATIENCE_S)

    assert run.returncode == 130, stderr
    assert stdout.split(":")[0] in ("PARTIAL RUN", "NOTHING WAS TESTED")
    assert ended_in_order(folder)
    assert_gone(agents)


def test_a_closed_terminal_keeps_the_record(folder: Path) -> None:
    """Its hangups come in twos and threes, and nobody reads any more."""
    ours, theirs = pty.openpty()
    run = start(folder, out=theirs)
    agents = children_of(run.pid)
    os.close(theirs)
    os.close(ours)
    for _ in range(2):
        run.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    run.wait(timeout=PATIENCE_S)

    assert ended_in_order(folder)
    assert_gone(agents)


def test_nohup_is_heeded(folder: Path) -> None:
    """Who wants no hangup gets none."""
    run = start(folder, "nohup")
    run.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(timeout=0.5)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=PATIENCE_S)
    assert ended_in_order(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_more_signal_does_not_cost_the_report(number: signal.Signals) -> None:
    """It came a moment late; the one after it is the caller's own again."""

    async def wait() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    assert run_until_signal(wait())
    os.kill(os.getpid(), number)
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


@pytest.mark.parametrize("module", ["gc", "typing", "click"])
def test_an_interrupt_from_the_first_line_on_is_silent(folder: Path, module: str) -> None:
    """Whatever is being imported then."""
    program = (
        "import builtins, signal\n"
        "real = builtins.__import__\n"
        "def fake(name, *rest):\n"
        f"    if name == '{module}':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = fake\n"
        "from netprobe.__main__ import run\n"
        "run()"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", program, "matrix", "list"],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(24, "Too many open files"), "no file descriptors (ulimit -n) left"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "no processes or threads"),
        (OSError(12, "Cannot allocate memory"), "no memory left"),
        (MemoryError(), "no memory left"),
        (OSError(99, "Cannot assign requested address"), "no ports left"),
        (ExceptionGroup("tasks", [OSError(24, "Too many open files")]), "no file descriptors"),
    ],
)
def test_a_shortage_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    """One line that says what there is no more of."""

    def fail(*_words: object, **_options: object) -> int:
        async def work() -> None:
            raise error

        run_until_signal(work())
        return 0

    monkeypatch.setattr(cli_main.cli, "main", fail)

    assert cli_main.status_of([]) == 4
    assert said in capsys.readouterr().err
