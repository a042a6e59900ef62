"""The times of looks, and whether this process stood still meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

# How often it is seen that this process runs, and what is no delay of a busy machine any more: with
# a hundred agents and other work it is late by seconds. Agents go by clocks of their own, and miss
# us after 30 s.
TICK_S: Final = 0.25
STILL_S: Final = 5.0


def _read_elapsed() -> float:
    """Read a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LabelClock:
    """Wall time that never goes back: it follows the clock forward, else what has really passed.

    ``after``: the last time that a history has already.
    """

    def __init__(
        self,
        after: float | None = None,
        read_wall: Callable[[], float] = time.time,
        read_elapsed: Callable[[], float] = _read_elapsed,
    ) -> None:
        self._read_wall, self._read_elapsed = read_wall, read_elapsed
        self._elapsed = read_elapsed()
        self._label = max(read_wall(), after or 0.0)

    def now(self) -> float:
        """Give the time, in seconds since 1970."""
        elapsed = self._read_elapsed()
        passed = self._label + elapsed - self._elapsed
        self._label, self._elapsed = max(self._read_wall(), passed), elapsed
        return self._label

    @property
    def ahead_s(self) -> float:
        """How far it is ahead of the wall clock."""
        return self.now() - self._read_wall()


class Stillness:
    """Notes when this process did not run: stopped, or the machine slept. Use ``watch`` as a
    task."""

    def __init__(self, read_elapsed: Callable[[], float] = _read_elapsed) -> None:
        self._read_elapsed = read_elapsed
        self._seen = read_elapsed()
        self.times = 0

    async def watch(self) -> None:
        """Look at the clock again and again."""
        while True:
            await asyncio.sleep(TICK_S)
            self.note()

    def note(self) -> int:
        """Look at the clock now, and give how often it stood still so far."""
        now = self._read_elapsed()
        if now - self._seen > TICK_S + STILL_S:
            self.times += 1
        self._seen = now
        return self.times
