"""The agent's life in this process: its input, its output queue and its dead man's switch."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import time
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from netprobe.agent.core.agent import DeadMan, PipeAgent
from netprobe.agent.core.loop import READ, Loop
from netprobe.agent.core.output import FrameQueue
from netprobe.agent.main import HANDLERS, carry_out
from netprobe.agent.wire.answers import Alive, Bye, Closed, Fault
from netprobe.agent.wire.frames import QUEUE_LIMIT_BYTES, FrameReader, encode_frame
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.agent.wire.orders import (
    Beat,
    RateOrder,
    StartOrder,
    StopOrder,
    TemplatesOrder,
)
from netprobe.agent.wire.templates import number_template
from tests.agent.rig import PLAIN, order


class Ends:
    """An agent on two pipes, and the coordinator's ends of them."""

    def __init__(self) -> None:
        self.input, self.to_agent = os.pipe()
        self.from_agent, self.output = os.pipe()
        self.agent = PipeAgent(Loop(), self.input, self.output, carry_out)
        self.reader = FrameReader(ANSWERS)

    def say(self, *orders: Any) -> None:
        os.write(self.to_agent, b"".join(map(encode_frame, orders)))

    def said(self) -> list[Any]:
        os.set_blocking(self.from_agent, False)
        messages: list[Any] = []
        try:
            while data := os.read(self.from_agent, 1 << 20):
                messages += self.reader.feed(data)
        except BlockingIOError:
            pass
        return messages


class StallFreeClock:
    """A clock that no stall moves by more than 20 ms: two timers never fall due at once."""

    def __init__(self) -> None:
        self._real = time.monotonic()
        self._now = 0.0

    def read(self) -> float:
        real = time.monotonic()
        self._now += min(real - self._real, 0.02)
        self._real = real
        return self._now


@pytest.fixture
def ends() -> Iterator[Ends]:
    """An agent and its pipes."""
    made = Ends()
    yield made
    made.agent.close()
    for fd in (made.input, made.to_agent, made.from_agent, made.output):
        with contextlib.suppress(OSError):
            os.close(fd)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_every_order_of_the_wire_has_a_handler(order: type[Any]) -> None:
    """The table names a function, or a method of a part, that takes this very order."""
    module, name, method = HANDLERS[order]
    found = getattr(importlib.import_module(module, "netprobe.agent"), name)
    handler = getattr(found, method) if method else found
    assert typing.get_type_hints(handler)[list(inspect.signature(handler).parameters)[1]] is order


def test_a_beat_comes_back_and_stop_says_goodbye(ends: Ends) -> None:
    """Orders are served in turn; after ``Bye`` the loop ends."""
    ends.say(StartOrder(bytes(32), 5, 9.0), Beat(), StopOrder())
    ends.agent.serve()
    alive, bye = ends.said()
    assert isinstance(alive, Alive)
    assert bye == Bye()
    assert (ends.agent.key, ends.agent.host) == (bytes(32), 5)


def test_templates_and_the_rate_are_kept(ends: Ends) -> None:
    """Later orders find a template by its number, and probes start no faster than the rate."""
    ends.say(TemplatesOrder([number_template(1, PLAIN)]), RateOrder(50.0), StopOrder())
    ends.agent.serve()
    assert number_template(1, ends.agent.templates[1]) == number_template(1, PLAIN)
    assert ends.agent.rate.take(100, time.monotonic()) < 100


def test_the_end_of_input_ends_the_agent(ends: Ends) -> None:
    """A coordinator that is gone needs no goodbye."""
    os.close(ends.to_agent)
    ends.agent.serve()
    assert ends.said() == []


def test_a_bug_in_a_handler_is_a_fault(ends: Ends) -> None:
    """It does not end the agent; the fault names the order."""
    ends.say(order(4, "none", "127.0.0.1", [(1, 1)]), Beat(), StopOrder())
    ends.agent.serve()
    fault, *others = ends.said()
    assert (fault.id, list(map(type, others))) == (4, [Alive, Bye])
    assert "KeyError: 'none'" in fault.words


def test_an_order_that_cannot_be_read_ends_the_agent(ends: Ends) -> None:
    """It has no id, so nobody could be told which answer will never come."""
    ends.say(Closed(4), Beat())
    ends.agent.serve()
    (fault,) = ends.said()
    assert "there is no message 'Closed'" in fault.words


def test_bytes_that_are_no_frames_end_the_agent(ends: Ends) -> None:
    """A stream that lost its place cannot be trusted again."""
    os.write(ends.to_agent, b"\xff\xff\xff\xffnoise")
    ends.agent.serve()
    (fault,) = ends.said()
    assert "not our peer" in fault.words


def test_a_bug_in_the_loop_is_reported_and_bounded(ends: Ends) -> None:
    """One that strikes at every turn ends the agent instead of filling the wire."""

    def strike() -> None:
        ends.agent.loop.call_later(0, strike)
        raise ZeroDivisionError

    ends.agent.loop.call_later(0, strike)
    ends.agent.serve()
    words = {fault.words.splitlines()[-1] for fault in ends.said()}
    assert words == {"ZeroDivisionError"}


