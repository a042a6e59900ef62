"""Walks that begin while silence is still asked again, and what they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import WalkOrder
from netprobe.agent.wire.parts import WalkHop
from netprobe.model.evidence import Icmp, Outcome, Trace
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.traceroute import Traceroute
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.reachability import SPARE_ERRORS
from netprobe.probe.flows.walks import KEPT_WALKS, Walks
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, routed

SILENT = Outcome("connect", "no-answer")
TURNS = 10


def silent(ports: Ports = ((443, 443),), **more: Any) -> Observation:
    return make_observation(SILENT, make_task("tcp", ports), **more)


def refused_by_router(type_: int = 3, code: int = 13) -> Outcome:
    return Outcome("connect", "admin-prohibited", icmp=Icmp(type_, code, ROUTER, "router"))


@pytest.fixture
def source() -> FakeAgent:
    """A source with a router before it, which answers every walk."""
    hops = [WalkHop(1, ROUTER)]
    scripts = {
        WalkOrder: lambda order: Walked(order.id, hops, False, None, None),
        RouteOrder: routed(gateway=ROUTER),
    }
    return FakeAgent(SOURCE, scripts)


async def begin(scene: Scene, *found: Observation) -> None:
    """Begin walks, and let them end."""
    scene.walks.begin(found)
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_a_walk_begun_early_stands_for_the_flows_that_stay_silent(source: FakeAgent) -> None:
    """Once for each way, with the first silent port."""
    scene = make_scene(source)
    await begin(scene, silent(((80, 90),)), silent())
    assert [order.port for order in source.orders(WalkOrder)] == [80]
    assert scene.walks.has_begun(silent().task.pair)
    assert not scene.walks.has_begun((SOURCE.name, "10.9.9.9"))

    found = await look(Traceroute(), scene, silent(((85, 90),)), silent(((80, 84),)), silent())

    assert [one.trace for one in found] == [Trace(ROUTER, 1)] * 3
    assert [order.port for order in source.orders(WalkOrder)] == [80]


async def test_where_its_own_flow_answered_another_is_walked(source: FakeAgent) -> None:
    """A firewall may let that port through."""
    scene = make_scene(source)
    await begin(scene, silent(((80, 80),)), silent())

    found = await look(Traceroute(), scene, silent())

    assert [one.trace for one in found] == [Trace(ROUTER, 1)]
    assert [order.port for order in source.orders(WalkOrder)] == [80, 443]


def hear(scene: Scene, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        scene.prober.answered.note_answer(SOURCE.name, "10.0.0.9", outcome)


def keep_few_walks(scene: Scene) -> None:
    scene.fleet.agent(SOURCE).walks_left = KEPT_WALKS


@pytest.mark.parametrize(
    ("prepare", "begins"),
    [
        (lambda scene: None, True),
        (lambda scene: hear(scene, *[refused_by_router()] * (SPARE_ERRORS - 1)), True),
        (lambda scene: hear(scene, *[refused_by_router()] * SPARE_ERRORS), False),
        # What a walk makes routers say is then an error of the flows.
        (lambda scene: hear(scene, refused_by_router(11, 0)), False),
        (keep_few_walks, False),
    ],
    ids=["nothing heard", "few errors", "many errors", "time exceeded", "few walks left"],
)
async def test_no_walk_takes_what_is_still_needed(
    source: FakeAgent, prepare: Callable[[Scene], None], begins: bool
) -> None:
    """Routers ration their errors, and walks are counted."""
    scene = make_scene(source)
    prepare(scene)

    await begin(scene, silent())

    assert len(source.orders(WalkOrder)) == begins


async def test_an_outcome_of_many_flows_is_many_errors(source: FakeAgent) -> None:
    """A range of refused ports took an error for each."""
    scene = make_scene(source)
    scene.prober.answered.note_answer(SOURCE.name, "10.0.0.9", refused_by_router(), SPARE_ERRORS)

    await begin(scene, silent())

    assert source.orders(WalkOrder) == []


async def test_rationed_datagrams_and_answers_are_not_walked_for(source: FakeAgent) -> None:
    """A closed UDP port's errors are the destination's, which a walk would take."""
    scene = make_scene(source)
    paced = make_observation(SILENT, make_task("udp"))
    paced = replace(paced, part=replace(paced.part, paced=True))

    await begin(scene, paced, make_observation(Outcome("connect", "refused")))

    assert source.orders(WalkOrder) == []


async def test_a_run_that_asks_for_no_places_walks_nowhere(source: FakeAgent) -> None:
    """It asks only whether flows get through."""
    scene = make_scene(source)
    walks = Walks(scene.fleet, scene.prober.answered, early=False)

    await begin(replace(scene, walks=walks), silent())

    assert source.asked == []


async def test_a_lost_agent_costs_only_the_walk(source: FakeAgent) -> None:
    """Also where it is lost while it walks; what it saw before stands."""
    scene = make_scene(source)
    scene.walks.begin([silent()])
    source.lost = True
    seen = silent()

    assert await look(Traceroute(), scene, seen) == [seen]


async def test_an_interrupted_destination_stops_its_walks(source: FakeAgent) -> None:
    """Nobody waits for them any more."""
    scene = make_scene(source)
    scene.walks.begin([silent()])
    scene.walks.close()
    for _ in range(TURNS):
        await asyncio.sleep(0)

    assert source.orders(WalkOrder) == []
