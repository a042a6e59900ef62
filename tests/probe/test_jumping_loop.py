"""Time that passes only when nothing else is left to do."""

from __future__ import annotations

import asyncio
import time

from netprobe.probe.jumping_loop import JumpingLoop


def test_pauses_cost_nothing_and_keep_their_order() -> None:
    """An hour of pauses is over at once; the loop's clock shows all of it."""
    woken: list[str] = []

    async def pause(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(pause("late", 3600), pause("soon", 60), pause("now", 0))
        return loop.time() - began

    before = time.monotonic()
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        passed_s = runner.run(run())

    assert woken == ["now", "soon", "late"]
    assert 3600 <= passed_s < 3601
    assert time.monotonic() - before < 3600


def test_work_in_a_thread_takes_no_time() -> None:
    """Deadlines wait for it, and what it raises is raised."""

    async def run() -> str:
        async with asyncio.timeout(0.001):
            await asyncio.to_thread(time.sleep, 0.01)
        try:
            await asyncio.to_thread(int, "none")
        except ValueError as error:
            return str(error)
        return ""

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert "none" in runner.run(run())


def test_work_that_is_ready_comes_before_a_deadline() -> None:
    """However many steps it takes: a deadline is for what waits."""

    async def run() -> int:
        steps = 0
        async with asyncio.timeout(0.001):
            for _ in range(10_000):
                await asyncio.sleep(0)
                steps += 1
        return steps

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(run()) == 10_000
