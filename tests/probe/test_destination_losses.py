"""Agents that are lost or slow: every flow has evidence once, and nothing passes unmeasured."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.host_messages import Resolved, ResolveOrder
from netprobe.agent.wire.orders import (
    CloseOrder,
    ListenOrder,
    ProbeOrder,
    SeenOrder,
    StoryOrder,
)
from netprobe.agent.wire.parts import SeenPackets, SeenRun
from netprobe.errors import AgentError
from netprobe.model.plan import PATH_MTU
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.flows.work import Want
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import (
    NAMED,
    make_want,
)
from tests.probe.destination_world import (
    REFUSED,
    SILENCE,
    UNASKED,
    World,
    answers,
    assert_whole,
    open_to_us,
    verdicts,
)
from tests.probe.fakes import (
    kind,
    reply,
)


@pytest.mark.parametrize("order", [ListenOrder, SeenOrder])
async def test_an_agent_that_is_lost_in_a_round_spoils_nothing(order: type[Any]) -> None:
    """Its ports are probed again without listeners, and the flows say that it was lost.

    The listeners are asked at the end: a nonce that came before does not count.
    """
    world = World(open_to_us)
    world.lose_target_at(order)

    found = await world.run(make_want("tcp", ((5, 9),)))

    assert {one.listener.state for one in found} == {"lost"}
    assert answers(found) == {((5, 9),): "no-answer"}
    assert "pass" not in verdicts(found)
    modes = [one.blocks[0].mode for one in world.sent(ProbeOrder)]
    assert modes.count("nonce") == (0 if order is ListenOrder else 1)
    assert_whole(world)


@pytest.mark.parametrize(("answer", "state"), [(SILENCE, "lost"), (open_to_us, "ours")])
async def test_what_an_agent_that_vanished_since_may_not_have_heard_is_asked_again(
    answer: Any, state: str
) -> None:
    """It was gone before the round ended, and nobody knows when: only what it answered counts."""
    world = World(answer if callable(answer) else lambda *_: answer)
    world.lose_target_at(CloseOrder)

    found = await world.run(make_want("tcp", ((5, 9),)))

    assert {one.listener.state for one in found} == {state}
    assert_whole(world)


async def test_an_agent_that_is_lost_during_the_probes_is_noticed() -> None:
    """Whether the listeners were there to the end is always asked."""
    world = World(open_to_us)
    answer = world.source.scripts[ProbeOrder]

    def lose(order: ProbeOrder) -> Any:
        world.target.lost = True
        return answer(order)

    world.source.scripts[ProbeOrder] = lose

    found = await world.run(make_want())

    assert [one.listener.state for one in found] == ["lost"]
    assert "pass" not in verdicts(found)


async def test_a_slow_start_holds_nobody_up() -> None:
    """A host that is not ready by then is probed without listeners."""
    world = World(lambda mode, port: UNASKED)

    world.target.settled.clear()
    world.target.lost = True

    (found,) = await world.run(make_want(), settings=ProbeSettings(ready_s=0.01))

    assert found.listener.state == "unknown"


@pytest.mark.parametrize(("late", "word"), [(False, "blocked"), (True, "pass")])
async def test_a_recorder_that_began_too_late_tells_nothing(late: bool, word: str) -> None:
    """That no request came is known only of what was sent after it began."""
    world = World(lambda mode, port: REFUSED)
    nothing = StoryTold(0, True, None, [], [], [], heard=True, awake=True, lost=0, full=False)
    sent = SeenRun([(443, 443)], SeenPackets(1, 1, 1, 64, "eth0"), None, None, [7])
    world.source.recorder = world.target.recorder = True
    world.source.scripts[StoryOrder] = lambda order: nothing._replace(runs=[sent])
    world.target.scripts[StoryOrder] = lambda order: nothing
    world.target.lost = late

    def begin(order: ProbeOrder) -> ProbeReply:
        world.target.lost = False
        return reply(order, REFUSED)

    world.source.scripts[ProbeOrder] = begin

    found = await world.run(make_want())

    assert verdicts(found) == {word}


@pytest.mark.parametrize("with_agent", [True, False])
@pytest.mark.parametrize(
    "want",
    [
        make_want("tcp", ((5, 9),)),
        make_want("udp", ((8472, 8472),), probe="vxlan"),
        make_want("icmp", ()),
        make_want("ipproto/4", ()),
        make_want("icmp", (), probe=PATH_MTU),
        make_want("tcp", ((5, 9),), expect="denied"),
        make_want(target=NAMED),
    ],
)
async def test_what_nobody_measured_never_passes(want: Want, with_agent: bool) -> None:
    """The source's agent is lost: its flows are not tested, whatever they are."""
    world = World(with_agent=with_agent)
    world.source.lost = True

    found = await world.run(want)

    assert [one.outcome for one in found] == [None] * len(found)
    assert {one.untested for one in found} == {("agent-lost", "the agent of a was lost")}
    assert verdicts(found) == {"not-tested"}
    assert_whole(world)


