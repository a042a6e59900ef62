"""``become: sudo`` with the real sudo and a real user: the password, its absence, its secrecy."""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from netprobe.agent.wire.host_messages import (
    Routed,
    RouteOrder,
)
from netprobe.model.inventory import Host
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from netprobe.vantage.process import SECRET_VARIABLES
from netprobe.vantage.runtime.cache import Runtimes
from tests.patience import until
from tests.sudoers import write_rules
from tests.vantage.runtime.support import lean_host, session_runtime
from tests.vantage.support import HOST, KEY, command, local

USER = f"nptest{os.getpid()}"
PASSWORD = "correct horse ' battery $taple"
READABLE = ("cmdline", "environ")
RULES = Path(f"/etc/sudoers.d/{USER}")

pytestmark = pytest.mark.needs("new users", "processes of others", "sudo", "useradd", "runuser")


@pytest.fixture(scope="module", autouse=True)
def _user() -> Iterator[None]:
    """A user with a password, who is gone after the tests."""
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", USER], check=True)
    subprocess.run(["chpasswd"], input=f"{USER}:{PASSWORD}\n", text=True, check=True)
    yield
    subprocess.run(["userdel", USER], check=True)


@pytest.fixture
def rules() -> Iterator[Callable[[str], None]]:
    """Write what sudoers says of the user."""

    yield partial(write_rules, RULES)
    RULES.unlink(missing_ok=True)


def user_host() -> Host:
    """This machine, as the unprivileged user."""
    return command("runuser", "-u", USER, "--", sudo=True)


async def started(password: str | None) -> AgentLink:
    """Start an agent as the user; the caller closes it."""
    async with Launcher(become_password=password) as launcher:
        return await start_agent(user_host(), HOST, key=KEY, launcher=launcher)


async def uid_and_cost(
    password: str | None,
) -> tuple[int, str | None]:
    """Whose rights the agent got, and what a failure of sudo cost."""
    link = await started(password)
    try:
        await link.request(RouteOrder(0, "127.0.0.1", None), Routed)
        return link.hello.uid, link.cost
    finally:
        await link.close()


async def test_a_password_makes_the_agent_root(rules: Callable[[str], None]) -> None:
    """The password goes in once, after sudo's own prompt, and the agent runs as root."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    assert await uid_and_cost(PASSWORD) == (0, None)


async def test_nopasswd_needs_none(rules: Callable[[str], None]) -> None:
    """NOPASSWD works with no password at hand, and where one is at hand it is not sent."""
    rules(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    assert await uid_and_cost(None) == (0, None)
    assert await uid_and_cost(PASSWORD) == (0, None)


@pytest.mark.slow
async def test_a_wrong_password_costs_the_privilege(rules: Callable[[str], None]) -> None:
    """sudo asks a second time: the agent runs unprivileged, and the note has sudo's words."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    uid, cost = await uid_and_cost("wrong")
    assert uid != 0
    assert cost is not None
    assert cost.startswith("sudo failed (Sorry, try again; ")
    assert "netprobe-sudo" not in cost
    assert "unprivileged" in cost
    assert "wrong" not in cost
    assert cost.endswith("; it got a password: is it this user's, and may this user use sudo?")


async def test_no_password_costs_the_privilege(rules: Callable[[str], None]) -> None:
    """Without a password sudo is not left waiting for one."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    uid, cost = await uid_and_cost(None)
    assert uid != 0
    assert "a password is required" in str(cost)
    assert "; --ask-become-pass asks for its password" in str(cost)


async def test_a_user_who_may_not_gets_sudos_words(rules: Callable[[str], None]) -> None:
    """Whoever is not in sudoers learns that."""
    rules("")
    uid, cost = await uid_and_cost(PASSWORD)
    assert uid != 0
    assert "sudoers" in str(cost) or "not allowed" in str(cost)


async def test_requiretty_gets_sudos_words(rules: Callable[[str], None]) -> None:
    """requiretty cannot be met: stdin is the protocol."""
    rules(f"Defaults:{USER} requiretty\n{USER} ALL=(ALL) NOPASSWD: ALL\n")
    uid, cost = await uid_and_cost(PASSWORD)
    assert uid != 0
    assert "tty" in str(cost)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: those above pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


async def test_a_host_without_sudo_runs_unprivileged(open_folder: Path) -> None:
    """A container image without sudo is an ordinary host."""
    for name in ("/bin/sh", "/usr/bin/id", "/usr/bin/python3"):
        (open_folder / Path(name).name).symlink_to(name)
    host = command(
        *("setpriv", "--reuid", USER, "--clear-groups", "env", f"PATH={open_folder}"), sudo=True
    )
    async with Launcher(become_password=PASSWORD) as launcher:
        link = await start_agent(host, HOST, key=KEY, launcher=launcher)
        assert link.hello.uid != 0
        assert "sudo" in str(link.cost)
        assert "not found" in str(link.cost)
        await link.close()


@pytest.mark.slow
@pytest.mark.parametrize("password", [PASSWORD, None])
async def test_a_host_without_python_has_sudo(
    rules: Callable[[str], None],
    open_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    password: str | None,
) -> None:
    """The Python that is sent runs as root too, and without a password as the user: either leaves
    nothing behind."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    lean = lean_host(open_folder / "bin").vantage.command
    (open_folder / "bin/sudo").symlink_to("/usr/bin/sudo")
    words = ("setpriv", "--reuid", USER, "--clear-groups", *lean)
    runtimes = Runtimes([session_runtime(tmp_path_factory)])
    async with Launcher(become_password=password, runtimes=runtimes) as launcher:
        link = await start_agent(command(*words, sudo=True), HOST, key=KEY, launcher=launcher)
        assert link.is_python_sent
        assert (link.hello.uid == 0) == (password is not None)
        assert (link.cost is None) == (password is not None)
        folder = Path(os.readlink(f"/proc/{link.hello.pid}/exe")).parent
        await link.close()
    await until(lambda: not folder.exists())


async def test_root_needs_no_sudo() -> None:
    """Where the agent is root already, sudo is not asked."""
    async with Launcher(become_password=PASSWORD) as launcher:
        link = await start_agent(local(sudo=True), HOST, key=KEY, launcher=launcher)
        assert (link.hello.uid, link.cost) == (0, None)
        await link.close()


async def test_no_core_dumps_with_sudo(rules: Callable[[str], None]) -> None:
    """Where a password may be near, neither sudo's shell nor the agent leaves a core behind."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    link = await started(PASSWORD)
    try:
        limits = _read(f"/proc/{link.hello.pid}/limits").decode()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
        await link.close()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert line.split()[4] == "0"


def _read(place: str) -> bytes:
    return Path(place).read_bytes()


async def test_the_password_is_nowhere_to_be_read(
    rules: Callable[[str], None], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither argv nor environment of any process, nor a log, repr or note shows the password."""
    rules(f"{USER} ALL=(ALL) ALL\n")
    for name in SECRET_VARIABLES:
        monkeypatch.setenv(name, PASSWORD)
    secret = PASSWORD.encode()
    with caplog.at_level(logging.DEBUG):
        async with Launcher(become_password=PASSWORD) as launcher:
            link = await start_agent(user_host(), HOST, key=KEY, launcher=launcher)
            places = [f"/proc/{p}/{n}" for p in (link.pid, link.hello.pid) for n in READABLE]
            assert not [place for place in places if secret in _read(place)]
            assert PASSWORD not in repr(launcher) + repr(link)
            await link.close()
    assert PASSWORD not in caplog.text
