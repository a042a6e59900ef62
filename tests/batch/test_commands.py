"""The commands of an engine, run by real shells against real agents, through every mishap."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import zlib
from base64 import b85decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.batch.commands import LOST_STATUS, make_commands
from netprobe.vantage.runtime.file import Runtime
from tests.batch.engine import Engine
from tests.batch.support import FOUND, RUN, outcomes_of, phases
from tests.lab.netlab import find_program
from tests.needs import require
from tests.patience import wait_until
from tests.ports import free_port
from tests.vantage.runtime.support import leftovers, session_runtime, take_own_prefix
from tests.vantage.sshd import Sshd, client_config
from tests.vantage.support import is_running, probe

pytestmark = pytest.mark.slow

Make = Callable[..., Engine]
# A command that nobody reads any more finds out within seconds; a busy machine is late.
LIMIT_S = 120.0
SHELLS = ("bash", "dash", "mksh", "zsh")


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make engines whose runs are over at the end. Each test has a run of its own."""
    made: list[Engine] = []

    def make_engine(name: str = "engine", **options: Any) -> Engine:
        made.append(Engine(tmp_path / name, free_port(), **options))
        return made[-1]

    yield make_engine
    for engine in made:
        engine.run("stop")
        assert not engine.left()


def test_commands_survive_any_login_shell() -> None:
    """One word in single quotes without a new line; csh and fish change these characters."""
    for line in make_commands(RUN, 60).values():
        assert not set("!\\\n") & set(line)
        assert line.startswith("sh -c '")


def test_a_run_of_two_rounds(make: Make) -> None:
    """Each step does its part, and nothing is left but what was printed."""
    engine = make()
    engine.steps("start", "go", "wait", "collect")
    first = engine.read()
    assert [mark.phase for mark in first.marks] == [
        "begin", "listening", "go", "probed", "tell", "told",
    ]  # fmt: skip
    assert (outcomes_of(first), first.is_cut) == (FOUND, False)
    assert [order.order for order in first.answers[902][0].orders] == [1, 2]

    engine.write(2)
    engine.steps("next", "go", "wait", "collect", "stop")
    second = engine.read()
    assert outcomes_of(second) == FOUND | {100 + number: said for number, said in FOUND.items()}
    assert [mark.round for mark in second.marks] == [1] * 6 + [2] * 6
    assert not engine.left()


def test_commands_can_run_twice(make: Make) -> None:
    """An engine that does not know whether a command has come through sends it again."""
    engine = make()
    engine.steps("start", "start", "go", "go", "wait", "wait", "collect", "collect")
    engine.write(2)
    engine.steps("next", "next", "go", "go", "wait", "collect", "collect", "stop", "stop")
    found = engine.read()
    assert len(found.marks) == 12
    assert len(outcomes_of(found)) == 2 * len(FOUND)


def test_collecting_too_early_prints_what_there_is(make: Make) -> None:
    """Nobody has said go: nothing is waited for, and the results say that they are not whole."""
    engine = make()
    engine.steps("start", "wait", "collect")
    assert engine.read().is_cut
    assert engine.read().words.endswith("the last that it tells is 'listening'")


def test_nothing_is_left_after_a_kill(make: Make) -> None:
    """The shell that guards the folder removes it, and commands say that the run is over."""
    engine = make()
    engine.steps("start")
    os.kill(engine.pid(), signal.SIGKILL)
    wait_until(lambda: not engine.left())
    for step in ("go", "wait", "collect", "next"):
        done = engine.run(step)
        assert (done.returncode, done.stdout) == (LOST_STATUS, b"")
        assert f"netprobe: run {engine.run_id} does not go on here".encode() in done.stderr


def test_nothing_is_left_after_silence(make: Make) -> None:
    """The engine, or the machine that it runs on, has died."""
    engine = make(silence_s=0.5)
    engine.steps("start")
    pid = engine.pid()
    wait_until(lambda: not engine.left() and not is_running(pid))


def test_an_engine_says_how_long_it_may_be_silent(make: Make) -> None:
    """Behind the host's word, with any command: what was said last counts."""
    engine = make(silence_s=1000.0)
    engine.steps("start")
    pid = engine.pid()
    subprocess.run(["sh", "-c", f"{engine.line('go')} 1"], check=True)
    wait_until(lambda: not engine.left() and not is_running(pid))


