"""Connections that somebody nearer than the destination opened."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, WalkOrder
from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS, MAX_TTL
from netprobe.model.evidence import Outcome
from netprobe.model.notes import InterceptionNote
from netprobe.model.ports import Ports
from netprobe.model.story import Story, StoryPlace
from netprobe.probe.checks.intercepted import EVERYBODY, NEARER, Intercepted
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, host, kind, reply

OPEN = Outcome("connect", None, answer="unasked")
TARGET = "10.0.0.2"
HOPS = {"icmp": [ROUTER, ROUTER, TARGET]}


def connects(source: FakeAgent) -> list[ProbeOrder]:
    """The orders for TCP."""
    return [order for order in source.orders(ProbeOrder) if order.proto == "tcp"]


def recorded(ports: Ports, ttl: int) -> Observation:
    """Connections whose SYN-ACKs the source's recorder saw arrive with this TTL."""
    return replace(opened(ports), story=Story(source_in=StoryPlace("yes", 1, ttl=ttl)))


def hops(*addresses: str | None) -> list[WalkHop]:
    return [WalkHop(ttl, address) for ttl, address in enumerate(addresses, 1)]


def agent(
    opening: dict[int, int],
    walks: dict[str, list[str]] | None = None,
    control: int = 0,
    echo_ttl: int | None = None,
) -> FakeAgent:
    """A source whose connects open at these ports with at least this TTL; ``control``: how many of
    the control ports open. ``walks`` are the hops by protocol; ``echo_ttl``: of echo replies."""
    needs = opening | dict.fromkeys(CONTROL_PORTS[:control], 1)

    def echo(order: EchoOrder) -> Any:
        silent, answer = kind(failure="no-answer"), kind(op="answer", answer="echo", ttl=echo_ttl)
        return reply(order, silent if echo_ttl is None else answer)

    def connect(order: ProbeOrder) -> Any:
        ttl = order.ttl or 64
        silent = kind(failure="no-answer")
        opened = kind(answer="unasked")
        return reply(order, lambda port: opened if needs.get(port, 999) <= ttl else silent)

    def walk(order: WalkOrder) -> Walked:
        found = hops(*(HOPS if walks is None else walks).get(order.proto, []))
        return Walked(order.id, found, True, None, None)

    return FakeAgent(SOURCE, {ProbeOrder: connect, EchoOrder: echo, WalkOrder: walk})


def opened(ports: Ports = ((443, 444),), **more: Any) -> Observation:
    """Connections that opened, to no listener of ours."""
    return make_observation(OPEN, make_task("tcp", ports, **more))


def conclusions(found: list[Observation]) -> list[tuple[Ports, str | None]]:
    return [(one.ports, one.conclusion and one.conclusion.said) for one in found]


async def test_who_accepts_ports_that_nobody_uses_accepts_everything() -> None:
    """Then nothing that opened is the destination's, and nothing more is asked."""
    source = agent({443: 1, 444: 1}, control=2)

    found = await look(Intercepted(), make_scene(source), opened())

    assert conclusions(found) == [(((443, 444),), EVERYBODY.said)]
    assert source.orders(WalkOrder) == []
    (entry,) = found[0].trail
    assert entry.status == "bad"
    assert entry.note == InterceptionNote(CONTROL_PORTS[:2], True)


async def test_one_control_port_may_be_somebodys() -> None:
    """Both must open: a service may listen on either."""
    found = await look(Intercepted(), make_scene(agent({443: 3, 444: 3}, control=1)), opened())

    assert conclusions(found) == [(((443, 444),), None)]


async def test_what_opens_with_a_ttl_that_does_not_reach_is_opened_nearer() -> None:
    """Port by port; the others are the destination's as far as anybody knows."""
    source = agent({443: 2, 444: 3})

    found = await look(Intercepted(), make_scene(source), opened())

    assert conclusions(found) == [(((443, 443),), NEARER.said), (((444, 444),), None)]
    assert [order.ttl for order in connects(source)] == [None, 2]
    assert found[0].trail[0].note == InterceptionNote(CONTROL_PORTS[:2], False, 2, True)
    assert [order.max_ttl for order in source.orders(WalkOrder)] == [MAX_TTL]


@pytest.mark.parametrize("walks", [{}, {"icmp": [TARGET]}, {"icmp": [ROUTER, ROUTER]}])
async def test_without_a_distance_nothing_is_sent_short(walks: dict[str, list[str]]) -> None:
    """A neighbour has nobody before it, and an unknown distance cannot be undercut."""
    source = agent({443: 1, 444: 1}, walks)

    found = await look(Intercepted(), make_scene(source), opened())

    assert conclusions(found) == [(((443, 444),), None)]
    assert len(connects(source)) == 1
    assert found[0].notes(InterceptionNote)[0].control_opened is False


