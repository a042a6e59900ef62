"""A host without Python gets ours, runs the agent with it, and keeps nothing of it."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Listening
from netprobe.agent.wire.host_messages import Resolved, ResolveOrder
from netprobe.agent.wire.orders import ListenOrder
from netprobe.errors import AgentError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from netprobe.vantage.pack import BOOTSTRAP
from netprobe.vantage.process import AgentProcess
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import Runtime
from netprobe.vantage.runtime.script import runtime_prologue, runtime_script
from netprobe.vantage.script import SUDO_LINE
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.vantage.conftest import Start
from tests.vantage.runtime.support import lean_host, leftovers, other_machine
from tests.vantage.support import (
    HOST,
    KEY,
    TEMPLATES,
    block,
    command,
    gone,
    local,
    outcomes,
    probe,
)

pytestmark = pytest.mark.slow


def folder_of(link: AgentLink) -> Path:
    """The folder on the host from which this agent's Python runs."""
    program = Path(os.readlink(f"/proc/{link.hello.pid}/exe"))
    assert program.name == "ld.so"
    return program.parent


async def refusal(start: Start, at: object) -> str:
    """Why a host without Python has no agent."""
    with pytest.raises(AgentError) as caught:
        await start(at)  # type: ignore[arg-type]
    assert caught.value.reason == "no-python"
    await until(lambda: not leftovers())
    return str(caught.value)


async def test_a_host_without_python_gets_ours(
    tmp_path: Path, start: Start, runtime: Runtime
) -> None:
    """The agent does its work there; its folder is nobody else's, and is gone after the end."""
    link = await start(lean_host(tmp_path / "bin"))
    assert (link.is_python_sent, link.hello.python) == (True, runtime.manifest.python)
    folder = folder_of(link)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert str(folder).startswith(("/run/", "/dev/shm/", "/tmp/"))
    port = free_port()
    link.send(TEMPLATES)
    blocks = [block("tcp", "127.0.0.1", [(port, port)]), block("udp", "127.0.0.1", [(port, port)])]
    await link.request(ListenOrder(900, blocks), Listening)
    for order, proto in ((1, "tcp"), (2, "udp")):
        found = await outcomes(link, probe(order, proto, "127.0.0.1", [(port, port)]))
        assert found == [(port, port, None, "nonce")]
    # Imported late: threads, and names of hosts.
    resolved = await link.request(ResolveOrder(0, "localhost"), Resolved)
    assert "127.0.0.1" in resolved.addresses
    await link.close()
    assert link.exit_status == 0
    assert not folder.exists()


@pytest.mark.parametrize("who", ["agent", "group", "cut"])
async def test_nothing_is_left_after_any_death(tmp_path: Path, start: Start, who: str) -> None:
    """kill -9 of the agent, of everything around it, and the end of the connection."""
    link = await start(lean_host(tmp_path / "bin"))
    folder = folder_of(link)
    if who == "agent":
        os.kill(link.hello.pid, signal.SIGKILL)
    elif who == "group":
        os.killpg(link.pid, signal.SIGKILL)
    else:
        link.kill()
    with pytest.raises(AgentError, match="lost"):
        await asyncio.wait_for(asyncio.shield(link.lost), PATIENCE_S)
    await until(lambda: not folder.exists())
    if who == "agent":
        assert link.exit_status == 128 + signal.SIGKILL


COORDINATOR = """
import asyncio, sys
from pathlib import Path
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import check_runtime
from tests.vantage.support import KEY, command

async def main():
    runtimes = Runtimes([check_runtime(Path(sys.argv[1]).read_bytes())])
    async with Launcher(runtimes=runtimes, silence_s=1000.0) as launcher:
        link = await start_agent(command(*sys.argv[2:]), 1, key=KEY, launcher=launcher)
        print(link.hello.pid, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.fixture
async def coordinator(
    tmp_path: Path, runtime: Runtime
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A coordinator in a process of its own, and the pid of its agent."""
    (tmp_path / "runtime").write_bytes(runtime.payload)
    words = lean_host(tmp_path / "bin").vantage.command
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COORDINATOR, str(tmp_path / "runtime"), *words),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    yield process, int(await process.stdout.readline())
    if process.returncode is None:
        process.kill()
    await process.wait()


async def test_a_killed_coordinator_leaves_nothing(
    coordinator: tuple[asyncio.subprocess.Process, int],
) -> None:
    """SIGKILL gives no time to say goodbye: the end of stdin is enough."""
    process, agent = coordinator
    folder = Path(os.readlink(f"/proc/{agent}/exe")).parent
    process.kill()
    await process.wait()
    await gone(agent)
    await until(lambda: not folder.exists())


