"""How much is worked on at once, so that memory grows with what is asked now, not with the plan."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# Flows of which the answers are out, or are held together until all of their destination are there.
FLOWS_AT_ONCE = 4096
# Pairs, or flows looked at again, of one destination that wait for answers at the same time.
PAIRS_AT_ONCE = 4096


class Room:
    """Room for so many flows; who needs more than there is gets all of it, alone."""

    def __init__(self, size: int = FLOWS_AT_ONCE) -> None:
        self._size = size
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        """Hold room for so many flows; first come, first served."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        self._admit_next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._used -= count
            self._admit_next()
            raise
        try:
            yield
        finally:
            self._used -= count
            self._admit_next()

    def _admit_next(self) -> None:
        while self._waiting:
            count, turn = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
            elif not self._used or self._used + count <= self._size:
                self._waiting.popleft()
                self._used += count
                turn.set_result(None)
            else:
                return


async def gather_all(waiting: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for all of these side by side; a single one, as mostly, needs no task of its own."""
    some = list(waiting)
    if len(some) == 1:
        return [await some[0]]
    return await asyncio.gather(*some) if some else []


async def gather_some(
    jobs: Sequence[Callable[[], Awaitable[T]]], most: int = PAIRS_AT_ONCE
) -> list[T]:
    """Do all of these, so many at the same time; gives their results in order."""
    found: dict[int, T] = {}
    left = iter(enumerate(jobs))

    async def work() -> None:
        for index, job in left:
            found[index] = await job()

    await gather_all(work() for _ in range(min(most, len(jobs))))
    return [found[index] for index in range(len(jobs))]
