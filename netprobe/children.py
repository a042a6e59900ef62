"""What child processes share: an input that a child does not read to its end is no fault."""

from __future__ import annotations

import asyncio


def allow_unread_input(process: asyncio.subprocess.Process) -> None:
    """Let a child end before it has read all of its standard input.

    The writer gets the error. asyncio keeps a copy of it, and Python 3.11.2 prints a traceback
    when nobody reads that copy.
    """
    writer = process.stdin
    if writer is not None:
        closed = writer._protocol._get_close_waiter(writer)  # type: ignore[attr-defined]
        closed.add_done_callback(_take_error)


def _take_error(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()
