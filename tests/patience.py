"""Waiting for what must happen: as long as the busiest machine needs.

Only a test that fails waits so long, so the time is no matter for those that pass.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 240.0
# How often is looked.
LOOK_S = 0.02


def wait_until(holds: Callable[[], object], what: str = "it") -> None:
    """Wait for something that happens in another process or thread."""
    late = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < late, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(LOOK_S)


async def until(holds: Callable[[], object], what: str = "it") -> None:
    """Wait for something that happens while this loop runs, or in another process."""
    for _ in range(int(PATIENCE_S / LOOK_S)):
        if holds():
            return
        await asyncio.sleep(LOOK_S)
    raise AssertionError(f"waited {PATIENCE_S:g} s for {what}")