def test_an_early_end_gives_what_there_is(make: Make) -> None:
    """Probes that are out are given up, what listeners saw is told, and nothing is left."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        engine = make()
        waits = probe(9, "udp", "127.0.0.1", [(silent.getsockname()[1],) * 2])
        _ask_too(engine, waits._replace(look_ms=60_000))
        engine.steps("start", "go")
        wait_until(lambda: b"ProbeOutcomes" in _read_answers(engine))
        engine.steps("halt")

    found = engine.read()
    assert {number: said for number, said in outcomes_of(found).items() if number != 9} == FOUND
    assert (found.marks[-1].phase, found.is_cut) == ("told", False)
    assert [order.order for order in found.answers[902][0].orders] == [1, 2]
    assert not engine.left()


@pytest.mark.parametrize("steps", [("start",), ("start", "go", "wait", "collect")])
def test_an_early_end_comes_at_any_time(make: Make, steps: tuple[str, ...]) -> None:
    """Before anything was probed, and when all has been collected; also a second time."""
    engine = make()
    engine.steps(*steps, "halt", "halt")
    assert engine.read().marks[-1].phase == ("told" if "collect" in steps else "stopped")
    assert not engine.left()


@pytest.mark.full
@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_that_nobody_reads_ends_the_run(make: Make, terminal: bool) -> None:
    """The engine has died while a host was probing: within half a minute and some beats it ends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        engine = make()
        waits = probe(9, "udp", "127.0.0.1", [(silent.getsockname()[1],) * 2])
        _ask_too(engine, waits._replace(look_ms=600_000))
        engine.steps("start", "go")
        pid = engine.pid()
        ours, theirs = pty.openpty() if terminal else os.pipe()
        command = subprocess.Popen(["sh", "-c", engine.line("wait")], stdin=theirs, stdout=theirs)
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)

        assert command.wait(LIMIT_S) == LOST_STATUS
        assert is_running(pid)
        wait_until(lambda: not is_running(pid) and not engine.left())


def _ask_too(engine: Engine, order: Any) -> None:
    """Let the host send one more probe."""
    listen, (go, asked), tell = phases(engine.port)
    engine.set_phases([listen, (go, [*asked, order]), tell])


def _read_answers(engine: Engine) -> bytes:
    """What the host has written by now."""
    (place,) = engine.left()
    lines = (place / "results").read_bytes().splitlines()[1:]
    return b"".join(zlib.decompress(b85decode(line.split()[3])) for line in lines)


def test_a_signal_ends_a_run_in_order(make: Make) -> None:
    """The host shuts down, or an administrator ends what he finds."""
    engine = make()
    engine.steps("start")
    os.kill(engine.pid(), signal.SIGTERM)
    wait_until(lambda: not engine.left())


def test_what_a_restarted_host_has_kept_is_no_hindrance(make: Make) -> None:
    """A folder that is not in memory survives; its process does not, and the guard neither."""
    engine = make()
    engine.steps("start")
    (place,) = engine.left()
    kept = place.with_name("kept")
    shutil.copytree(place, kept, copy_function=lambda *_: None)
    pid = engine.pid()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not engine.left())
    kept.rename(place)
    os.mkfifo(place / "words")
    (place / "pid").write_text(f"{pid}\n")

    done = engine.run("go")
    assert (done.returncode, b"it ended early" in done.stderr) == (LOST_STATUS, True)
    engine.steps("start", "go", "wait", "collect")
    assert outcomes_of(engine.read()) == FOUND


def test_a_terminal_that_hangs_up_ends_nothing(make: Make) -> None:
    """Some engines give commands a terminal; its end is not the run's."""
    engine = make()
    script = engine.folder / "start.sh"
    script.write_text(f"{engine.line('start')} <{engine.folder}/input\n")
    (engine.folder / "input").write_bytes(engine.stdin("start"))
    child, terminal = pty.fork()
    if child == 0:
        os.execlp("sh", "sh", str(script))
    said = b""
    while b"NPR1 1 " not in said or not said.endswith(b"\n"):
        said += os.read(terminal, 65536)
    os.close(terminal)
    os.waitpid(child, 0)
    assert b"\r\n" in said
    engine.results.write_bytes(said)
    engine.steps("go", "wait", "collect")
    assert outcomes_of(engine.read()) == FOUND


