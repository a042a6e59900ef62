"""A next hop behind which nothing answers, and the routes to the destination's neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import Routed, RouteOrder
from netprobe.agent.wire.orders import WalkOrder
from netprobe.agent.wire.parts import WalkHop
from netprobe.model.evidence import Icmp, Outcome, Trace, Witness
from netprobe.model.story import Story, StoryPlace
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.silent_hops import SilentHops
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, host

NEIGHBOUR = "10.0.0.7"
OTHER = "10.0.0.254"
UNSEEN = Story(destination_in=StoryPlace("no"))
SILENT = Outcome("connect", "no-answer")


def scene(gateways: Mapping[str, str | None], answers: bool, *, alone: bool = False) -> Scene:
    """The source's gateways by address, and whether walks to the neighbour find anything."""

    def route(order: RouteOrder) -> Routed:
        return Routed(order.id, "10.0.0.1", "eth0", 1500, 1500, gateways.get(order.dst), None)

    def walk(order: WalkOrder) -> Walked:
        hops = [WalkHop(1, OTHER)] if answers else [WalkHop(1, None)]
        return Walked(order.id, hops, False, None, None)

    source = FakeAgent(SOURCE, {RouteOrder: route, WalkOrder: walk})
    others = () if alone else (FakeAgent(host("c", NEIGHBOUR)), FakeAgent(host("far", "10.9.0.1")))
    return make_scene(source, None, *others)


def silent(outcome: Outcome = SILENT, **facts: Any) -> Observation:
    known: dict[str, Any] = {"trace": Trace(None, 0), "story": UNSEEN} | facts
    return make_observation(outcome, make_task("tcp"), **known)


WRONG = {"10.0.0.2": ROUTER, NEIGHBOUR: OTHER}
SAME = {"10.0.0.2": ROUTER, NEIGHBOUR: ROUTER}


async def test_another_next_hop_by_which_neighbours_answer_is_told() -> None:
    """The source's own route is odd; nobody need be at the other end."""
    (found,) = await look(SilentHops(), scene(WRONG, True), silent(story=None))

    assert found.conclusion is not None
    assert found.conclusion.name == "next-hop-silent"
    assert found.conclusion.next_hop == ROUTER
    assert found.conclusion.said == (
        f"; its route to c goes by {OTHER}, where routers or hosts answer"
    )


@pytest.mark.parametrize("story", [UNSEEN, None])
async def test_without_a_comparison_the_next_hop_may_be_a_firewall(story: Story | None) -> None:
    """One that says nothing, and has no rule for the source yet: that is the path's."""
    (found,) = await look(SilentHops(), scene(SAME, False, alone=True), silent(story=story))

    assert found.conclusion is None
    assert [entry.name for entry in found.trail] == ["route"]


@pytest.mark.parametrize(
    ("gateways", "answers"),
    [
        # A neighbour answers by the same next hop: it forwards.
        (SAME, True),
        # On the same network.
        ({"10.0.0.2": None}, False),
    ],
)
async def test_a_next_hop_that_forwards_is_not_blamed(
    gateways: dict[str, str | None], answers: bool
) -> None:
    """What is silent then is behind it."""
    (found,) = await look(SilentHops(), scene(gateways, answers), silent())

    assert found.conclusion is None


@pytest.mark.parametrize(
    "other",
    [
        silent(Outcome("answer", None, answer="echo")),
        silent(Outcome("connect", "host-unreachable", Icmp(3, 13, ROUTER, "router"))),
        silent(trace=Trace(ROUTER, 1)),
        silent(trace=Trace(None, 0, True)),
        silent(story=Story(destination_in=StoryPlace("yes"))),
        silent(witness=Witness(socket=True)),
    ],
)
async def test_whatever_came_through_shows_that_it_forwards(other: Observation) -> None:
    """One flow of the pair speaks for all."""
    found = await look(SilentHops(), scene(WRONG, True), silent(), other)

    assert {one.conclusion for one in found} == {None}


async def test_an_answer_earlier_in_the_run_counts_too() -> None:
    """Another round may have heard it."""
    here = scene(WRONG, True)
    here.prober.answered.note_answer("a", "10.0.0.2", Outcome("a", None, answer="echo"))

    (found,) = await look(SilentHops(), here, silent())

    assert found.conclusion is None


@pytest.mark.parametrize(
    ("gateway", "concluded"),
    [(ROUTER, None), (OTHER, "next-hop-silent"), (None, "next-hop-silent")],
)
async def test_a_host_of_another_network_shows_that_it_forwards(
    gateway: str | None, concluded: str | None
) -> None:
    """Where the source reaches it by the same next hop."""
    here = scene({**WRONG, "10.9.0.1": gateway}, True)
    here.prober.answered.note_answer("a", "10.9.0.1", Outcome("a", None, answer="echo"))

    (found,) = await look(SilentHops(), here, silent())

    assert found.concluded == concluded


async def test_a_host_that_has_not_answered_so_far_is_asked() -> None:
    """The order of the run is no evidence; one walk of a host counts for all destinations."""
    walked: list[str] = []

    def route(order: RouteOrder) -> Routed:
        return Routed(order.id, "10.0.0.1", "eth0", 1500, 1500, ROUTER, None)

    def walk(order: WalkOrder) -> Walked:
        walked.append(order.dst)
        hop = WalkHop(1, ROUTER if order.dst == "10.9.0.1" else None)
        return Walked(order.id, [hop], False, None, None)

    source = FakeAgent(SOURCE, {RouteOrder: route, WalkOrder: walk})
    far = (FakeAgent(host(f"far{n}", f"10.{n}.0.1")) for n in (8, 9))
    here = make_scene(source, None, *far)

    for _ in range(2):
        (found,) = await look(SilentHops(), here, silent())
        assert found.conclusion is None
    assert sorted(walked) == ["10.8.0.1", "10.9.0.1"]


async def test_without_a_walk_nothing_is_known() -> None:
    """A router that answers walks may be there."""
    (found,) = await look(SilentHops(), scene(WRONG, True), silent(trace=None))

    assert found.conclusion is None
