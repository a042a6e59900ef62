"""Where silent flows end, by one walk for each protocol of a pair."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import WalkOrder
from netprobe.agent.wire.parts import IcmpFact, WalkHop
from netprobe.agent.wire.questions import MAX_TTL
from netprobe.model.evidence import Icmp, Outcome, Trace, Witness
from netprobe.model.ports import Ports
from netprobe.model.story import Story, StoryPlace
from netprobe.probe.checks.traceroute import Traceroute
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, routed

SILENT = Outcome("connect", "no-answer")
FAR = "10.0.9.2"


def silent(protocol: str = "tcp", ports: Ports = ((443, 443),), **more: Any) -> Observation:
    return make_observation(SILENT, make_task(protocol, ports), **more)


def agent(
    *addresses: str | None,
    reached: bool = False,
    failure: str | None = None,
    gateway: str | None = ROUTER,
    refusal: IcmpFact | None = None,
) -> FakeAgent:
    """A source whose walks meet these."""
    hops = [WalkHop(ttl, address) for ttl, address in enumerate(addresses, 1)]
    return FakeAgent(
        SOURCE,
        {
            WalkOrder: lambda order: Walked(order.id, hops, reached, failure, refusal),
            RouteOrder: routed(gateway=gateway),
        },
    )


@pytest.mark.parametrize(
    ("source", "trace"),
    [
        (agent(ROUTER, FAR, None, None), Trace(FAR, 2, reached=False)),
        (agent(ROUTER, None, "10.0.0.2", reached=True), Trace(ROUTER, 1, reached=True)),
        (agent(None, None), Trace(None, 0)),
        (agent(ROUTER, failure="not-permitted"), None),
    ],
)
async def test_a_trace_ends_at_the_last_router_that_answered(
    source: FakeAgent, trace: Trace | None
) -> None:
    """The destination itself is no router of its path."""
    (found,) = await look(Traceroute(), make_scene(source), silent())

    assert found.trace == trace
    assert [entry.name for entry in found.trail] == ["traceroute"]


async def test_a_router_that_ends_a_walk_has_refused_the_flow() -> None:
    """Its errors are rationed. That it has no route holds for all ports, other words for the port
    that was walked; none of it for a flow that came to the destination, or for "host unreachable",
    which a firewall says, too."""
    walked, other = ((22, 22),), ((443, 443),)

    async def find_refused(code: int) -> set[Ports]:
        source = agent(ROUTER, FAR, refusal=IcmpFact(3, code, FAR, 63))
        flows = silent(ports=walked), silent(ports=other), came
        found = await look(Traceroute(), make_scene(source), *flows)
        assert {one.trace and one.trace.last_hop for one in found} == {FAR}
        assert [order.port for order in source.orders(WalkOrder)] == [22]
        refusal = Icmp(3, code, FAR, "router", 63)
        return {one.ports for one in found if one.refusal == refusal}

    came = silent(ports=((9000, 9000),), story=Story(destination_in=StoryPlace("yes")))
    assert await find_refused(0) == {walked, other}
    assert await find_refused(13) == {walked}
    assert await find_refused(1) == set()


async def test_one_walk_stands_for_all_flows_of_its_protocol() -> None:
    """With the first silent port, and the packet that the flow sends there."""
    source = agent(ROUTER)
    flows = [silent(ports=((80, 90),), template=4), silent(), silent("udp"), silent("icmp", ())]

    found = await look(Traceroute(), make_scene(source), *flows)

    assert [one.trace for one in found] == [Trace(ROUTER, 1)] * 4
    assert sorted(source.orders(WalkOrder), key=lambda order: order.proto) == [
        WalkOrder(0, "icmp", "10.0.0.2", 0, None, MAX_TTL, 0),
        WalkOrder(0, "tcp", "10.0.0.2", 80, None, MAX_TTL, 4),
        WalkOrder(0, "udp", "10.0.0.2", 443, None, MAX_TTL, 0),
    ]


async def test_walks_are_counted() -> None:
    """With more than some walks a large failure would take minutes to say nothing new."""
    source = agent(ROUTER)
    source.walks_left = 1
    flows = [silent(), silent("udp")]

    found = await look(Traceroute(), make_scene(source), *flows)

    assert source.walks_left == 0
    assert len(source.orders(WalkOrder)) == 1
    assert [one.trace for one in found].count(None) == 1
    assert [one.trail for one in found].count(()) == 1


def refused_by_router() -> Outcome:
    """What a router's firewall says."""
    return Outcome("connect", "admin-prohibited", icmp=Icmp(3, 13, ROUTER, "router"))


async def test_a_walk_waits_for_the_sources_other_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routers answer a prober about once a second, and one has answered this source."""
    source = agent(ROUTER)
    asked_before: list[int] = []

    async def quiet() -> None:
        asked_before.append(len(source.orders(WalkOrder)))

    monkeypatch.setattr(source, "quiet", quiet)
    scene = make_scene(source)
    await look(Traceroute(), scene, silent())
    assert asked_before == []

    scene.prober.answered.note_answer(SOURCE.name, "10.0.0.9", refused_by_router())
    await look(Traceroute(), scene, silent())
    assert asked_before == [1]


async def test_a_neighbour_has_no_router_before_it() -> None:
    """Nothing is walked, and the walk is left for another flow."""
    source = agent(gateway=None)
    before = source.walks_left
    seen = silent()

    assert await look(Traceroute(), make_scene(source), seen) == [seen]
    assert source.orders(WalkOrder) == []
    assert source.walks_left == before


@pytest.mark.parametrize(
    ("seen", "concerned"),
    [
        (silent(), True),
        (silent("icmp", ()), True),
        (make_observation(Outcome("send", None), make_task("udp"), mode="send"), True),
        (silent("ipproto/4", ()), False),
        (silent(story=Story(destination_in=StoryPlace("yes"))), True),
        (silent(witness=Witness(socket=True)), False),
        (make_observation(Outcome("connect", "no-answer", left_host=False)), False),
        (
            make_observation(
                Outcome("connect", "no-answer", left_host=False),
                story=Story(source_out=StoryPlace("yes")),
            ),
            True,
        ),
        (make_observation(Outcome("connect", "refused")), False),
        (make_observation(Outcome("connect", None, answer="unasked")), False),
        (make_observation(None), False),
    ],
)
def test_silence_concerns_the_check(seen: Observation, concerned: bool) -> None:
    """Where requests arrived, or never left, a walk tells nothing. What the source's recorder saw
    leave has left: its kernel says otherwise of a packet that a full queue dropped."""
    assert Traceroute().concerns(seen) is concerned


async def test_where_the_source_is_lost_only_the_walk_is_missing() -> None:
    """What it saw before stands."""
    source = agent(ROUTER)
    source.lost = True
    seen = silent()

    assert await look(Traceroute(), make_scene(source), seen) == [seen]
