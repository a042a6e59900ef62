"""``run --engine ansible`` around a program that plays ansible-playbook: its ends, its password."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.batch.engine import PLACES
from tests.cli import fake_ansible
from tests.cli.command import COMMAND, environment
from tests.patience import wait_until
from tests.vantage.support import is_running

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("heeds_signals")]

# In none of the files and folders that a run leaves, nor in anybody's words.
PASSWORD = "correct horse ' battery $täple"
LIMIT_S = 240


@dataclass
class Playing:
    """A run whose ansible-playbook is our own program."""

    folder: Path
    process: subprocess.Popen[str]

    @property
    def plays(self) -> list[dict[str, Any]]:
        """What ansible-playbook was told at each of its starts."""
        log = self.folder / "log"
        lines = log.read_text().split("\n") if log.exists() else [""]
        # Behind the last newline stands what is still being written.
        return [json.loads(line) for line in lines[:-1]]

    def wait_for_play(self, count: int = 1) -> dict[str, Any]:
        """Wait until so many plays have done what they do."""
        wait_until(lambda: len(self.plays) >= count or self.process.poll() is not None, "a play")
        return self.plays[count - 1]

    def agent(self) -> int:
        """The process of the agent."""
        (pid,) = (int((path / "pid").read_text()) for path in self.left_on_host())
        return pid

    def left_on_host(self) -> list[Path]:
        """Folders of the run on this machine."""
        run = self.plays[0]["run"]
        return [path for place in PLACES for path in Path(place).glob(f"netprobe-{run}-*")]

    def left_here(self) -> list[Path]:
        """What is in the folder for temporary files."""
        return list((self.folder / "tmp").iterdir())

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end: status, report, and what was said beside it."""
        stdout, stderr = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, stdout, stderr


Play = Callable[..., Playing]


@pytest.fixture
def play(folder: Path) -> Iterator[Play]:
    """Start runs that are over at the end."""
    made: list[Playing] = []

    def start(hangs: str = "", **variables: str) -> Playing:
        (folder / "bin").mkdir()
        (folder / "tmp").mkdir()
        program = folder / "bin" / "ansible-playbook"
        program.write_text(f"#!{sys.executable}\n{Path(fake_ansible.__file__).read_text()}")
        program.chmod(0o755)
        path = f"{folder}/bin:{os.environ['PATH']}"
        more = {"FAKE_LOG": str(folder / "log"), "FAKE_HANGS": hangs, "TMPDIR": str(folder / "tmp")}
        process = subprocess.Popen(
            [*COMMAND, "run", "--engine", "ansible", "-m", "./tiny.yaml", "--rehearse"],
            cwd=folder, env=environment(PATH=path, **more, **variables), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        made.append(Playing(folder, process))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()
        for told in one.plays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(told["pid"], signal.SIGKILL)


def _assert_all_ends(playing: Playing, agent: int) -> None:
    """Assert that nothing is left of a run, here and on the host."""
    pids = [agent, *(told["pid"] for told in playing.plays)]
    wait_until(lambda: not any(map(is_running, pids)), "the end of agent and plays")
    wait_until(lambda: not playing.left_here() and not playing.left_on_host(), "the folders' end")


def test_the_sudo_password_goes_through_standard_input_alone(play: Play) -> None:
    """It is in no argument, no environment and no file: ansible-playbook reads it from a pipe. And
    one line says that nothing is rehearsed."""
    playing = play(NETPROBE_BECOME_PASSWORD=PASSWORD)
    status, report, said = playing.finish()

    (told,) = playing.plays
    assert status == 3, said
    assert "PASS" not in report.splitlines()[0]
    assert told.pop("stdin") == PASSWORD
    assert PASSWORD not in json.dumps(told, ensure_ascii=False)
    assert PASSWORD not in report + said
    assert not playing.left_here()
    assert said.count("--rehearse is not possible here") == 1


def test_an_interrupt_of_netprobe_alone_ends_all_in_order(play: Play) -> None:
    """Hosts give what they have, agents end, and the report says what was measured."""
    playing = play("check")
    playing.wait_for_play()
    agent = playing.agent()
    playing.process.send_signal(signal.SIGINT)
    status, report, said = playing.finish()

    assert status == 130, said
    assert report.startswith("PARTIAL RUN"), report
    assert [told["name"] for told in playing.plays] == ["check", "end"]
    assert " pass" in report.splitlines()[-1]
    assert "0 pass" not in report.splitlines()[-1]
    _assert_all_ends(playing, agent)


@pytest.mark.parametrize(
    "who", ["ansible-playbook", "netprobe", pytest.param("both", marks=pytest.mark.full)]
)
def test_a_kill_leaves_nothing(play: Play, who: str) -> None:
    """Agents end at once, and so does everything else; what netprobe survives it reports."""
    playing = play("check")
    pids = {"ansible-playbook": playing.wait_for_play()["pid"], "netprobe": playing.process.pid}
    agent = playing.agent()
    for name, pid in pids.items():
        if who in (name, "both"):
            os.kill(pid, signal.SIGKILL)
    status, report, said = playing.finish()

    _assert_all_ends(playing, agent)
    if who == "ansible-playbook":
        assert (status, " pass" in report) == (3, True)
        assert "ansible-playbook was killed" in said


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_second_signal_waits_for_nothing(play: Play, number: signal.Signals) -> None:
    """The play that ends the hosts hangs: the report comes without it."""
    playing = play("check end")
    playing.wait_for_play()
    playing.process.send_signal(number)
    playing.wait_for_play(2)
    playing.process.send_signal(number)
    status, report, said = playing.finish()

    assert (status, report.partition(":")[0]) == (130, "PARTIAL RUN"), said
    assert not playing.left_here()


def test_a_play_that_comes_to_no_host_is_refused(play: Play, folder: Path) -> None:
    """Its own words are above, and no report pretends that somebody looked."""
    (folder / "inventory.yaml").write_text(
        (folder / "inventory.yaml").read_text().replace("here:", "other:")
    )
    status, report, said = play().finish()

    assert (status, report) == (2, "")
    assert "ended with status 1 before it came to any host" in said
