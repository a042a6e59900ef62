"""How segments are asked for addresses, and what is said where nobody can ask."""

from __future__ import annotations

import asyncio

import pytest

from netprobe.agent.wire.failures import NO_PERMISSION, NOT_SUPPORTED
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.probe.rehearsals.rehearsal import NotPlayedError
from netprobe.probe.rehearsals.segment_asking import ask_segments
from tests.probe.builders import make_scene
from tests.probe.fakes import FakeAgent, answering, host

A = host("a", "10.0.0.1")


@pytest.mark.parametrize(
    ("failure", "kind"), [(NOT_SUPPORTED, NotPlayedError), (NO_PERMISSION, AgentError)]
)
async def test_a_device_without_ethernet_is_skipped(failure: str, kind: type[Exception]) -> None:
    """Nobody answers ARP at such a device, and none is missed; a right that is missing is told."""
    agent = FakeAgent(A, {SegmentAskOrder: lambda order: SegmentAnswers(order.id, [], failure)})
    found = await ask_segments([("10.0.0.2", agent, "tun0")], make_scene(agent).fleet)
    error = found["10.0.0.2"]
    assert isinstance(error, kind)
    assert "tun0" in str(error)
    assert getattr(error, "reason", None) == (None if kind is NotPlayedError else "not-tested")


async def test_each_address_has_its_answers() -> None:
    """By its agent and device; what nobody answers for is an empty list."""
    agent = FakeAgent(A, {SegmentAskOrder: answering("02:00:00:00:00:01")})
    found = await ask_segments(
        [("10.0.0.2", agent, "e0"), ("10.0.0.3", agent, "e0")], make_scene(agent).fleet
    )
    assert found == {"10.0.0.2": ["02:00:00:00:00:01"], "10.0.0.3": []}


@pytest.mark.parametrize(("agents", "each"), [(1, 130), (30, 3), (1201, 2)])
async def test_all_agents_take_turns(agents: int, each: int) -> None:
    """No second has more than 20 questions of all agents together, not the first one either: with
    many agents, and with so many that one order could not wait for its next turn."""
    asked: list[float] = []
    clock = asyncio.get_running_loop().time

    def note_turns(order: SegmentAskOrder) -> SegmentAnswers:
        asked.extend(clock() + at * order.gap_ms / 1000 for at in range(len(order.dsts)))
        return SegmentAnswers(order.id, [], None)

    fakes = [FakeAgent(host(f"h{at}", "10.0.0.1"), {SegmentAskOrder: note_turns})
             for at in range(agents)]  # fmt: skip
    questions = [(f"10.{each}.{at >> 8}.{at & 255}", fake, "e0")
                 for each in range(each) for at, fake in enumerate(fakes)]  # fmt: skip
    await ask_segments(questions, make_scene(*fakes).fleet)
    assert len(asked) == agents * each
    asked.sort()
    assert all(late - early > 0.99 for early, late in zip(asked, asked[20:], strict=False))
    assert asked[-1] - asked[0] < len(asked) / 20
