"""Waiting for what must happen: as long as the busiest machine needs.

Only a test that fails waits so long, so the time is no matter for those that pass. A test that
failed by chance had one of these causes:

* A limit that only a busy machine misses. What must happen is waited for as long as ``PATIENCE_S``
  says; in a browser, for the state that is asserted (``wait_for``). Where two causes would end
  something, the other one is 1,000 s away.
* An upper bound of measured time. Steps, packets, looks and their order are counted; lower bounds
  are fine. What must be fast is asked of a quiet machine: ``full`` and ``alone``.
* A clock that goes on while the process stands still. Where both ends are in the test, time jumps
  (``tests/loops.py``).
* Packets that are sent and not there yet, on loopback too: ``Desk.settle(sender)``, ``wait_until``.
* What is not the test's own: a port that was free a moment ago, an address that "nobody has",
  folders that others make in the same place, a router's memory of an earlier test's connections.
  Ports come from ``tests/ports.py``, silence from a listener whose queue is full, names have a
  token of the test.
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
