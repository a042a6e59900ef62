"""A play with a guard: it ends in order at a signal, and after a kill of any process of the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from netprobe.cli import ansible_guard
from netprobe.signals import run_until_signal

# What Ansible prints of every host is for its own users; ours read what failed, and the report.
_QUIET = {"ANSIBLE_DISPLAY_OK_HOSTS": "no", "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "no"}
PASSWORD_WORDS = ("--become-password-file", "-")


class GuardedPlay:
    """One play at most, and a private ``folder``; both end with us, however that comes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="netprobe-"))
        self._control, theirs = socket.socketpair()
        with theirs:
            self._guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", ansible_guard.__file__),
                    *(str(theirs.fileno()), str(self.folder)),
                ],
                stdout=sys.stderr,
                env=_QUIET | dict(os.environ),
                pass_fds=(theirs.fileno(),),
            )

    def __enter__(self) -> Self:
        """Give the play."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the guard remove the folder; what a killed one has left, too."""
        self._control.close()
        self._guard.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def play(
        self, play: Sequence[str], end: Sequence[str], results: Path, password: str | None
    ) -> tuple[int | None, bool]:
        """Play, and give ansible-playbook's status and whether a signal has ended it.

        ``end``: the words that end early what was begun; ``results``: where answers go. The status
        is None where somebody has killed the guard.
        """
        extra = PASSWORD_WORDS if password else ()
        order: dict[str, Any] = {
            "play": [*play, *extra],
            "end": [*end, *extra],
            "results": str(results),
            "password": password or None,
        }
        told: list[bytes] = []
        stopped = run_until_signal(self._wait_for_status(json.dumps(order), told))
        return (int(told[0]) if told and told[0] else None), stopped

    async def _wait_for_status(self, order: str, told: list[bytes]) -> None:
        # The guard takes the end of the last copy for ours.
        reader, writer = await asyncio.open_connection(sock=self._control.dup())
        writer.write(order.encode("ascii") + b"\n")
        waiting = asyncio.ensure_future(_read_line(reader))
        # The first signal ends the play in order, the second one waits for nothing.
        for word in (ansible_guard.END, ansible_guard.NOW):
            try:
                await asyncio.shield(waiting)
                break
            except asyncio.CancelledError:
                writer.write(word + b"\n")
        told.append(await waiting)
        writer.close()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Read what the guard says; nothing where it was killed."""
    with contextlib.suppress(ConnectionError):
        return await reader.readline()
    return b""
