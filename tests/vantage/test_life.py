"""However a run ends, no agent outlives it; and however a start fails, somebody is told why."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from netprobe.agent.wire.answers import (
    Done,
    Fault,
    Listening,
)
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.host_messages import (
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    ListenOrder,
)
from netprobe.errors import AgentError
from netprobe.model.inventory import Vantage
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.pack import bundle, sources
from netprobe.vantage.process import AgentProcess
from netprobe.vantage.script import agent_script
from tests.patience import PATIENCE_S, until, wait_until
from tests.ports import free_port
from tests.vantage.conftest import Start
from tests.vantage.support import (
    HOST,
    KEY,
    TEMPLATES,
    block,
    command,
    gone,
    host,
    is_running,
    local,
    naming,
    probe,
)

# No silence of a test lasts so long.
LONG_S = 1000.0
COORDINATOR = """
import asyncio, sys
from netprobe.vantage.launch import Launcher, start_agent
from tests.vantage.support import KEY, local

async def main():
    async with Launcher(silence_s=float(sys.argv[1])) as launcher:
        link = await start_agent(local(), 1, key=KEY, launcher=launcher)
        print(link.hello.pid, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.fixture
async def coordinator(silence_s: float) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A coordinator in a process of its own, and the pid of its agent."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COORDINATOR, str(silence_s)),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    yield process, int(await process.stdout.readline())
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("silence_s", [LONG_S])
async def test_a_killed_coordinator_leaves_no_agent(
    coordinator: tuple[asyncio.subprocess.Process, int],
) -> None:
    """SIGKILL gives no time to say goodbye: the end of stdin is enough."""
    process, agent = coordinator
    assert is_running(agent)
    process.kill()
    await process.wait()
    await gone(agent)


@pytest.mark.slow
@pytest.mark.parametrize("silence_s", [2.0])
async def test_a_silent_coordinator_loses_its_agent(
    coordinator: tuple[asyncio.subprocess.Process, int],
) -> None:
    """A coordinator that hangs (or a network that swallows everything) ends the agent."""
    process, agent = coordinator
    process.send_signal(signal.SIGSTOP)
    await gone(agent)
    process.send_signal(signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_an_agent_in_order(start: Start, number: signal.Signals) -> None:
    """An administrator's kill, or sshd's hangup, closes everything at once."""
    link = await start(local())
    os.kill(link.hello.pid, number)
    with pytest.raises(AgentError, match="status 0"):
        await asyncio.wait_for(asyncio.shield(link.lost), PATIENCE_S)


@pytest.mark.parametrize("stage", ["before the bundle", "in the bundle", "after hello"])
async def test_the_end_of_stdin_ends_an_agent(stage: str) -> None:
    """Whenever the connection is lost, also in the middle of the bundle, nothing stays."""
    process = await AgentProcess.spawn(["sh", "-c", agent_script()])
    await process.stdout.readuntil(b"NETPROBE-READY\n")
    if stage != "before the bundle":
        process.stdin.write(bundle()[: 5000 if stage == "in the bundle" else None])
    if stage == "after hello":
        await process.stdout.readuntil(b"\n")
    process.stdin.close()
    await asyncio.wait_for(process.wait(), PATIENCE_S)
    assert not is_running(process.pid)


async def test_closing_a_link_ends_the_listeners(start: Start) -> None:
    """After close() the ports are free again, without TIME_WAIT."""
    link = await start(local())
    port = free_port()
    link.send(TEMPLATES)
    listen = ListenOrder(0, [block("tcp", "127.0.0.1", [(port, port)])])
    reply = await link.request(listen, Listening)
    assert reply.blocks[0].up == [(port, port)]
    await link.close()
    assert not is_running(link.hello.pid)
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", port, reuse_address=False)
    server.close()


async def test_a_host_without_python_is_told(tmp_path: Path, start: Start) -> None:
    """No Python: its own reason, and what to do."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    with pytest.raises(AgentError, match="install python3 there, or start the agent in") as caught:
        await start(command("env", "-i", f"PATH={tmp_path}"))
    assert caught.value.reason == "no-python"
    assert "a container that has one (`vantage: {command: [podman, ...]}`" in str(caught.value)
    assert "or say `vantage: none`" in str(caught.value)


async def test_a_python_that_is_too_old_is_passed_over(tmp_path: Path, start: Start) -> None:
    """A python3 that is 3.5, or only prints advice, does not hide the good one beside it."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "python3").write_text(
        "#!/bin/sh\necho install me with your package manager\nexit 1\n"
    )
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "python3.8").symlink_to(sys.executable)
    link = await start(command("env", f"PATH={tmp_path}"))
    assert link.hello.wire == WIRE_VERSION


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'python3: libpython3.9.so.1.0: cannot open shared object file' >&2; exit 127",
         "python3 prints: python3: libpython3.9.so.1.0: cannot open shared object file)"),
        ("echo 'first * line'; echo; echo 'second  line' >&2; exit 1",
         "python3 prints: first * line second line)"),
        ("echo Python 3.5.2", "python3 prints: Python 3.5.2)"),
        ("kill -SEGV $$", "python3 prints nothing when it is asked by -V)"),
    ],
)  # fmt: skip
async def test_a_python_that_does_not_start_is_told(
    tmp_path: Path, start: Start, script: str, words: str
) -> None:
    """It is there, so that "no Python" would be untrue: what it printed is said."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "python3").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python3.9").symlink_to("/bin/false")
    (tmp_path / "python3").chmod(0o755)
    with pytest.raises(AgentError) as caught:
        await start(command("env", "-i", f"PATH={tmp_path}"))
    assert caught.value.reason == "no-python"
    said = str(caught.value)
    assert f"no Python 3.6 or later works there ({tmp_path}/{words}; repair it; no Python" in said
    assert "can be sent: the host does not say what it is (uname -m); or install python3" in said


async def test_a_python_without_its_library_is_told(tmp_path: Path, start: Start) -> None:
    """One that knows its version and nothing else says itself what it lacks."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "python3").write_text(
        "#!/bin/sh\ncase $* in *-V) echo Python 3.11.2;;\n"
        f'*) exec env PYTHONHOME={tmp_path} {sys.executable} "-c" pass;; esac\n'
    )
    (tmp_path / "python3").chmod(0o755)
    with pytest.raises(AgentError, match="ModuleNotFoundError: No module named 'encodings'"):
        await start(command("env", f"PATH={tmp_path}:/usr/bin:/bin"))