@pytest.mark.parametrize(
    "shell", ["busybox", *(pytest.param(one, marks=pytest.mark.full) for one in SHELLS)]
)
def test_any_shell_will_do(make: Make, tmp_path: Path, shell: str) -> None:
    """``sh`` is another program on every system."""
    require(shell)
    program = str(find_program(shell))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to(program)
    engine = make(
        words=(f"{tmp_path}/bin/sh", "-c"), env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    )
    engine.steps("start", "go", "wait", "collect", "stop")
    assert outcomes_of(engine.read()) == FOUND


@pytest.mark.needs("sshd", "ssh")
def test_banners_and_ssh_do_no_harm(make: Make, tmp_path: Path) -> None:
    """Every step is a connection of its own, and what profiles print stands in between."""
    force = (
        'echo "Welcome. NPR is good radio"; sh -c "$SSH_ORIGINAL_COMMAND"; s=$?; echo Bye; exit $s'
    )
    server = Sshd(tmp_path, "host", force=force)
    config = client_config(tmp_path, server)
    engine = make(words=("ssh", "-F", str(config), "host"))
    engine.steps("start", "go", "wait", "collect", "stop")
    server.stop()
    assert outcomes_of(engine.read()) == FOUND


def test_hosts_that_share_a_machine_are_told_apart(make: Make) -> None:
    """Each has a folder of its own, and its commands end in its own word."""
    engines = [make("a", host=3), make("b", host=4)]
    for step in ("start", "go", "wait", "collect"):
        for engine in engines:
            engine.steps(step)
    assert all(engine.left() for engine in engines)
    for engine in engines:
        engine.steps("stop")
        assert outcomes_of(engine.read()) == FOUND
        assert not engine.left()


@pytest.mark.needs("namespaces")
def test_a_host_is_not_started_in_another_namespace(make: Make) -> None:
    """The folder of the run that goes on is not taken away from it."""
    engine = make()
    engine.steps("start")
    words = ["unshare", "-n", "sh", "-c", engine.line("start")]
    done = subprocess.run(words, input=engine.stdin("start"), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (LOST_STATUS, b"")
    assert b"it goes on here already, in another network namespace" in done.stderr
    engine.steps("go", "wait", "collect")
    assert outcomes_of(engine.read()) == FOUND


@pytest.mark.needs("other users")
def test_a_run_is_its_users_own(make: Make) -> None:
    """Without root it goes on in another place; other users see nothing of it."""
    engine = make(user="nobody", env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    engine.folder.chmod(0o711)
    engine.steps("start", "go", "wait", "collect")
    (place,) = engine.left()
    assert place.stat().st_mode & 0o777 == 0o700
    other = subprocess.run(["sh", "-c", engine.line("go")], capture_output=True, check=False)
    assert other.returncode == LOST_STATUS
    assert outcomes_of(engine.read()) == FOUND


def test_a_script_that_comes_too_late_is_refused(make: Make) -> None:
    """A file that an engine kept is not run again another day."""
    engine = make(ends_at=1000.0)
    done = engine.run("start")
    assert (done.returncode, done.stdout) == (LOST_STATUS, b"")
    assert b"netprobe: too late: this run ended at 1970-01-01T00:16:40Z" in done.stderr
    assert not engine.left()


def test_a_python_travels_to_a_host_without_one(
    make: Make,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``start`` ends with 97, ``start-runtime`` brings one; a kill removes that, too."""
    take_own_prefix(monkeypatch)
    runtime: Runtime = session_runtime(tmp_path_factory)
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dd", "gzip", "tar", "chmod", "mkdir", "rm", "uname", "cat", "sleep", "mv"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / "bin" / name).symlink_to(program)
    engine = make(runtime=runtime, env={"PATH": f"{tmp_path}/bin", "HOME": "/root"})
    assert engine.run("start").returncode == 97
    assert engine.told["instead"] == {"start": {"97": "start-runtime"}}
    engine.steps("start-runtime", "go", "wait", "collect")
    assert outcomes_of(engine.read()) == FOUND
    os.kill(engine.pid(), signal.SIGKILL)
    wait_until(lambda: not engine.left() and not leftovers())


def test_the_folder_is_nobody_elses(make: Make) -> None:
    """It holds the run's key."""
    engine = make()
    for path in (engine.folder, *engine.folder.rglob("*")):
        assert path.stat().st_mode & 0o77 == 0, path
    assert json.loads((engine.folder / "engine.json").read_text())["last"] == "stop"
