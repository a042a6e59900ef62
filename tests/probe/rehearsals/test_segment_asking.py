"""How segments are asked for addresses, and what is said where nobody can ask."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from netprobe.agent.wire.failures import NO_PERMISSION, NOT_SUPPORTED
from netprobe.agent.wire.parts import AddressAnswer
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.probe.rehearsals.rehearsal import NotPlayedError
from netprobe.probe.rehearsals.segment_asking import SegmentQuestion, ask_segments
from tests.probe.builders import make_scene
from tests.probe.fakes import FakeAgent, answering, host

A = host("a", "10.0.0.1")
LINK = "02:00:00:00:00:01"


@pytest.mark.parametrize(
    ("failure", "kind"), [(NOT_SUPPORTED, NotPlayedError), (NO_PERMISSION, AgentError)]
)
async def test_a_device_without_ethernet_is_skipped(failure: str, kind: type[Exception]) -> None:
    """Nobody answers ARP at such a device, and none is missed; a right that is missing is told."""
    agent = FakeAgent(A, {SegmentAskOrder: lambda order: SegmentAnswers(order.id, [], failure)})
    found = await ask_segments(
        [SegmentQuestion("10.0.0.2", agent, "tun0")], make_scene(agent).fleet
    )
    error = found["10.0.0.2"]
    assert isinstance(error, kind)
    assert "tun0" in str(error)
    assert getattr(error, "reason", None) == (None if kind is NotPlayedError else "not-tested")


async def test_each_address_has_its_answers() -> None:
    """By its agent and device; what nobody answers for is an empty list."""
    agent = FakeAgent(A, {SegmentAskOrder: answering("02:00:00:00:00:01")})
    # The script answers for the first address of an order.
    found = await ask_segments(
        [
            SegmentQuestion("10.0.0.2", agent, "e0"),
            SegmentQuestion("10.0.0.3", agent, "e0", times=1),
        ],
        make_scene(agent).fleet,
    )
    assert found == {"10.0.0.2": ["02:00:00:00:00:01"], "10.0.0.3": []}


async def test_silence_is_asked_three_times() -> None:
    """By a probe and a request of IPv4, by a solicitation of IPv6; who answers is asked no more,
    whichever question it answers."""
    lost = {"10.0.0.3": 4, "10.0.0.4": 99, "fd00::4": 99}

    def lose(order: SegmentAskOrder) -> SegmentAnswers:
        for one in order.dsts:
            lost[one] = lost.get(one, 0) - 1
        found = [AddressAnswer(one, LINK) for one in order.dsts if lost[one] < 0]
        return SegmentAnswers(order.id, found, None)

    agent = FakeAgent(A, {SegmentAskOrder: lose})
    addresses = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "fd00::2", "fd00::4"]
    questions = [SegmentQuestion(one, agent, "e0", "10.0.0.1") for one in addresses]
    once = SegmentQuestion("10.0.0.5", agent, "e0", times=1)
    lost["10.0.0.5"] = 99
    found = await ask_segments([*questions, once], make_scene(agent).fleet)
    assert {address for address, links in found.items() if links} == {
        "10.0.0.2", "10.0.0.3", "fd00::2"
    }  # fmt: skip
    asked = Counter(
        (address, order.src) for order in agent.orders(SegmentAskOrder) for address in order.dsts
    )
    own = "10.0.0.1"
    assert asked == {
        ("10.0.0.2", None): 1, ("10.0.0.2", own): 1, ("10.0.0.3", None): 3, ("10.0.0.3", own): 3,
        ("10.0.0.4", None): 3, ("10.0.0.4", own): 3, ("fd00::2", None): 1, ("fd00::4", None): 3,
        ("10.0.0.5", None): 1,
    }  # fmt: skip


async def test_what_could_not_be_asked_once_is_not_known() -> None:
    """An agent that is lost meanwhile, although it said before who answers."""

    def lose(order: SegmentAskOrder) -> SegmentAnswers:
        if order.src is not None:
            raise AgentError("agent-lost", "gone")
        return SegmentAnswers(order.id, [AddressAnswer("10.0.0.2", LINK)], None)

    agent = FakeAgent(A, {SegmentAskOrder: lose})
    questions = [SegmentQuestion("10.0.0.2", agent, "e0", "10.0.0.1")]
    found = await ask_segments(questions, make_scene(agent).fleet)
    assert isinstance(found["10.0.0.2"], AgentError)


@pytest.mark.parametrize(("agents", "each"), [(1, 130), (30, 3), (1201, 2), (2, 20)])
async def test_all_agents_take_turns(agents: int, each: int) -> None:
    """No second has more than 20 questions of all agents together, not the first one either: with
    many agents, and with so many that one order could not wait for its next turn; nor when they
    ask again. An agent with fewer questions keeps no turns from others."""
    asked: list[float] = []
    clock = asyncio.get_running_loop().time

    def note_turns(order: SegmentAskOrder) -> SegmentAnswers:
        asked.extend(clock() + at * order.gap_ms / 1000 for at in range(len(order.dsts)))
        return SegmentAnswers(order.id, [], None)

    fakes = [FakeAgent(host(f"h{at}", "10.0.0.1"), {SegmentAskOrder: note_turns})
             for at in range(agents)]  # fmt: skip
    times = 1 if agents > 2 else 2
    questions = [SegmentQuestion(f"10.{each}.{at >> 8}.{at & 255}", fake, "e0", times=times)
                 for each in range(each) for at, fake in enumerate(fakes)
                 if agents != 2 or at == 0 or each < 3]  # fmt: skip
    await ask_segments(questions, make_scene(*fakes).fleet)
    assert len(asked) == len(questions) * times
    asked.sort()
    assert all(late - early > 0.99 for early, late in zip(asked, asked[20:], strict=False))
    assert asked[-1] - asked[0] < len(asked) / 20