async def test_a_command_that_fails_is_told_in_its_own_words(start: Start) -> None:
    """The prefix's last words, and how to try it by hand."""
    with pytest.raises(AgentError) as caught:
        await start(command("sh", "-c", "echo 'no such container: web-1' >&2; exit 3"))
    assert caught.value.reason == "no-vantage"
    assert "status 3: no such container: web-1" in str(caught.value)
    with pytest.raises(AgentError, match="no-such-command cannot be run here"):
        await start(command("no-such-command"))


async def test_no_vantage_is_told(start: Start) -> None:
    """A destination only host has no agent."""
    with pytest.raises(AgentError) as caught:
        await start(host(Vantage("none")))
    assert caught.value.reason == "no-vantage"


async def test_a_start_that_hangs_ends() -> None:
    """A host that swallows the connection costs its own time only, and leaves no process."""
    token = secrets.token_hex(8)
    hanging = command("sh", "-c", f"sleep 1000; : {token}")
    async with Launcher(start_timeout_s=0.3) as launcher:
        with pytest.raises(AgentError) as caught:
            await start_agent(hanging, HOST, key=KEY, launcher=launcher)
    assert caught.value.reason == "start-timeout"
    await until(lambda: not naming(token), "the command to end")


async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C during the start ends what was started."""
    note = tmp_path / "pid"
    async with Launcher() as launcher:
        hanging = command("sh", "-c", f"echo $$ > {note}; sleep 1000")
        starting = asyncio.create_task(start_agent(hanging, HOST, key=KEY, launcher=launcher))
        await until(lambda: note.exists() and bool(note.read_text()))
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    await gone(int(note.read_text()))


@pytest.mark.parametrize("turns", range(2, 7))
async def test_a_start_that_is_cancelled_within_asyncio(tmp_path: Path, turns: int) -> None:
    """Children of the command hold its pipes; they end with it, and nobody waits for them."""
    note = tmp_path / "pid"
    hanging = ("sh", "-c", f"sleep 1000 & echo $! > {note}; wait")
    starting = asyncio.create_task(AgentProcess.spawn(hanging))
    for _ in range(turns):
        await asyncio.sleep(0)
    # The loop stands still meanwhile, so asyncio has no turn between the child and the end.
    wait_until(lambda: note.exists() and note.read_text(), "the child's note")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, PATIENCE_S)
    await gone(int(note.read_text()))


async def test_a_bug_in_a_handler_is_no_end(start: Start) -> None:
    """A fault is reported with its traceback's source lines, and the agent works on."""
    link = await start(local())
    with pytest.raises(AgentError) as caught:
        await link.request(ListenOrder(0, [block("tcp", "127.0.0.1", [], 99)]), Listening)
    assert caught.value.reason == "agent-fault"
    assert "KeyError: 99" in str(caught.value)
    assert "netprobe_agent/listeners/listeners.py" in str(caught.value)
    assert "templates[item.template]" in str(caught.value)
    assert (await link.request(RouteOrder(0, "127.0.0.1", None), Routed)).dev == "lo"


@pytest.mark.slow
async def test_a_consumer_that_lags_stops_the_reading(start: Start) -> None:
    """Frames wait in the agent and in the pipe, not without limit in our memory."""
    link = await start(local())
    queue = link.subscribe(1)
    for _ in range(queue.maxsize * 4):
        link.send(probe(1, "none", "127.0.0.1", []))
    await until(queue.full)
    for _ in range(queue.maxsize * 4):
        assert isinstance(await queue.get(), (Fault, Done))
    link.unsubscribe(1)
    assert (await link.request(RouteOrder(0, "127.0.0.1", None), Routed)).dev == "lo"


@pytest.mark.slow
def test_the_bundle_is_the_same_every_time() -> None:
    """Same sources, same bytes; and the bundle holds every module of the agent."""
    assert {"__init__", "boot", "main", "wire.frames"} <= set(sources())
    bundle.cache_clear()
    first = bundle()
    bundle.cache_clear()
    assert bundle() == first


def test_the_script_survives_every_shell() -> None:
    """What csh and fish treat specially inside single quotes does not occur."""
    script = agent_script("sudo -n --")
    assert not {"!", "\\", "\n"} & set(script)


FLOODED = """
import asyncio
from netprobe.vantage.process import AgentProcess

async def main():
    process = await AgentProcess.spawn(["sh", "-c", "yes"])
    while len(process.stdout._buffer) < 2 << 20:
        await asyncio.sleep(0.01)
    await process.end(0)

asyncio.run(main())
"""


def test_a_process_that_floods_its_output_ends_without_a_word() -> None:
    """Nobody reads the rest; its pipes are closed before the loop is."""
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", FLOODED]
    done = subprocess.run(
        words, cwd=root, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