async def test_what_opens_no_farther_than_a_router_is_opened_nearer() -> None:
    """The address itself answers nothing else, and a router at TTL 1 lets packets go on."""
    source = agent({443: 1, 444: 2}, {"icmp": [ROUTER]})
    scene = make_scene(source)
    scene.prober.answered.note_answer(SOURCE.name, TARGET, OPEN)

    found = await look(Intercepted(), scene, opened())

    assert conclusions(found) == [(((443, 443),), NEARER.said), (((444, 444),), None)]
    assert not scene.prober.answered.has(SOURCE.name, TARGET)


async def test_where_echo_tells_no_distance_a_closed_udp_port_does() -> None:
    """Many firewalls drop echo."""
    source = agent({443: 1, 444: 1}, {"udp": [ROUTER, TARGET]})

    found = await look(Intercepted(), make_scene(source), opened())

    assert conclusions(found) == [(((443, 444),), NEARER.said)]
    walked = [(order.proto, order.port) for order in source.orders(WalkOrder)]
    assert walked == [("icmp", 0), ("udp", CONTROL_PORTS[0])]


async def test_recorded_answers_with_the_ttl_of_others_are_not_asked_about() -> None:
    """All answers of one host arrive with one TTL."""
    source = agent({}, echo_ttl=61)
    seen = recorded(((1000, 1999),), 61)

    (found,) = await look(Intercepted(), make_scene(source), seen)

    assert conclusions([found]) == [(seen.ports, None)]
    assert source.orders(WalkOrder) == []
    assert [order.ttl for order in connects(source)] == [None]


async def test_a_few_ports_stand_for_all_with_one_ttl() -> None:
    """A proxy's ports beside the host's own."""
    source = agent(dict.fromkeys(range(1000, 2000), 1), echo_ttl=61)
    proxied, own = recorded(((1000, 1999),), 63), recorded(((22, 22),), 61)

    found = await look(Intercepted(), make_scene(source), proxied, own)

    assert conclusions(found) == [(((22, 22),), None), (((1000, 1999),), NEARER.said)]
    _, short = connects(source)
    assert short.ttl == 2
    assert short.blocks[0].ports == [(1000, 1000), (1500, 1500), (1999, 1999)]


async def test_where_the_sample_differs_every_port_is_asked() -> None:
    """Recorded with one TTL, but only some of the sample open: these are no one kind."""
    source = agent({1000: 1, 1234: 2, 1500: 3, 1999: 3}, echo_ttl=61)

    found = await look(Intercepted(), make_scene(source), recorded(((1000, 1999),), 63))

    nearer = ((1000, 1000), (1234, 1234))
    assert conclusions(found) == [
        (nearer, NEARER.said),
        (((1001, 1233), (1235, 1999)), None),
    ]
    # Once with the sample, and then often enough for loss.
    assert [order.ttl for order in connects(source)] == [None, 2, 2, 2, 2]


async def test_without_recorded_answers_nobody_asks_for_their_ttl() -> None:
    """There is nothing to compare it with."""
    source = agent({443: 3, 444: 3}, echo_ttl=61)

    await look(Intercepted(), make_scene(source), opened())

    assert source.orders(EchoOrder) == []


@pytest.mark.parametrize(
    ("protocol", "answer", "listener", "concerned"),
    [
        *itertools.product(
            ["tcp"], ["unasked", "silent", "closed", "reset", "other", "service"],
            ["live", "closed", "unknown", "lost"], [True],
        ),
        ("tcp", "unasked", "ours", False),
        ("udp", "service", "live", False),
        ("tcp", "nonce", "unknown", False),
        ("tcp", None, "unknown", False),
    ],
)  # fmt: skip
def test_connections_without_our_listeners_word_concern_the_check(
    protocol: str, answer: Any, listener: str, concerned: bool
) -> None:
    """A nonce is proof enough."""
    outcome = Outcome("connect", None, answer=answer)
    seen = make_observation(outcome, make_task(protocol), listener=listener)

    assert Intercepted().concerns(seen) is concerned


async def test_a_host_that_probes_itself_is_not_doubted() -> None:
    """Nothing stands between a host and its own address."""
    source = agent({443: 1}, control=2)
    mine = opened(target=host("b", "10.0.0.1"))

    assert await look(Intercepted(), make_scene(source), mine) == [mine]
    assert source.asked == []