@pytest.mark.parametrize("killed", [False, True])
async def test_the_end_of_stdin_in_the_middle(
    tmp_path: Path, runtime: Runtime, killed: bool
) -> None:
    """Half of it came when the connection was cut, and when all of its shells were killed."""
    script = runtime_script(runtime, BOOTSTRAP, "", SUDO_LINE)
    name = script.partition("t=")[2].partition("-$$;")[0]
    words = lean_host(tmp_path / "bin").vantage.command
    process = await AgentProcess.spawn([*words, "sh", "-c", script])
    await process.stdout.readuntil(b"NETPROBE-SEND\n")
    assert [one for one in leftovers() if name in one]
    process.stdin.write(runtime.payload[: len(runtime.payload) // 2])
    await process.stdin.drain()
    if killed:
        process.kill()
    else:
        process.stdin.close()
    await asyncio.wait_for(process.wait(), PATIENCE_S)
    await until(lambda: not [one for one in leftovers() if name in one])


async def test_a_host_with_a_python_never_gets_one() -> None:
    """What it has is good enough, and nothing is looked for or built."""

    class Never(Runtimes):
        async def find(self, machine: str) -> Runtime:
            raise AssertionError(machine)

    async with Launcher(runtimes=Never()) as launcher:
        link = await start_agent(local(), HOST, key=KEY, launcher=launcher)
        assert not link.is_python_sent
        await link.close()


async def test_a_missing_program_is_named(tmp_path: Path, start: Start) -> None:
    """Before anything is sent."""
    words = await refusal(start, lean_host(tmp_path / "bin", without="gzip"))
    none = "no Python 3.6 or later is there, and the one that netprobe sent cannot run"
    assert f"{none}: gzip is not installed there; or install python3" in words


async def test_another_machine_is_named(tmp_path: Path, start: Start) -> None:
    """The runtime is for this one; the host is another, and what to do is a command."""
    lean = lean_host(tmp_path / "bin")
    other_machine(tmp_path / "bin", "riscv64")
    words = await refusal(start, lean)
    assert "no Python for riscv64 can be sent, none is kept and this machine is" in words
    assert "run `netprobe runtime build -o FILE` on a machine that is riscv64, and give it" in words
    assert "with --agent-python FILE; or install python3" in words


async def test_a_host_that_says_nothing_of_itself(tmp_path: Path, start: Start) -> None:
    """Without uname nobody knows what runs there."""
    words = await refusal(start, lean_host(tmp_path / "bin", without="uname"))
    assert "the host does not say what it is (uname -m); or install python3" in words


def test_a_prologue_runs_what_stands_behind_it(tmp_path: Path, runtime: Runtime) -> None:
    """A file: its arguments, its rest, its exit status, under every shell; and nothing is left."""
    lean_host(tmp_path / "bin")
    code = (
        "import os, sys\n# 100 % its own\nprint(sys.argv[1:], sys.stdin.buffer.read())\nsys.exit(5)"
    )
    file = tmp_path / "run.sh"
    file.write_bytes(runtime_prologue(runtime, code) + b"\0the rest\n")
    for shell in ("sh", "bash", "dash"):
        done = subprocess.run(
            [shell, "run.sh", "--out", "a b"], capture_output=True, cwd=tmp_path,
            env={"PATH": f"{tmp_path}/bin:/bin"}, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (5, b"")
        assert done.stdout == b"['--out', 'a b'] b'\\x00the rest\\n'\n"
    with file.open("rb") as stream:
        piped = subprocess.run(["sh"], stdin=stream, capture_output=True, check=False)
    assert (piped.returncode, piped.stderr) == (
        98,
        b"NETPROBE-USELESS-RUNTIME: run it as: sh FILE\n",
    )


def test_the_script_survives_every_login_shell(runtime: Runtime) -> None:
    """One line, without what csh or fish change inside quotes."""
    script = runtime_script(runtime, BOOTSTRAP, "sudo -n --", SUDO_LINE)
    assert not set(script) & set("!\\\n")


async def test_an_unready_host_is_told_of_in_time(tmp_path: Path, runtime: Runtime) -> None:
    """A host that reads and never answers: the limit grows with what is sent, and no further."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").write_text(
        "#!/bin/sh\ncase $* in *NETPROBE-SEND*) echo NETPROBE-SEND; exec /bin/sleep 1000;; esac\n"
        f"PATH={os.environ['PATH']}; echo NETPROBE-NO-PYTHON {runtime.arch}; exit 97\n"
    )
    (tmp_path / "bin/sh").chmod(0o755)
    small = replace(runtime, payload=runtime.payload[:30000])
    async with Launcher(start_timeout_s=3.0, runtimes=Runtimes([small])) as launcher:
        with pytest.raises(AgentError, match=r"no agent after 3\.3 s") as caught:
            await start_agent(
                command("env", f"PATH={tmp_path}/bin"), HOST, key=KEY, launcher=launcher
            )
    assert caught.value.reason == "start-timeout"
