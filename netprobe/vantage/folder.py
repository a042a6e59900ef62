"""The private folder of a run's ssh connections, and the child that removes it whatever happens.

A coordinator that is killed cannot clean up, so a small shell does: it makes the folder, waits for
the end of its stdin, which the kernel brings about, ends ssh's masters and deletes the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

# A Unix socket's path has room for 107 bytes: folder, "/", 40 of %C, and 17 that ssh adds.
LONGEST_BASE = 36
CLOSE_S = 5.0
# It goes on without us.
HURRIED_CLOSE_S = 0.5

_CLEANER = (
    'd=$(mktemp -d "$1/npXXXXXXXX") || exit 1; echo "$d"; read -r _; '
    'for s in "$d"/*; do [ -S "$s" ] && ssh -o "ControlPath=$s" -O exit master; done; '
    'rm -rf "$d"'
)


class PrivateFolder:
    """A folder of mode 0700 that exists from its first use until ``close`` or our end."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._cleaner: asyncio.subprocess.Process | None = None
        self._path: Path | None = None

    async def path(self) -> Path:
        """Give the folder, made at its first use. Raises OSError where none can be made."""
        async with self._lock:
            if self._path is None:
                self._path = await self._make_folder()
            return self._path

    async def close(self, patience_s: float = CLOSE_S) -> None:
        """End the connection masters now, instead of after ``ControlPersist``, and the folder."""
        if self._cleaner is None:
            return
        cleaner, self._cleaner, self._path = self._cleaner, None, None
        assert cleaner.stdin is not None
        cleaner.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(cleaner.wait(), patience_s)

    async def _make_folder(self) -> Path:
        # A session of its own: Ctrl-C ends us, and then our end ends this.
        self._cleaner = await asyncio.create_subprocess_exec(
            *("sh", "-c", _CLEANER, "netprobe-cleaner", _choose_base()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._cleaner.stdout is not None
        line = await self._cleaner.stdout.readline()
        if not line:
            raise OSError(f"no folder for ssh connections can be made in {_choose_base()}")
        return Path(os.fsdecode(line.rstrip(b"\n")))


def _choose_base() -> str:
    """Choose where the folder goes; TMPDIR may be too long a path for a socket."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    fits = len(base) <= LONGEST_BASE and os.path.isabs(base)
    return base if fits and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK) else "/tmp"
