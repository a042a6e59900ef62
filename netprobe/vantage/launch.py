"""Starts an agent on a host: connection, tries, sudo and the start without it, within limits.

Of a host without a Python of use: what is said of it, and which Python can be sent to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from netprobe.agent.wire.frames import SILENCE_S
from netprobe.agent.wire.orders import StartOrder
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.vantage import ssh
from netprobe.vantage.base import COMMAND, LAST_LINES, LOCAL, HostKeyError, Trouble, Way
from netprobe.vantage.handshake import Greeting, Handshake, Secret, StartFailed, new_token
from netprobe.vantage.large_packets import ANSWER_S, LINES_SCRIPT, find_hole, word_hole
from netprobe.vantage.link import AgentLink, Beats
from netprobe.vantage.pack import BOOTSTRAP
from netprobe.vantage.patience import GRACE_S
from netprobe.vantage.pauses import LATE_S, TURN_S
from netprobe.vantage.process import AgentProcess, measure_wait_s
from netprobe.vantage.runtime.cache import NoRuntime, Runtimes
from netprobe.vantage.runtime.file import Runtime
from netprobe.vantage.runtime.script import USELESS_RUNTIME_LINE, runtime_script
from netprobe.vantage.script import SUDO_LINE, USELESS_LINE, agent_script

VANTAGES: dict[str, Way] = {"local": LOCAL, "ssh": ssh.SSH, "command": COMMAND}

START_TIMEOUT_S = 30.0
STARTS_PER_HOP = 8
# Over all hops: a host's timeout must not run out while its start waits for our processor.
STARTS_AT_ONCE = 128
TRIES = 3
RETRY_S = 1.0
# A start that takes longer waits for its own host, and lets others through the hop meanwhile.
SLOT_S = 3.0
# What a start may take longer for each byte that is sent before it: 100 KB a second.
SEND_S_PER_BYTE = 1e-5
# What a start waits for a processor of this machine, or while this machine stands still, comes on
# top, up to so many times the limit. It is looked at again as long as it grows by this much.
MOST_LIMITS = 4
LEAST_MORE_S = 0.5
# A command that is ending needs a moment before it is killed.
FAILED_START_S = 0.2

# What a host says about the Python that it got may be long.
MOST_WORDS = 400

# What helps where a host has no Python, and cannot get ours.
_WAYS = (
    "or install python3 there, or start the agent in a container that has one (`vantage: {command: "
    "[podman, ...]}`, docs/compose.md), or say `vantage: none`: then the host is a destination only"
)


class Launcher:
    """The starts of one run share this: connection folder, limits, the become password."""

    def __init__(
        self,
        *,
        become_password: str | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        silence_s: float = SILENCE_S,
        grace_s: float = GRACE_S,
        retry_s: float = RETRY_S,
        runtimes: Runtimes | None = None,
    ) -> None:
        self.runtimes = runtimes or Runtimes()
        self.start_timeout_s = start_timeout_s
        self.retry_s = retry_s
        self.beats = Beats(silence_s / 6, silence_s, grace_s)
        self.password = Secret(become_password) if become_password else None
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._hops: dict[str, str | None] = {}
        self.starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self.folder = ssh.PrivateFolder()

    async def __aenter__(self) -> Launcher:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        await self.folder.close(ssh.CLOSE_S if kind is None else ssh.HURRIED_CLOSE_S)

    async def hop(self, host: Host, way: Way) -> str | None:
        """Find the first hop of a host, once. Raises FileNotFoundError without ssh."""
        if host.name not in self._hops:
            async with self.starts:
                self._hops[host.name] = await way.hop(host) if way.hop is not None else None
        return self._hops[host.name]

    @contextlib.asynccontextmanager
    async def turn(self, hop: str | None, host: str) -> AsyncIterator[None]:
        """Wait for a place among the starts in progress, at most 8 through one first hop.

        The place at the hop is given up after SLOT_S: so dead hosts do not hold the others.
        """
        slot = self._slots.setdefault(hop or f"host {host}", asyncio.Semaphore(STARTS_PER_HOP))
        await slot.acquire()
        places = contextlib.ExitStack()
        places.callback(slot.release)
        timer = asyncio.get_running_loop().call_later(SLOT_S, places.close)
        with places:
            try:
                async with self.starts:
                    yield
            finally:
                timer.cancel()


async def start_agent(host: Host, index: int, *, key: bytes, launcher: Launcher) -> AgentLink:
    """Start an agent on the host and send it its ``start`` frame.

    Raises AgentError with reason ``no-vantage``, ``no-python`` or ``start-timeout``; the text has
    the words of ssh or of the host, and the fix.
    """
    way = VANTAGES.get(host.vantage.kind)
    if way is None:
        raise AgentError("no-vantage", f"{host.name}: the inventory says `vantage: none`")
    link = await _Start(host, way, launcher).start()
    link.send(StartOrder(key, index, launcher.beats.silence_s))
    return link


class NoPython(Exception):
    """The host has no Python; the text says so, and ``machine`` is what it is (``uname -m``)."""

    def __init__(self, said: Sequence[str], machine: str) -> None:
        super().__init__(_word_useless_pythons(said))
        self.machine = machine


class _SudoFailed(Exception):
    """sudo ended without an agent; the text is its own words."""


class _TryAgain(Exception):
    """The connection failed in a way that may pass."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.words)
        self.trouble = trouble


