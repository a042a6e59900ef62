"""What is known of a pair of zones so far, and what all ways of measuring share."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Final

from msgspec import Struct

from netprobe.errors import AgentError
from netprobe.idle.pairs import PlannedConnection, ZonePair
from netprobe.model.idle import BusyConnection, Ended, SideMemory

# Usual timeouts of firewalls and balancers, and what lies between.
SILENCES_S: Final = (15, 30, 60, 120, 240, 350, 600, 900, 1800, 3600)
# By so much a timer may be early.
CLOCK_S = 0.05
# What is sent so much later than planned was silent for longer: this process stood still, or an
# end.
LATE_S = 1.0


class NotOpenedError(Exception):
    """No connection of this run; ``reason`` is its word, and the text says why."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Waking(Struct, frozen=True):
    """How a connection was after its silence; ``ended`` None: alive."""

    silent_s: float
    ended: Ended | None


class PairState(Struct):
    """What is known of a pair so far: a signal may end the measurement at any time.

    ``reason`` and ``because``: why it ended before its end, None and empty where it did not.
    """

    pair: ZonePair
    planned: PlannedConnection | None = None
    by_source: SideMemory | None = None
    by_destination: SideMemory | None = None
    one_exchange: SideMemory | None = None
    busy: BusyConnection | None = None
    reason: str | None = None
    because: str = ""

    async def measure(self, work: Coroutine[None, None, None]) -> None:
        """Let some work measure the pair; why that ended before its end is noted."""
        try:
            await work
        except* (NotOpenedError, AgentError) as group:
            error = group.exceptions[0]
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            assert isinstance(error, NotOpenedError | AgentError)
            self.reason, self.because = error.reason, str(error)

    def require_tries(self) -> None:
        """Raise NotOpenedError where a host of the pair can have no agent."""
        if not self.pair.tries:
            words = f"both ends need an agent, and none can be started on {self.pair.closed}"
            raise NotOpenedError("no-vantage", words)


def list_silences(up_to_s: int, keepalives: Iterable[int]) -> list[int]:
    """List the silences of a pair: usual ones, those between keepalives, and the longest."""
    known = {*SILENCES_S, *keepalives}
    return [*sorted(one for one in known if one < up_to_s), up_to_s]


def add_waking(memory: SideMemory, waking: Waking) -> SideMemory:
    """Add what a silence did to what is known."""
    if waking.ended is None:
        return SideMemory(max(memory.alive_s, math.floor(waking.silent_s + CLOCK_S)))
    forgotten_s = max(round(waking.silent_s), memory.alive_s + 1)
    return SideMemory(memory.alive_s, forgotten_s, waking.ended)


@contextlib.asynccontextmanager
async def run_meanwhile(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do some work meanwhile, and end it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def word_try(planned: PlannedConnection, error: NotOpenedError) -> str:
    """Say which try failed, and why."""
    ends = f"{planned.source.name} to {planned.destination.name} ({planned.address.text})"
    return f"{ends} {planned.protocol} {planned.port}, row {planned.requirement}: {error}"
