"""Leads a started command to an agent's hello: past banners and sudo's question, by the bundle."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Any, Literal

from msgspec import Struct

from netprobe.agent.wire.answers import HelloLine
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import HELLO_PREFIX, NO_PYTHON_LINE, READY_LINE, WIRE_VERSION
from netprobe.vantage.pack import bundle
from netprobe.vantage.process import AgentProcess, lines_of
from netprobe.vantage.runtime.script import SEND_LINE
from netprobe.vantage.script import SUDO_LINE

BANNER_LIMIT_BYTES = 4 * 1024 * 1024
READ_BYTES = 64 * 1024
SEEN_TAIL_BYTES = 2048

# Of a runtime so much is given to the pipe at a time.
PIECE_BYTES = 256 * 1024

StageName = Literal["connect", "sudo", "no-python", "runtime", "agent", "hello"]

# The version stands first, so that it can be read of a hello whose other fields are unknown.
# Before version 3 its kind was ``hello``.
_MACHINE = re.compile(rb"^" + NO_PYTHON_LINE + rb" ([\w-]{1,32})$", re.M)
_HELLO_VERSION = re.compile(rb'\["(?:hello|HelloLine)", ?(\d{1,9})[],]')


class StartFailed(Exception):
    """The command ended, or said the wrong thing, before the agent's hello.

    ``stage`` names the part that failed: the vantage itself, sudo, the search for a Python, the
    Python that we sent, or our own agent. In stage ``hello`` the text says why the hello was
    refused; the others just ended.
    """

    def __init__(self, stage: StageName, text: str) -> None:
        super().__init__(text)
        self.stage: StageName = stage


class Greeting(Struct, frozen=True):
    """The hello of an agent, and the bytes of its frames that were read with it.

    ``skew_s``: by how many seconds at least its clock is ahead of ours; below zero: behind.
    """

    hello: HelloLine
    rest: bytes
    skew_s: float = 0.0


class Secret:
    """A password that no traceback, log or repr can show."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret()"

    def line(self) -> bytes:
        """Give the line for sudo's stdin."""
        return self._text.encode("utf-8") + b"\n"


def new_token() -> str:
    """Make a prompt that nobody else prints, without space or percent sign: sudo expands those."""
    return f"netprobe-sudo-{secrets.token_hex(8)}:"


def read_hello(line: bytes) -> HelloLine:
    """Read a line's hello. Raises StartFailed where it is of another version, or is not one."""
    version = _HELLO_VERSION.match(line)
    if version is not None and int(version[1]) != WIRE_VERSION:
        words = f"the agent speaks version {int(version[1])} of the wire, not {WIRE_VERSION}"
        raise StartFailed("hello", words)
    try:
        hello: HelloLine = decode_message(line, {"HelloLine": HelloLine})
    except ValueError as error:
        words = f"the agent sent no hello of this version ({error})"
        raise StartFailed("hello", words) from None
    return hello


def measure_skew_s(theirs_s: float, asked_s: float, told_s: float) -> float:
    """Tell how far a clock is ahead that was read between two times of ours: by how much at least.

    0: it may agree with ours.
    """
    return max(0.0, theirs_s - told_s) + min(0.0, theirs_s - asked_s)


class Handshake:
    """One start. The password goes to stdin once, and only after sudo's own prompt was seen.

    ``runtime`` is the compressed Python that the started script asks for; None: it has found one.
    ``sudo``: the script starts it. What it does not start cannot fail, whatever banners print.
    """

    def __init__(
        self,
        process: AgentProcess,
        token: str,
        password: Secret | None,
        runtime: bytes | None = None,
        *,
        sudo: bool = False,
    ) -> None:
        self._process = process
        self._token = token.encode("ascii")
        self._password = password
        self._asked = bytearray()
        self._refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seen = bytearray()
        self._runtime = runtime
        self._starts_sudo = sudo
        self._is_sent = False
        self._is_ready = False
        process.on_stderr = self._watch_sudo

    @property
    def stage(self) -> StageName:
        """The part of the start that is at work now, as far as the output tells."""
        if self._is_ready:
            return "agent"
        if self._is_sent:
            return "runtime"
        if self._runtime is None and NO_PYTHON_LINE in self._seen:
            return "no-python"
        return "sudo" if self._starts_sudo and SUDO_LINE in self._seen else "connect"

    @property
    def machine(self) -> str:
        """What ``uname -m`` printed where no Python was found; empty where that is not known."""
        said = _MACHINE.search(self._seen)
        return said[1].decode("ascii") if said else ""

    @property
    def printed(self) -> list[str]:
        """The lines on stdout before our script began: of banners, and of a shell that ends."""
        return [] if self._is_ready else lines_of(bytes(self._seen[-SEEN_TAIL_BYTES:]))

    def news(self, line: str) -> str:
        """Give a line of stderr without sudo's prompt; often nothing is left."""
        return line.replace(self._token.decode("ascii"), "").strip()

    async def run(self) -> Greeting:
        """Wait for the hello. Raises StartFailed when the command ends or sudo refuses."""
        hello = asyncio.ensure_future(self._read_greeting())
        try:
            waited: set[asyncio.Future[Any]] = {hello, self._refused}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not hello.done():
                raise StartFailed("sudo", "sudo did not accept the password")
            return hello.result()
        finally:
            hello.cancel()
            self._refused.cancel()
            self._process.on_stderr = lambda _data: None

    async def _read_greeting(self) -> Greeting:
        if self._runtime is not None:
            await self._read_past(SEND_LINE + b"\n")
            self._is_sent = True
            await self._send_bytes(self._runtime)
        await self._read_past(READY_LINE + b"\n")
        self._is_ready = True
        asked_s = time.time()
        await self._send_bytes(bundle())
        await self._read_past(HELLO_PREFIX)
        hello = read_hello(await self._read_past(b"\n"))
        skew_s = measure_skew_s(hello.wall_s, asked_s, time.time())
        return Greeting(hello, bytes(self._seen), skew_s)

    async def _send_bytes(self, data: bytes) -> None:
        """Send as fast as it is read: of a runtime a hundred hosts would need as many copies."""
        try:
            for start in range(0, len(data), PIECE_BYTES):
                self._process.stdin.write(data[start : start + PIECE_BYTES])
                await self._process.stdin.drain()
        except ConnectionError:
            # Who closed it has more to say, or ends.
            pass

    async def _read_past(self, marker: bytes) -> bytes:
        """Give the bytes before the marker; so the output of banners and profiles is skipped."""
        while (at := self._seen.find(marker)) < 0:
            data = await self._process.stdout.read(READ_BYTES)
            if not data or len(self._seen) > BANNER_LIMIT_BYTES:
                raise StartFailed(self.stage, "ended before the agent's hello")
            self._seen += data
        before = bytes(self._seen[:at])
        del self._seen[: at + len(marker)]
        return before

    def _watch_sudo(self, data: bytes) -> None:
        self._asked += data
        times = self._asked.count(self._token)
        if times and self._password is not None:
            secret, self._password = self._password, None
            self._process.stdin.write(secret.line())
        elif times > 1 and not self._refused.done():
            self._refused.set_result(None)
