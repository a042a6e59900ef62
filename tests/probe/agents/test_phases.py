"""Where the time of a run goes: spans within spans, side by side, and whom a run waits for."""

from __future__ import annotations

import asyncio

from netprobe.probe.agents.phases import OWN_WORK, Phases


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_time_belongs_to_the_innermost_work() -> None:
    """What waits for a walk is no second look meanwhile, and all phases are the whole time."""
    clock = Clock()
    phases = Phases(clock)
    clock.now_s = 1.0
    with phases.during("second looks", "at b"):
        clock.now_s = 2.0
        with phases.during("walks", "from a to b"):
            clock.now_s = 5.0
        clock.now_s = 7.0
    clock.now_s = 7.5

    assert phases.times_s() == {OWN_WORK: 1.5, "second looks": 3.0, "walks": 3.0}


def test_work_side_by_side_shares_the_time() -> None:
    """Two probes and a start at once: each moment is divided among them."""
    clock = Clock()
    phases = Phases(clock)
    with phases.during("probes", "from a to b"):
        clock.now_s = 1.0

    async def work() -> None:
        async def one(phase: str, about: str) -> None:
            with phases.during(phase, about):  # type: ignore[arg-type]  # a word of the test
                await asyncio.sleep(0)

        began = [asyncio.create_task(one("probes", f"from a to {end}")) for end in "cd"]
        began.append(asyncio.create_task(one("starts", "e")))
        await asyncio.sleep(0)
        assert phases.tell_work() == ("probing from a to c and 1 more, starting the agent of e")
        clock.now_s = 4.0
        await asyncio.gather(*began)

    asyncio.run(work())

    assert phases.times_s() == {"probes": 3.0, "starts": 1.0}
    assert phases.tell_work() == ""


async def test_waiting_for_a_turn_is_waiting() -> None:
    """Who holds a lock works; who waits for it waits."""
    phases = Phases()
    lock = asyncio.Lock()
    said: list[str] = []

    async def second() -> None:
        async with phases.turn(lock, "for a turn of b"):
            said.append(phases.tell_work())

    async with phases.turn(lock, "for a turn of a"):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0.01)
        said.append(phases.tell_work())
    await waiting

    assert said == ["waiting for a turn of b", ""]
