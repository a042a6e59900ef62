"""The agent's life in this process: its input, its output queue and its dead man's switch."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from netprobe.agent.core.agent import Agent
from netprobe.agent.core.deadman import DeadMan
from netprobe.agent.core.loop import READ, Loop
from netprobe.agent.core.output import Output
from netprobe.agent.main import ORDERS
from netprobe.agent.wire.frames import QUEUE_LIMIT_BYTES, FrameReader, encode_frame


class Ends:
    """An agent on two pipes, and the coordinator's ends of them."""

    def __init__(self) -> None:
        self.input, self.to_agent = os.pipe()
        self.from_agent, self.output = os.pipe()
        self.agent = Agent(Loop(), self.input, self.output, ORDERS)
        self.reader = FrameReader()

    def say(self, *messages: dict[str, Any]) -> None:
        os.write(self.to_agent, b"".join(map(encode_frame, messages)))

    def said(self) -> list[dict[str, Any]]:
        os.set_blocking(self.from_agent, False)
        frames = []
        try:
            while data := os.read(self.from_agent, 1 << 20):
                frames += self.reader.feed(data)
        except BlockingIOError:
            pass
        return frames


@pytest.fixture
def ends() -> Iterator[Ends]:
    """An agent and its pipes."""
    made = Ends()
    yield made
    made.agent.close()
    for fd in (made.input, made.to_agent, made.from_agent, made.output):
        with contextlib.suppress(OSError):
            os.close(fd)


def test_every_order_of_the_wire_is_known() -> None:
    """The table is the wire document's."""
    words = "start beat rate templates listen close seen held capture captured probe cancel"
    assert {*words.split(), "resolve", "route", "walk", "stop"} <= set(ORDERS)


def test_a_beat_comes_back_and_stop_says_goodbye(ends: Ends) -> None:
    """Orders are served in turn; after ``bye`` the loop ends."""
    start = {"t": "start", "key": "00" * 32, "host": 5, "silence_s": 9}
    ends.say(start, {"t": "beat"}, {"t": "stop"})
    ends.agent.serve()
    assert [frame["t"] for frame in ends.said()] == ["beat", "bye"]
    assert (ends.agent.key, ends.agent.host) == (bytes(32), 5)


def test_the_end_of_input_ends_the_agent(ends: Ends) -> None:
    """A coordinator that is gone needs no goodbye."""
    os.close(ends.to_agent)
    ends.agent.serve()
    assert ends.said() == []


def test_unknown_and_broken_orders_are_faults(ends: Ends) -> None:
    """Neither ends the agent; the fault names the order."""
    ends.say({"t": "dance", "id": 4}, {"t": "seen", "id": 5}, {"t": "beat"}, {"t": "stop"})
    ends.agent.serve()
    frames = ends.said()
    assert [frame["t"] for frame in frames] == ["fault", "fault", "beat", "bye"]
    assert [frame["id"] for frame in frames[:2]] == [4, 5]
    assert "KeyError" in frames[0]["words"]


def test_bytes_that_are_no_frames_end_the_agent(ends: Ends) -> None:
    """A stream that lost its place cannot be trusted again."""
    os.write(ends.to_agent, b"\xff\xff\xff\xffnoise")
    ends.agent.serve()
    assert [frame["t"] for frame in ends.said()] == ["fault"]


def test_a_bug_in_the_loop_is_reported_and_bounded(ends: Ends) -> None:
    """One that strikes at every turn ends the agent instead of filling the wire."""

    def strike() -> None:
        ends.agent.loop.call_later(0, strike)
        raise ZeroDivisionError

    ends.agent.loop.call_later(0, strike)
    ends.agent.serve()
    words = {frame["words"].splitlines()[-1] for frame in ends.said()}
    assert words == {"ZeroDivisionError"}


def test_silence_ends_the_agent(ends: Ends) -> None:
    """The dead man's switch, set by ``start``; a beat puts it off."""
    begun = time.monotonic()
    ends.say({"t": "start", "key": "00" * 32, "host": 5, "silence_s": 0.3})
    ends.agent.loop.call_later(0.2, lambda: ends.say({"t": "beat"}))
    ends.agent.serve()
    assert 0.45 < time.monotonic() - begun < 5


def test_a_stopped_agent_does_not_blame_the_other_end() -> None:
    """What arrived while it could not run counts before the clock does."""
    loop = Loop()
    ended: list[bool] = []
    man = DeadMan(loop, 0.05, lambda: ended.append(True))
    readable, writable = os.pipe()

    def hear(_events: int) -> None:
        os.read(readable, 9)
        man.hear()
        loop.stop()

    loop.watch(readable, READ, hear)
    os.write(writable, b".")
    time.sleep(0.1)
    loop.run()
    assert not ended
    os.close(readable)
    os.close(writable)


def test_output_never_blocks_and_says_when_it_is_full() -> None:
    """Above 1 MiB no probe starts; below half of that they are told to go on."""
    loop, told = Loop(), []
    readable, writable = os.pipe()
    output = Output(loop, writable, lambda: told.append("drained"), lambda: told.append("closed"))
    frame = {"t": "outcomes", "data": "x" * 65536}
    count = 0
    while not output.full:
        output.send(frame)
        count += 1
    assert count * 65536 > QUEUE_LIMIT_BYTES
    reader, frames = FrameReader(), []

    def read() -> None:
        frames.extend(reader.feed(os.read(readable, 1 << 20)))
        loop.call_later(0, loop.stop if len(frames) == count else read)

    loop.call_later(0, read)
    loop.run()
    assert told == ["drained"]
    assert frames == [frame] * count
    os.close(readable)
    output.send(frame)
    assert told == ["drained", "closed"]
    os.close(writable)
