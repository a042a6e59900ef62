"""Room for flows is given in turn, and jobs are done so many at a time."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from netprobe.probe.flows.room import PLACE_S, Room, gather_all, gather_some
from tests.patience import PATIENCE_S


async def test_room_is_given_in_turn() -> None:
    """Who comes first is served first; nobody slips past who needs more."""
    room, order = Room(10), []
    gates = [asyncio.Event() for _ in range(4)]

    async def use(number: int, count: int) -> None:
        async with room.hold(count):
            order.append(number)
            await gates[number].wait()

    async with asyncio.TaskGroup() as group:
        for number, count in enumerate((6, 5, 99, 1)):
            group.create_task(use(number, count))
            await asyncio.sleep(0)
        assert order == [0]
        gates[0].set()
        await asyncio.sleep(0.01)
        assert order == [0, 1]
        gates[1].set()
        await asyncio.sleep(0.01)
        assert order == [0, 1, 2], "more than there is goes alone"
        gates[2].set()
        gates[3].set()
    assert order == [0, 1, 2, 3]


@pytest.mark.parametrize("counts", [(10, 10, 10, 10, 1), (25, 15, 1), (4, 4, 4, 8, 12, 8, 1)])
async def test_who_is_stuck_gives_place_to_others(counts: tuple[int, ...]) -> None:
    """Until so many flows are held in all; nobody is done, and only the last one waits."""
    room, done, order = Room(10, whole=40), asyncio.Event(), []

    async def use(number: int, count: int) -> None:
        async with room.hold(count):
            order.append(number)
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for number, count in enumerate(counts):
            group.create_task(use(number, count))
        last = len(counts) - 1
        await asyncio.sleep(PLACE_S * len(counts))
        assert order == list(range(last))
        await asyncio.sleep(60 * PLACE_S)
        assert order == list(range(last))
        done.set()
    assert order == list(range(last + 1))


async def test_who_needs_more_than_is_ever_held_waits_for_everybody() -> None:
    """Also for who is stuck."""
    room, order = Room(10, whole=40), []
    gates = [asyncio.Event() for _ in range(2)]

    async def use(number: int, count: int) -> None:
        async with room.hold(count):
            order.append(number)
            await gates[number].wait()

    async with asyncio.TaskGroup() as group:
        for number, count in enumerate((1, 99)):
            group.create_task(use(number, count))
        await asyncio.sleep(60 * PLACE_S)
        assert order == [0]
        gates[0].set()
        gates[1].set()
    assert order == [0, 1]


async def test_who_stops_waiting_leaves_no_hole() -> None:
    """Neither before nor after its turn came."""
    room = Room(1)
    async with room.hold(1):
        waiting = [asyncio.create_task(room.hold(1).__aenter__()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    async with asyncio.timeout(PATIENCE_S), room.hold(1):
        pass


@pytest.mark.parametrize("most", [1, 3, 100])
async def test_jobs_are_done_so_many_at_a_time(most: int) -> None:
    """Their results are in order."""
    running = peak = 0

    async def job(number: int) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    assert await gather_some([partial(job, n) for n in range(10)], most) == list(range(10))
    assert peak == min(most, 10)


async def test_a_single_wait_has_no_task_of_its_own() -> None:
    """Several run side by side, and each has one; results are in order."""

    async def give(number: int) -> tuple[int, asyncio.Task[object] | None]:
        await asyncio.sleep(0)
        return number, asyncio.current_task()

    own = asyncio.current_task()
    assert await gather_all(give(number) for number in range(0)) == []
    assert await gather_all(give(number) for number in range(1)) == [(0, own)]
    several = await gather_all(give(number) for number in range(3))
    assert [number for number, _ in several] == [0, 1, 2]
    assert len({task for _, task in several} | {own}) == 4
