"""A wait in which this process stands still goes on."""

from __future__ import annotations

import asyncio
import time

import pytest

from netprobe.vantage.pauses import LATE_S, TURN_S, wait_awake


@pytest.mark.parametrize("stood_still_s", [0.0, LATE_S + 2 * TURN_S])
async def test_time_in_which_this_process_stood_still_is_hardly_counted(
    stood_still_s: float,
) -> None:
    """What came meanwhile is read before the limit has passed."""
    loop = asyncio.get_running_loop()
    came = loop.create_future()
    waiting = asyncio.create_task(wait_awake(came, 2 * TURN_S))
    await asyncio.sleep(0.1)
    time.sleep(stood_still_s)  # noqa: ASYNC251 (the loop stands still)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    came.set_result(None)

    await waiting

    assert came.done()


async def test_a_limit_is_a_limit() -> None:
    """None is no wait at all."""
    came = asyncio.get_running_loop().create_future()

    await wait_awake(came, 0.05)
    await wait_awake(came, -1.0)

    assert not came.done()
