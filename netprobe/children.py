"""What child processes share: inputs that they do not read, and pipes that others hold."""

from __future__ import annotations

import asyncio
import contextlib


def allow_unread_input(process: asyncio.subprocess.Process) -> None:
    """Let a child end before it has read all of its standard input.

    The writer gets the error. asyncio keeps a copy of it, and Python 3.11.2 prints a traceback
    when nobody reads that copy.
    """
    writer = process.stdin
    if writer is not None:
        closed = writer._protocol._get_close_waiter(writer)  # type: ignore[attr-defined]
        closed.add_done_callback(_take_error)


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close a child's pipes, whoever still holds the other ends, and kill it if it has not ended.

    asyncio closes them by itself only where all that came through them was read, and a child of the
    child may be stopped, or live on, and hold them for ever.
    """
    with contextlib.suppress(PermissionError):
        process._transport.close()  # type: ignore[attr-defined]


def _take_error(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()
