"""How much is worked on at once, so that memory grows with what is asked now, not with the plan."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# Flows that are begun together: answers are out, or held until all of their destination are there.
FLOWS_AT_ONCE = 4096
# A destination that is not done by then waits for hosts: it gives its place to others, until so
# many flows are held in all. Each takes about 12 KiB.
PLACE_S = 5.0
FLOWS_HELD = 4 * FLOWS_AT_ONCE
# Pairs, or flows looked at again, of one destination that wait for answers at the same time.
PAIRS_AT_ONCE = 4096


class Room:
    """Room for so many flows; who needs more than there is gets all of it, alone.

    One frozen or paced host may need its room for minutes. After ``PLACE_S`` it only counts in
    ``whole``, which is the most that is held.
    """

    def __init__(self, size: int = FLOWS_AT_ONCE, whole: int = FLOWS_HELD) -> None:
        self._size = size
        self._whole = whole
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        # The flows of each holder, and of those that came lately.
        self._held: dict[asyncio.Future[None], int] = {}
        self._fresh: dict[asyncio.Future[None], int] = {}

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        """Hold room for so many flows; first come, first served."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((count, turn))
        self._admit_next()
        try:
            await turn
            later = loop.call_later(PLACE_S, self._give_place, turn)
            try:
                yield
            finally:
                later.cancel()
        finally:
            self._held.pop(turn, None)
            self._give_place(turn)

    def _give_place(self, turn: asyncio.Future[None]) -> None:
        self._fresh.pop(turn, None)
        self._admit_next()

    def _admit_next(self) -> None:
        while self._waiting:
            count, turn = self._waiting[0]
            if not turn.done():
                if not self._has_room(count):
                    return
                self._held[turn] = self._fresh[turn] = count
                turn.set_result(None)
            self._waiting.popleft()

    def _has_room(self, count: int) -> bool:
        held, fresh = sum(self._held.values()), sum(self._fresh.values())
        has_place = not fresh or fresh + count <= self._size
        return not held or (has_place and held + count <= self._whole)


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
