"""The user's own ssh against a real sshd: noise, shells, jump hosts, and every way to fail."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netprobe.agent.wire.answers import (
    Seen,
)
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.host_messages import (
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    SeenOrder,
)
from netprobe.errors import AgentError
from netprobe.report.page.host_keys import word_host_keys
from netprobe.vantage import launch as launch_module
from netprobe.vantage.base import HostKeyError
from netprobe.vantage.large_packets import LINES_SCRIPT
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink, LinkLost
from netprobe.vantage.ssh import first_hop, read_hop, small_argv
from tests.needs import require
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.vantage.conftest import Start
from tests.vantage.sshd import Sshd, client_config, target
from tests.vantage.support import HOST, KEY, gone, naming, ssh

pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh")]

SHELLS = ("sh", "bash", "dash", "zsh", "tcsh", "fish", "mksh")
Server = Callable[..., Sshd]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Make servers that end with the test."""
    made: list[Sshd] = []

    def make(name: str = "node", *, force: str | None = None, extra: str = "") -> Sshd:
        made.append(Sshd(tmp_path, name, force=force, extra=extra))
        return made[-1]

    yield make
    for one in made:
        one.stop()


async def test_an_agent_starts_and_nothing_stays(server: Server, tmp_path: Path) -> None:
    """After a run neither agent, ssh, its connection master nor its folder is there."""
    config = client_config(tmp_path, server())
    async with Launcher() as launcher:
        folder = await launcher.folder.path()
        assert folder.stat().st_mode & 0o777 == 0o700
        link = await start_agent(ssh(target("node", config)), HOST, key=KEY, launcher=launcher)
        reply = await link.request(RouteOrder(0, "127.0.0.1", None), Routed)
        assert reply.dev == "lo"
        await link.close()
        assert link.exit_status == 0
        await gone(link.hello.pid)
    assert not folder.exists()
    # A master that was told to end needs a moment for it.
    await until(lambda: not naming(str(folder)), "the connection master to end")


async def test_a_second_start_reuses_the_connection(
    server: Server, tmp_path: Path, start: Start
) -> None:
    """Within a run a host is logged in to once."""
    node = server()
    host = ssh(target("node", client_config(tmp_path, node)))
    await start(host)
    await start(host)
    assert node.logins() == 1


