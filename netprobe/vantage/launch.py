"""Start an agent on a host: the way there, tries, sudo and its fallback, all within limits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from netprobe.agent.wire.frames import SILENCE_S
from netprobe.agent.wire.orders import StartOrder
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.vantage import ssh
from netprobe.vantage.base import Way
from netprobe.vantage.command import COMMAND
from netprobe.vantage.folder import PrivateFolder
from netprobe.vantage.handshake import Greeting, Handshake, Secret, StartFailed, new_token
from netprobe.vantage.link import AgentLink, Beats
from netprobe.vantage.local import LOCAL
from netprobe.vantage.process import AgentProcess
from netprobe.vantage.script import USELESS_LINE, agent_script, sudo_asking, sudo_silent

VANTAGES: dict[str, Way] = {"local": LOCAL, "ssh": ssh.SSH, "command": COMMAND}

START_TIMEOUT_S = 30.0
STARTS_PER_HOP = 8
# Over all hops: the start's timeout is a host's own time, not that of waiting for our processor.
STARTS_AT_ONCE = 128
TRIES = 3
RETRY_S = 1.0

Password = str | Callable[[], str | None] | None


class Launcher:
    """What the starts of one run share: connection folder, limits, the become password.

    ``become_password`` is a password, or a function that asks for it when sudo is first used.
    """

    def __init__(
        self,
        *,
        become_password: Password = None,
        start_timeout_s: float = START_TIMEOUT_S,
        silence_s: float = SILENCE_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self.start_timeout_s = start_timeout_s
        self.retry_s = retry_s
        self.beats = Beats(interval_s=silence_s / 6, silence_s=silence_s)
        self._ask = become_password if callable(become_password) else None
        text = become_password if isinstance(become_password, str) else None
        self._secret = Secret(text) if text else None
        self._password_lock = asyncio.Lock()
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._hops: dict[str, str | None] = {}
        self.starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self.folder = PrivateFolder()

    async def __aenter__(self) -> Launcher:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.folder.close()

    async def hop(self, host: Host, way: Way) -> str | None:
        """The first hop of a host, looked up once. Raises FileNotFoundError without ssh."""
        if host.name not in self._hops:
            async with self.starts:
                self._hops[host.name] = await way.hop(host)
        return self._hops[host.name]

    def slot(self, hop: str | None, host: str) -> asyncio.Semaphore:
        """What limits the starts in progress through one first hop."""
        return self._slots.setdefault(hop or f"host {host}", asyncio.Semaphore(STARTS_PER_HOP))

    async def password(self) -> Secret | None:
        """The become password; a function is asked once, in a thread: it may wait for a user."""
        async with self._password_lock:
            if self._ask is not None:
                text = await asyncio.to_thread(self._ask)
                self._ask = None
                self._secret = Secret(text) if text else None
            return self._secret


async def start_agent(host: Host, index: int, *, key: bytes, launcher: Launcher) -> AgentLink:
    """An agent that runs on the host and has had its ``start`` frame.

    Raises AgentError with reason ``no-vantage``, ``no-python`` or ``start-timeout``; the text has
    the words of ssh or of the host, and the fix.
    """
    way = VANTAGES.get(host.vantage.kind)
    if way is None:
        raise AgentError("no-vantage", f"{host.name}: the inventory says `vantage: none`")
    link = await _start_with_sudo(host, way, launcher)
    silence_s = launcher.beats.silence_s
    link.send(StartOrder(key, index, silence_s))
    return link


async def _start_with_sudo(host: Host, way: Way, launcher: Launcher) -> AgentLink:
    if host.become is None:
        return await _start_in_turn(host, way, launcher, None)
    try:
        return await _start_in_turn(host, way, launcher, await launcher.password(), sudo=True)
    except _SudoFailed as failed:
        cost = (
            f"sudo failed ({failed}), so the agent runs unprivileged: no raw sockets, "
            "no ports below 1024, no owners of other users' ports"
        )
        return await _start_in_turn(host, way, launcher, None, cost=cost)


class _SudoFailed(Exception):
    """sudo ended without an agent; the text is its own words."""


class _TryAgain(Exception):
    """The connection failed in a way that may pass; the text is for the user."""


async def _start_in_turn(
    host: Host,
    way: Way,
    launcher: Launcher,
    password: Secret | None,
    *,
    sudo: bool = False,
    cost: str | None = None,
) -> AgentLink:
    """Start, at most 8 at once per first hop, again where the connection itself failed."""
    try:
        slot = launcher.slot(await launcher.hop(host, way), host.name)
    except FileNotFoundError as error:
        raise AgentError(
            "no-vantage", f"{host.name}: {error.filename} is not installed here"
        ) from None
    for attempt in range(TRIES):
        try:
            async with slot, launcher.starts:
                # ssh hides what a jump host says while it keeps a connection for later starts.
                folder = await launcher.folder.path() if way.needs_folder and not attempt else None
                process, greeting = await _start_once(
                    host, way, launcher, password, folder=folder, sudo=sudo
                )
                return AgentLink(host.name, process, greeting, launcher.beats, cost)
        except _TryAgain as again:
            if attempt == TRIES - 1:
                words = f"{host.name}: {again} (tried {TRIES} times)"
                raise AgentError("no-vantage", words) from None
        # All hosts behind one hop fail together; they should not come back together.
        await asyncio.sleep(launcher.retry_s * (attempt + random.uniform(0.5, 1.0)))
    raise AssertionError("unreachable")


async def _start_once(
    host: Host,
    way: Way,
    launcher: Launcher,
    password: Secret | None,
    *,
    folder: Path | None,
    sudo: bool,
) -> tuple[AgentProcess, Greeting]:
    token = new_token()
    become = "" if not sudo else sudo_asking(token) if password is not None else sudo_silent()
    argv = way.argv(host, agent_script(become), folder)
    try:
        process = await AgentProcess.spawn(argv)
    except OSError as error:
        words = f"{host.name}: {argv[0]} cannot be run here: {error.strerror}"
        raise AgentError("no-vantage", words) from None
    handshake = Handshake(process, token, password)
    try:
        greeting = await asyncio.wait_for(handshake.run(), launcher.start_timeout_s)
    except BaseException as error:
        await process.kill()
        raise _translated(error, host, way, handshake, process, launcher) from None
    return process, greeting


def _translated(
    error: BaseException,
    host: Host,
    way: Way,
    handshake: Handshake,
    process: AgentProcess,
    launcher: Launcher,
) -> BaseException:
    """The exception that tells what a failed start means."""
    said = [news for line in process.last_words() if (news := handshake.news(line))]
    if isinstance(error, TimeoutError) and handshake.stage != "sudo":
        words = f"{host.name}: no agent after {launcher.start_timeout_s:g} s"
        return AgentError("start-timeout", "; ".join([words, *said]))
    if isinstance(error, TimeoutError):
        return _SudoFailed(f"no answer in {launcher.start_timeout_s:g} s")
    if not isinstance(error, StartFailed):
        return error
    if error.stage == "sudo":
        return _SudoFailed("; ".join(line.rstrip(".") for line in said) or str(error))
    if error.stage == "no-python":
        return AgentError("no-python", f"{host.name}: {_no_python(said)}")
    if error.stage == "hello":
        return AgentError("no-vantage", "; ".join([f"{host.name}: {error}", *said]))
    trouble = way.explain(host, process.status, said)
    if trouble.transient and error.stage == "connect":
        return _TryAgain(trouble.words)
    return AgentError("no-vantage", f"{host.name}: {trouble.words}")


def _no_python(said: Sequence[str]) -> str:
    """What is wrong with the Pythons of a host; one that does not start says why itself."""
    useless = [line.partition(USELESS_LINE)[2].strip() for line in said if USELESS_LINE in line]
    for found in filter(None, useless):
        path, _, printed = found.partition(":")
        told = f"prints: {printed.strip()}" if printed else "prints nothing when it is asked by -V"
        return f"no Python 3.6 or later works there ({path} {told}); repair or install python3"
    words = "no Python 3.6 or later was found there (python3, platform-python, python3.N)"
    return f"{words}; install python3"
