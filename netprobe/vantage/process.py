"""The child process that an agent talks through: its pipes, the tail of its stderr, and its end.

Also how long processes waited for a processor of this machine: then it is busy, and no host slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from netprobe.children import allow_unread_input, close_pipes

STDERR_TAIL_BYTES = 16 * 1024
STDOUT_LIMIT_BYTES = 1024 * 1024
KILL_WAIT_S = 0.5

# The password of --ask-become-pass may sit in our environment, and ssh can be told to send it on.
SECRET_VARIABLES = ("NETPROBE_BECOME_PASSWORD",)

PROC = Path("/proc")
_NS_PER_S = 1e9


def lines_of(data: bytes) -> list[str]:
    """Give the lines that hold something, without control characters."""
    text = data.decode("utf-8", "replace")
    lines = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    return [line for line in lines if line]


class AgentProcess:
    """A child in a session of its own: Ctrl-C reaches only us, and we stop agents in order."""

    def __init__(self, process: asyncio.subprocess.Process, command: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        allow_unread_input(process)
        self.command = command
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.on_stderr: Callable[[bytes], None] = lambda _data: None
        self._process = process
        self._tail = bytearray()
        self._drain = asyncio.create_task(self._drain_stderr())

    @classmethod
    async def spawn(cls, argv: Sequence[str]) -> AgentProcess:
        """Start the command. Raises OSError where it does not exist."""
        environment = {k: v for k, v in os.environ.items() if k not in SECRET_VARIABLES}
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=STDOUT_LIMIT_BYTES,
                env=environment,
                start_new_session=True,
            )
        )
        try:
            return cls(await asyncio.shield(starting), argv[0])
        except asyncio.CancelledError:
            # asyncio would kill the child only, and wait for its children, which hold the pipes.
            with contextlib.suppress(OSError):
                await cls(await starting, argv[0]).end(0)
            raise

    @property
    def pid(self) -> int:
        """The process id, which is that of its group too."""
        return self._process.pid

    def last_words(self) -> list[str]:
        """Give the lines that it wrote to stderr, as far back as they are kept."""
        return lines_of(bytes(self._tail))

    async def wait(self) -> int:
        """Wait for its exit status, and for the end of stderr as long as that may still come."""
        status = await self._process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._drain), KILL_WAIT_S)
        return status

    @property
    def status(self) -> int:
        """Its exit status; -9 while it has none, because only killing takes that long."""
        status = self._process.returncode
        return -signal.SIGKILL if status is None else status

    def abort_input(self) -> None:
        """Close its stdin without what it has not read yet; harmless where it is closed."""
        if not self.stdin.transport.is_closing():
            self.stdin.transport.abort()

    async def end(self, patience_s: float) -> None:
        """Close its stdin, wait, then terminate, then kill its group; leaves no zombie."""
        self.stdin.close()
        try:
            for patience, number in ((patience_s, signal.SIGTERM), (KILL_WAIT_S, signal.SIGKILL)):
                if await self._wait_for_end(patience):
                    return
                self.signal(number)
            # A root process under sudo cannot be killed by us; it ends by the end of its stdin.
            await self._wait_for_end(KILL_WAIT_S)
        except asyncio.CancelledError:
            self.signal(signal.SIGKILL)
            raise
        finally:
            self._drain.cancel()
            close_pipes(self._process)

    def kill(self) -> None:
        """Kill its group and close its pipes at once; harmless where it is gone."""
        self.signal(signal.SIGKILL)
        close_pipes(self._process)

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group; harmless where it is gone or belongs to root."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def _wait_for_end(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _drain_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._tail += data
            del self._tail[:-STDERR_TAIL_BYTES]
            self.on_stderr(data)


def measure_wait_s(pid: int) -> float:
    """Give the seconds for which a process and all that it started were ready and did not run.

    0 where they are gone, or where the kernel does not say.
    """
    waited_ns, left = 0, [pid]
    while left:
        folder = PROC / str(left.pop())
        with contextlib.suppress(OSError, ValueError, IndexError):
            waited_ns += int((folder / "schedstat").read_text().split()[1])
            left += map(int, (folder / "task" / folder.name / "children").read_text().split())
    return waited_ns / _NS_PER_S