class _Start:
    """The start of one host's agent, by its vantage."""

    def __init__(self, host: Host, way: Way, launcher: Launcher) -> None:
        self._host = host
        self._way = way
        self._launcher = launcher
        self._runtime: Runtime | None = None
        self._more_s = 0.0

    async def start(self) -> AgentLink:
        """Start; of a start that hangs, see whether large packets get lost. Raises AgentError."""
        try:
            return await self._start_with_some_python()
        except AgentError as error:
            if error.reason != "start-timeout":
                raise
            raise await self._look_for_hole(error) from None

    async def _look_for_hole(self, error: AgentError) -> AgentError:
        way, host = self._way, self._host
        if way.small is None or way.target is None:
            return error
        limit_s = min(ANSWER_S, self._launcher.start_timeout_s)
        hole = await find_hole(way.small(host, LINES_SCRIPT), limit_s)
        if hole is None:
            return error
        return error.with_cause("mtu-black-hole", word_hole(hole, way.target(host)))

    async def _start_with_some_python(self) -> AgentLink:
        """Start with a Python of the host, and with one that we send where it has none."""
        try:
            return await self._start_with_sudo()
        except NoPython as none:
            runtimes = self._launcher.runtimes
            self._runtime = await find_runtime(self._host.name, none, runtimes)
        link = await self._start_with_sudo()
        link.is_python_sent = True
        return link

    async def _start_with_sudo(self) -> AgentLink:
        """Start with sudo where the host wants it, and without it where sudo fails."""
        if self._host.become is None:
            return await self._start_in_turn(None)
        try:
            return await self._start_in_turn(self._launcher.password, sudo=True)
        except _SudoFailed as failed:
            hint = (
                "--ask-become-pass asks for its password"
                if self._launcher.password is None
                else "it got a password: is it this user's, and may this user use sudo?"
            )
            cost = (
                f"sudo failed ({failed}), so the agent runs unprivileged: no raw sockets, "
                f"no ports below 1024, no owners of other users' ports; {hint}"
            )
            return await self._start_in_turn(None, cost=cost)

    async def _start_in_turn(
        self, password: Secret | None, *, sudo: bool = False, cost: str | None = None
    ) -> AgentLink:
        """Start, at most 8 at once per first hop, again where the connection itself failed."""
        host, way, launcher = self._host, self._way, self._launcher
        try:
            hop = await launcher.hop(host, way)
        except FileNotFoundError as error:
            raise self._make_error(f"{error.filename} is not installed here") from None
        for attempt in range(TRIES):
            try:
                async with launcher.turn(hop, host.name):
                    # ssh hides a jump host's words while it keeps a connection for later starts.
                    shared = way.needs_folder and not attempt
                    folder = await self._open_folder() if shared else None
                    process, greeting = await self._start_once(password, folder, sudo=sudo)
                    return AgentLink(host.name, process, greeting, launcher.beats, cost)
            except _TryAgain as again:
                if attempt == TRIES - 1:
                    raise self._make_last_error(again.trouble) from None
            # All hosts behind one hop fail together; they should not come back together.
            await asyncio.sleep(launcher.retry_s * (attempt + random.uniform(0.5, 1.0)))
        raise AssertionError("unreachable")

    async def _open_folder(self) -> Path:
        """Give the folder for connections that later starts share. Raises AgentError."""
        try:
            return await self._launcher.folder.path()
        except OSError as error:
            raise self._make_error(str(error)) from None

    async def _start_once(
        self, password: Secret | None, folder: Path | None, *, sudo: bool
    ) -> tuple[AgentProcess, Greeting]:
        token = new_token()
        # With -S sudo prints the token and reads the password; with -n it fails at once.
        become = "sudo -n --" if password is None else f"sudo -S -p {token} --"
        runtime = self._runtime
        script = _make_script(runtime, become if sudo else "")
        argv = self._way.argv(self._host, script, folder)
        try:
            process = await AgentProcess.spawn(argv)
        except OSError as error:
            raise self._make_error(f"{argv[0]} cannot be run here: {error.strerror}") from None
        payload = None if runtime is None else runtime.payload
        handshake = Handshake(process, token, password, payload, sudo=sudo)
        try:
            greeting = await self._await_greeting(handshake, process)
        except BaseException as error:
            await process.end(FAILED_START_S)
            raise self._translate_error(error, handshake, process) from None
        return process, greeting

    async def _await_greeting(self, handshake: Handshake, process: AgentProcess) -> Greeting:
        """Wait for the agent to say hello. Raises TimeoutError where it has not in its time."""
        self._more_s = 0.0
        now = asyncio.get_running_loop().time
        begun_s, still_s = now(), 0.0
        greeting = asyncio.create_task(handshake.run())
        try:
            while True:
                end_s = begun_s + self._limit_s + self._more_s
                turn_s = min(TURN_S, max(0.0, end_s - now()))
                due_s = now() + turn_s
                if (await asyncio.wait({greeting}, timeout=turn_s))[0]:
                    return greeting.result()
                late_s = now() - due_s
                still_s += late_s if late_s > LATE_S else 0.0
                if due_s < end_s:
                    continue
                waited_s = still_s + measure_wait_s(process.pid)
                more_s = min(waited_s, (MOST_LIMITS - 1) * self._limit_s)
                if more_s < self._more_s + LEAST_MORE_S:
                    raise TimeoutError
                self._more_s = more_s
        finally:
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)

    @property
    def _limit_s(self) -> float:
        sent = 0 if self._runtime is None else len(self._runtime.payload)
        return self._launcher.start_timeout_s + sent * SEND_S_PER_BYTE

    def _translate_error(
        self, error: BaseException, handshake: Handshake, process: AgentProcess
    ) -> BaseException:
        """Give the exception that tells the meaning of a failed start."""
        said = [news for line in process.last_words() if (news := handshake.news(line))]
        if isinstance(error, TimeoutError):
            return self._word_timeout(handshake, said)
        if not isinstance(error, StartFailed):
            return error
        useless = read_useless_runtime(self._host.name, said)
        if useless is not None:
            return useless
        if error.stage == "sudo":
            told = said[-LAST_LINES:]
            return _SudoFailed("; ".join(line.rstrip(".") for line in told) or str(error))
        if error.stage == "no-python":
            return NoPython(said, handshake.machine)
        if error.stage == "hello":
            return self._make_error("; ".join([str(error), *said[-LAST_LINES:]]))
        heard = [*said, *handshake.printed]
        began = error.stage != "connect"
        trouble = self._way.explain(self._host, process.status, heard, began)
        if trouble.transient and error.stage == "connect":
            return _TryAgain(trouble)
        return self._make_trouble_error(trouble)

    def _word_timeout(self, handshake: Handshake, said: Sequence[str]) -> Exception:
        limit = f"{self._limit_s:.3g} s"
        if self._more_s:
            limit += f" and {self._more_s:.3g} s for which this machine was busy or stood still"
        if handshake.stage == "sudo":
            return _SudoFailed(f"no answer in {limit}")
        words = f"{self._host.name}: no agent after {limit}"
        told = [*said, *handshake.printed][-LAST_LINES:]
        return AgentError("start-timeout", "; ".join([words, *told]))

    def _make_trouble_error(self, trouble: Trouble) -> AgentError:
        if trouble.host_key is None:
            return self._make_error(trouble.words, trouble.fix)
        words = f"{self._host.name}: {trouble.words}"
        return HostKeyError(words, trouble.fix, trouble.host_key)

    def _make_last_error(self, trouble: Trouble) -> AgentError:
        tried = f" (tried {TRIES} times)"
        if trouble.fix:
            return self._make_error(trouble.words, trouble.fix + tried)
        return self._make_error(trouble.words + tried)

    def _make_error(self, words: str, fix: str = "") -> AgentError:
        return AgentError("no-vantage", f"{self._host.name}: {words}", fix)