@pytest.mark.slow
async def test_noise_before_the_hello_does_no_harm(
    server: Server, tmp_path: Path, start: Start
) -> None:
    """Banners, a profile that prints without a newline, stty and a slow start are skipped."""
    (tmp_path / "banner").write_text("UNAUTHORISED ACCESS IS FORBIDDEN\n" * 20)
    noisy = (
        "printf 'Last login: never\\nwelcome> '; stty sane; echo oops >&2; sleep 0.6; "
        'head -c 100000 /dev/zero | tr "\\0" x; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    )
    node = server(force=noisy, extra=f"Banner {tmp_path}/banner\n")
    link = await start(ssh(target("node", client_config(tmp_path, node))))
    assert link.hello.wire == WIRE_VERSION


@pytest.mark.parametrize("shell", SHELLS)
async def test_every_login_shell_hands_the_script_on(
    server: Server, tmp_path: Path, start: Start, shell: str
) -> None:
    """The one quoted word survives whatever shell the user has on that host."""
    require(shell)
    node = server(force=f'exec {shell} -c "$SSH_ORIGINAL_COMMAND"')
    link = await start(ssh(target("node", client_config(tmp_path, node)), sudo=True))
    assert link.hello.wire == WIRE_VERSION


def test_lines_of_two_sizes_cross_every_login_shell(server: Server, tmp_path: Path) -> None:
    """By a login with few algorithms, whatever the user's own configuration asks for."""
    for shell in ("sh", "tcsh", "fish"):
        require(shell)
        node = server(f"node-{shell}", force=f'exec {shell} -c "$SSH_ORIGINAL_COMMAND"')
        config = client_config(tmp_path, node, lines="Ciphers aes256-ctr\n")
        words = small_argv(ssh(target(node.name, config)), LINES_SCRIPT)
        done = subprocess.run(
            words, input="abc\nlong\n", capture_output=True, text=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
        assert done.stdout.splitlines()[::3] == ["NETPROBE-LINES", "was long"], done.stderr
        assert done.stdout.splitlines()[1] == "has 3"


async def test_a_jump_host_is_crossed(server: Server, tmp_path: Path, start: Start) -> None:
    """ProxyJump works, from the options and from the configuration, and is what limits starts."""
    bastion, node = server("bastion"), server("node")
    config = client_config(tmp_path, bastion, node)
    host = ssh(target("node", config, "-o", "ProxyJump=bastion"))
    assert await first_hop(host) == "bastion"
    await start(host)
    assert (bastion.logins(), node.logins()) == (1, 1)


@pytest.mark.parametrize(
    ("name", "extra", "words", "fix"),
    [
        ("127.0.0.1", "", "connect failed: Connection refused", "nothing listens on that port"),
        ("no.such.host.invalid", "", "connect failed: Name or service", "does it know that name"),
        (
            "127.0.0.1",
            "AllowTcpForwarding no\n",
            "administratively prohibited",
            "forbids forwarding",
        ),
    ],
)
async def test_what_a_jump_host_could_not_reach_is_told(
    server: Server, tmp_path: Path, start: Start, name: str, extra: str, words: str, fix: str
) -> None:
    """The words of the jump host's ssh stand there, not that the connection through it ended."""
    config = client_config(tmp_path, server("bastion", extra=extra))
    options = ("-o", "ProxyJump=bastion", "-p", str(free_port()))
    error = await failure(start, *options, config=config, name=name)
    assert words in str(error)
    assert fix in str(error)


def test_the_first_hop_is_read_from_the_configuration() -> None:
    """Jump hosts, then a proxy command, then the host itself share the starts' limit."""
    assert read_hop("hostname a\nproxyjump b,c\n") == "b"
    assert read_hop("hostname a\nproxycommand nc -x p %h %p\n") == "nc -x p %h %p"
    assert read_hop("hostname a\nproxyjump none\n") == "a"
    assert read_hop("") is None


async def test_at_most_eight_starts_at_once(launcher: Launcher) -> None:
    """Hosts behind one hop share its eight places; another hop has its own."""
    async with contextlib.AsyncExitStack() as started:
        for number in range(8):
            await started.enter_async_context(launcher.turn("bastion", f"a{number}"))
        await started.enter_async_context(launcher.turn("other", "c"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(launcher.turn("bastion", "b").__aenter__(), 0.05)
    async with asyncio.timeout(PATIENCE_S), launcher.turn("bastion", "b"):
        pass


async def test_starts_that_take_long_hold_no_place(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight dead hosts behind a bastion do not hold the living ones."""
    monkeypatch.setattr(launch_module, "SLOT_S", 0.05)
    async with contextlib.AsyncExitStack() as started:
        for number in range(8):
            await started.enter_async_context(launcher.turn("bastion", f"dead{number}"))
        async with asyncio.timeout(PATIENCE_S), launcher.turn("bastion", "alive"):
            pass
    # A place that was given up is not given back twice.
    assert launcher._slots["bastion"]._value == 8


async def failure(start: Start, *words: str, config: Path, name: str = "node") -> AgentError:
    """The error of a start that must fail."""
    with pytest.raises(AgentError) as caught:
        await start(ssh(target(name, config, *words)))
    return caught.value


async def test_a_refused_key_is_told_and_not_repeated(
    server: Server, tmp_path: Path, start: Start
) -> None:
    """Another try would lock accounts; the fix is named."""
    node = server()
    config = client_config(tmp_path, node)
    (tmp_path / "authorized_keys").write_text("")
    error = await failure(start, config=config)
    assert error.reason == "no-vantage"
    assert "Permission denied (publickey); ssh cannot ask" in str(error)
    assert "ssh-agent" in str(error)
    assert "tried" not in str(error)


async def test_an_unknown_host_key_is_told(server: Server, tmp_path: Path, start: Start) -> None:
    """A host whose key nobody accepted yet is never trusted silently."""
    config = client_config(tmp_path, server())
    (tmp_path / "known_hosts").write_text("")
    error = await failure(start, config=config)
    assert "Host key verification failed" in str(error)
    assert "known_hosts" in str(error)
    assert isinstance(error, HostKeyError)
    assert error.host_key.state == "unknown"
    (trouble,) = word_host_keys({"node": error.host_key})
    command = trouble.to_do.partition("accept it: ")[2]
    run_words(shlex.split(command.replace("=ask", "=accept-new")))
    assert fingerprint(tmp_path / "known_hosts") == fingerprint(tmp_path / "node-host.pub")


def forge_known_key(folder: Path, server: Sshd) -> None:
    """Let known_hosts hold another key of the server, as after an attack or a new installation."""
    other = folder / "other-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    key = other.with_suffix(".pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {key}")


def fingerprint(path: Path) -> str:
    """The fingerprint of a key, as ssh-keygen itself gives it."""
    return run_words(["ssh-keygen", "-l", "-f", str(path)]).split()[1]


def run_words(words: list[str]) -> str:
    """What a command prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


async def test_a_changed_host_key_may_be_an_attack(
    server: Server, tmp_path: Path, start: Start
) -> None:
    """It is not called unknown: the danger, the fingerprint, and how to forget it once checked."""
    node = server()
    config = client_config(tmp_path, node)
    forge_known_key(tmp_path, node)
    found = await failure(start, config=config)
    assert isinstance(found, HostKeyError)
    sent = f"ED25519 {fingerprint(tmp_path / 'node-host.pub')}"
    name, file = f"[127.0.0.1]:{node.port}", f"{tmp_path}/known_hosts"
    known = (found.host_key.state, found.host_key.name, found.host_key.file, found.host_key.sent)
    assert known == ("changed", name, file, sent)
    error = str(found)

    assert f"THE HOST KEY HAS CHANGED: {name} now shows the ED25519 key " in error
    assert fingerprint(tmp_path / "node-host.pub") in error
    assert f"({tmp_path}/known_hosts, line 1)" in error
    assert "This may be an attack" in error
    checked, command = error.split("only if it is this one: ")
    assert "Ask those who keep it for its fingerprint" in checked
    assert command.startswith(
        f"ssh-keygen -f {tmp_path}/known_hosts -R '[127.0.0.1]:{node.port}', then"
    )
    assert "not known yet" not in error
    assert "tried" not in error
    assert node.logins() == 0
    run_words(shlex.split(command.partition(", then")[0]))
    assert (tmp_path / "known_hosts").read_text() == "", "the command forgets the key"


async def test_a_jump_host_whose_key_changed(server: Server, tmp_path: Path, start: Start) -> None:
    """The same words where it is the bastion that shows another key."""
    bastion, node = server("bastion"), server("node")
    config = client_config(tmp_path, bastion, node)
    known = (tmp_path / "known_hosts").read_text().splitlines(keepends=True)
    forge_known_key(tmp_path, bastion)
    with (tmp_path / "known_hosts").open("a") as file:
        file.write(known[1])
    error = str(await failure(start, "-o", "ProxyJump=bastion", config=config))

    assert "THE HOST KEY HAS CHANGED" in error
    assert fingerprint(tmp_path / "bastion-host.pub") in error
    assert f"-R '[127.0.0.1]:{bastion.port}'" in error


CAUSES = ("no login shell (nologin, false)", "ForceCommand in sshd_config", "(profile, bashrc)")


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ("echo This account is currently not available.; exit 1", "is currently not available."),
        ("echo only backups here >&2; exit 0", "ended with status 0: only backups here."),
        ("exit 3", "ended with status 3."),
    ],
    ids=["nologin", "forced", "profile"],
)
async def test_a_login_shell_that_ends(
    server: Server, tmp_path: Path, start: Start, force: str, said: str
) -> None:
    """Its own last words, on stdout or stderr, and the three likely causes."""
    error = str(await failure(start, config=client_config(tmp_path, server(force=force))))

    assert said.rstrip(".") in error
    assert "The login went well, but its shell ended" in error
    assert all(cause in error for cause in CAUSES)


@pytest.mark.slow
async def test_a_login_shell_that_hangs(server: Server, tmp_path: Path) -> None:
    """A menu that waits for a key says so in what it printed."""
    config = client_config(tmp_path, server(force="echo Choose 1 or 2:; read key"))
    async with Launcher(start_timeout_s=5.0) as launcher:
        with pytest.raises(AgentError, match=r"no agent after 5 s.*; Choose 1 or 2:"):
            await start_agent(ssh(target("node", config)), HOST, key=KEY, launcher=launcher)


async def test_a_refused_connection_is_tried_three_times(tmp_path: Path, start: Start) -> None:
    """A connection that fails may pass: two more tries, then ssh's words."""
    config = client_config(tmp_path)
    options = ("-F", str(config), "-p", str(free_port()))
    error = await failure(start, *options, config=config, name="127.0.0.1")
    assert "Connection refused" in str(error)
    assert "(tried 3 times)" in str(error)


async def test_a_second_try_can_succeed(server: Server, tmp_path: Path, start: Start) -> None:
    """sshd that hangs up on the first connection (MaxStartups) is asked again."""
    node = server()
    config = client_config(tmp_path, node)
    once = tmp_path / "once"
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    command = f"exec {sys.executable} {relay} {node.port}"
    proxy = f"sh -c 'test -e {once} && {command}; touch {once}; exit 1'"
    link = await start(ssh(target("node", config, "-o", f"ProxyCommand={proxy}")))
    assert link.hello.wire == WIRE_VERSION


RELAY = """
import socket, sys, threading, os
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while True:
        d = os.read(0, 65536)
        if not d: break
        s.sendall(d)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while True:
    d = s.recv(65536)
    if not d: break
    os.write(1, d)
"""


async def test_a_name_that_is_none_is_told(tmp_path: Path, start: Start) -> None:
    """A typing error in the inventory is not tried again."""
    error = await failure(start, config=client_config(tmp_path), name="no.such.host.invalid")
    assert "Could not resolve hostname" in str(error)
    assert "inventory" in str(error)


async def test_a_missing_ssh_is_told(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator without OpenSSH says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentError, match="ssh is not installed"):
        await start(ssh(target("node", client_config(tmp_path))))


async def until_lost(link: AgentLink) -> None:
    """Ask on: ssh's master has the pipes too, and may still bring an answer or two."""
    while True:
        await link.request(SeenOrder(0, 1, [], rest=True), Seen)


async def test_a_killed_ssh_loses_the_agent_at_once(
    server: Server, tmp_path: Path, start: Start
) -> None:
    """Whoever waits for an answer learns of it, and the agent on the host is gone."""
    link = await start(ssh(target("node", client_config(tmp_path, server()))))
    frames = link.subscribe(7)
    os.killpg(link.pid, signal.SIGKILL)
    with pytest.raises(AgentError) as caught:
        await until_lost(link)
    assert caught.value.reason == "agent-lost"
    assert "signal 9" in str(caught.value)
    assert isinstance(await frames.get(), LinkLost)
    await gone(link.hello.pid)


COORDINATOR = """
import asyncio, sys
from netprobe.model.inventory import Ssh
from netprobe.vantage import launch as launch_module
from netprobe.vantage.launch import Launcher, start_agent
from tests.vantage.support import KEY, ssh

async def main():
    async with Launcher(silence_s=1000.0) as launcher:
        host = ssh(Ssh("node", options=("-F", sys.argv[1])))
        link = await start_agent(host, 1, key=KEY, launcher=launcher)
        print(link.hello.pid, await launcher.folder.path(), flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_a_killed_coordinator_leaves_neither_agent_nor_folder(
    server: Server, tmp_path: Path
) -> None:
    """SIGKILL: the agent, ssh, its master and the folder of its socket are gone all the same."""
    config = client_config(tmp_path, server())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COORDINATOR, str(config)),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    pid, folder = (await process.stdout.readline()).decode().split()
    process.kill()
    await process.wait()
    await gone(int(pid))
    await until(lambda: not Path(folder).exists() and not naming(folder))


# A master that stands still takes connections and answers none. A run that ends waits for it for a
# moment. Then its loop is closed, and must hear nothing of the end of what cleans.
STOPPED_MASTER = """
import asyncio, gc, socket, threading, time
from netprobe.vantage.ssh import PrivateFolder

async def main():
    folder = PrivateFolder()
    path = await folder.path()
    master = socket.socket(socket.AF_UNIX)
    master.bind(str(path / "master"))
    master.listen()
    await folder.close(0.3)
    return path, master

path, master = asyncio.run(main())
print(path.exists())
master.close()
while path.exists() or threading.active_count() > 1:
    time.sleep(0.01)
gc.collect()
"""


def test_a_master_that_stands_still_holds_no_end_up(tmp_path: Path) -> None:
    """Nothing is printed about it, and the folder goes when the master has gone."""
    require("ssh")
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_MASTER],
        capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("True\n", "")