@pytest.mark.slow
def test_silence_ends_the_agent(ends: Ends) -> None:
    """The dead man's switch, set by ``start``; a beat puts it off."""
    ends.agent.loop.now = StallFreeClock().read
    begun = ends.agent.loop.now()
    ends.say(StartOrder(bytes(32), 5, 0.3))
    ends.agent.loop.call_later(0.2, lambda: ends.say(Beat()))
    ends.agent.serve()
    assert ends.agent.loop.now() - begun > 0.45


class StoppedEpoll:
    """Gives nothing the first time, as to a process that was stopped while it waited (EINTR)."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll
        self._polls = 0

    def poll(self, wait_s: float, most: int) -> list[tuple[int, int]]:
        """Give what is ready, from the second time on."""
        self._polls += 1
        found: list[tuple[int, int]] = self._epoll.poll(wait_s, most)
        return found if self._polls > 1 else []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)


@pytest.mark.parametrize("in_poll", [False, True])
def test_a_stopped_agent_does_not_blame_the_other_end(
    monkeypatch: pytest.MonkeyPatch, in_poll: bool
) -> None:
    """What arrived while it could not run counts before the clock does."""
    loop = Loop()
    if in_poll:
        monkeypatch.setattr(loop, "_epoll", StoppedEpoll(loop._epoll))
    ended: list[bool] = []
    man = DeadMan(loop, 5, lambda: ended.append(True))
    readable, writable = os.pipe()

    def hear(_events: int) -> None:
        os.read(readable, 9)
        man.hear()
        loop.stop()

    loop.watch(readable, READ, hear)
    os.write(writable, b".")
    monkeypatch.setattr(loop, "now", lambda: time.monotonic() + 60)
    loop.run()
    assert not ended
    os.close(readable)
    os.close(writable)


def test_a_timer_that_is_due_after_work_waits_for_what_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer that came in time is read before its look is over."""
    loop = Loop()
    done: list[str] = []
    readable, writable = os.pipe()
    late_s = [0.0]
    monkeypatch.setattr(loop, "now", lambda: time.monotonic() + late_s[0])

    def work() -> None:
        done.append("work")
        late_s[0] += 31
        os.write(writable, b".")

    def read(_events: int) -> None:
        done.append("answer")
        loop.unwatch(readable)

    def end() -> None:
        done.append("timer")
        loop.stop()

    loop.watch(readable, READ, read)
    loop.call_later(0, work)
    loop.call_later(30, end)
    loop.run()
    assert done == ["work", "answer", "timer"]
    os.close(readable)
    os.close(writable)


@pytest.mark.parametrize("by", ["order", "timer"])
def test_long_work_does_not_blame_the_other_end(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """Beats that came while the agent worked are read before the switch looks at the clock."""
    loop = Loop()
    ended: list[bool] = []
    late_s = [0.0]
    monkeypatch.setattr(loop, "now", lambda: time.monotonic() + late_s[0])
    if by == "timer":  # of the same turn as the switch's own, and before it
        loop.call_later(29.9, lambda: work(0))
    man = DeadMan(loop, 30, lambda: ended.append(True))
    readable, writable = os.pipe()

    def work(_events: int) -> None:
        """Work longer than the other end may be silent; a beat comes meanwhile."""
        loop.unwatch(readable)
        late_s[0] += 31
        loop.watch(readable, READ, hear)
        os.write(writable, b".")

    def hear(_events: int) -> None:
        os.read(readable, 9)
        man.hear()
        loop.stop()

    loop.watch(readable, READ, work)
    if by == "order":
        os.write(writable, b".")
    else:
        late_s[0] = 5.0
        man.hear()
        late_s[0] = 30.1
    loop.run()
    assert not ended
    os.close(readable)
    os.close(writable)


def test_output_never_blocks_and_says_when_it_is_full() -> None:
    """Above 1 MiB no probe starts; below half of that they are told to go on."""
    loop, told = Loop(), []
    readable, writable = os.pipe()
    output = FrameQueue(
        loop, writable, lambda: told.append("drained"), lambda: told.append("closed")
    )
    fault = Fault(None, "x" * 65536, None)
    count = 0
    while not output.full:
        output.send(fault)
        count += 1
    assert count * 65536 > QUEUE_LIMIT_BYTES
    reader = FrameReader(ANSWERS)
    faults: list[Any] = []

    def read() -> None:
        faults.extend(reader.feed(os.read(readable, 1 << 20)))
        loop.call_later(0, loop.stop if len(faults) == count else read)

    loop.call_later(0, read)
    loop.run()
    assert told == ["drained"]
    assert faults == [fault] * count
    os.close(readable)
    output.send(fault)
    assert told == ["drained", "closed"]
    os.close(writable)