@pytest.mark.parametrize("order", [ListenOrder, SeenOrder, CloseOrder])
@pytest.mark.parametrize(
    "want",
    [
        make_want("udp", ((8472, 8472),), probe="vxlan"),
        make_want("ipproto/4", ()),
        make_want("tcp", ((5, 9),)),
    ],
)
async def test_whatever_is_lost_every_flow_is_emitted_once(want: Want, order: type[Any]) -> None:
    """And one-way packets, which nobody saw arrive, pass nothing."""
    world = World(lambda mode, port: kind(op="send") if mode == "send" else SILENCE)
    world.lose_target_at(order)

    found = await world.run(want)

    assert "pass" not in verdicts(found)
    assert_whole(world)


async def test_a_bug_of_the_destinations_agent_counts_as_its_loss() -> None:
    """The listeners' word is missing, though the agent is there."""
    world = World()

    def fail(_: Any) -> Any:
        raise AgentError("agent-fault", "a bug")

    world.target.scripts[SeenOrder] = fail

    found = await world.run(make_want())

    assert [one.listener.state for one in found] == ["lost"]
    assert world.sent(CloseOrder) != []


@pytest.mark.parametrize("want", [make_want(), make_want("icmp", ()), make_want(target=NAMED)])
async def test_of_an_agent_that_broke_the_rules_nothing_is_believed(
    want: Want,
) -> None:
    """What it had told before its answers were found out is no result."""
    world = World()
    world.source.scripts[ResolveOrder] = lambda order: Resolved(order.id, ["10.0.0.2"], None, "")
    assert verdicts(await world.run(want)) == {"pass"}

    again = World()
    again.source.scripts = world.source.scripts
    refused = AgentError("agent-lost", "the agent of a was lost: it sent nonsense")
    again.source.refusal = refused
    found = await again.run(want)

    assert {one.untested for one in found} == {(refused.reason, str(refused))}
    assert verdicts(found) == {"not-tested"}


async def test_an_answer_that_nobody_can_work_on_loses_the_agent() -> None:
    """Its flows are not tested, and the exception is in their words."""
    world = World()
    world.source.scripts[ProbeOrder] = lambda order: ProbeReply([None])  # type: ignore[list-item]

    found = await world.run(make_want(), make_want("icmp", (), order=(1, 0, 0)))

    assert not world.source.alive
    assert verdicts(found) == {"not-tested"}
    assert any("AttributeError" in (one.untested or ("", ""))[1] for one in found)
    assert_whole(world)


async def test_what_had_its_result_when_the_agent_was_lost_is_not_asked_again() -> None:
    """The run has told the answers of the other ports before: only the silent one is probed."""
    world = World(lambda mode, port: SILENCE if port == 7 else open_to_us(mode, port))
    want = make_want("tcp", ((5, 9),))
    target = want.flow.address.text

    def lose(order: CloseOrder) -> Any:
        want.ledger.ports[target] = ((5, 6), (8, 9))
        world.target.lost = True
        raise AgentError("agent-lost", "gone")

    world.target.scripts[CloseOrder] = lose

    await world.make().run([want])

    assert world.sent(ProbeOrder)[-1].blocks[0].ports == [(7, 7)]
    told = [(one.ports, one.listener.state) for one in world.evidence]
    assert told == [(((7, 7),), "lost")]