def _make_script(runtime: Runtime | None, sudo: str) -> str:
    if runtime is None:
        return agent_script(sudo)
    return runtime_script(runtime, BOOTSTRAP, sudo, SUDO_LINE)


async def find_runtime(host: str, none: NoPython, runtimes: Runtimes) -> Runtime:
    """Find the Python for the host. Raises AgentError, which says why there is none."""
    try:
        return await runtimes.find(none.machine)
    except NoRuntime as error:
        raise AgentError("no-python", f"{host}: {none}; {error}; {_WAYS}") from None


def read_useless_runtime(host: str, said: Sequence[str]) -> AgentError | None:
    """Read why the Python that was sent is of no use on the host; None: nothing says so."""
    for line in said:
        before, found, words = line.partition(f"{USELESS_RUNTIME_LINE}: ")
        if found and not before:
            none = "no Python 3.6 or later is there, and the one that netprobe sent cannot run"
            return AgentError("no-python", f"{host}: {none}: {words[:MOST_WORDS]}; {_WAYS}")
    return None


def _word_useless_pythons(said: Sequence[str]) -> str:
    """Say why no Python of a host is of use; one that does not start says why itself."""
    useless = [line.partition(USELESS_LINE)[2].strip() for line in said if USELESS_LINE in line]
    for found in filter(None, useless):
        path, _, printed = found.partition(":")
        told = f"prints: {printed.strip()}" if printed else "prints nothing when it is asked by -V"
        return f"no Python 3.6 or later works there ({path} {told}); repair it"
    return "no Python 3.6 or later was found there (python3, platform-python, python3.N)"
