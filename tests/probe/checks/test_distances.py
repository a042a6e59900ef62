"""How many hops away a destination is."""

from __future__ import annotations

import pytest

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.orders import WalkOrder
from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS, MAX_TTL
from netprobe.probe.checks.distances import DistanceWalks
from tests.probe.builders import ROUTER, SOURCE, make_scene, make_task
from tests.probe.fakes import FakeAgent

TARGET = "10.0.0.2"
Path = tuple[str | None, ...]


def agent(**paths: Path) -> FakeAgent:
    """A source whose walks meet these, by protocol."""

    def walk(order: WalkOrder) -> Walked:
        hops = enumerate(paths.get(order.proto, ()), 1)
        return Walked(order.id, [WalkHop(ttl, address) for ttl, address in hops], True, None, None)

    return FakeAgent(SOURCE, {WalkOrder: walk})


LAST = "10.0.8.1"


@pytest.mark.parametrize(
    ("path", "distance"),
    [
        ((ROUTER, TARGET), 2),
        ((None, ROUTER, None, TARGET), 3),
        ((TARGET,), 1),
        # A lost probe or answer would make it look farther than it is.
        ((None, TARGET), None),
        ((ROUTER, None), None),
        ((ROUTER, TARGET, ROUTER), 2),
        ((), None),
    ],
)
async def test_the_last_router_vouches_for_the_distance(path: Path, distance: int | None) -> None:
    """Its answer proves that one hop less does not reach the destination."""
    assert await DistanceWalks(make_task(), make_scene(agent(icmp=path))).count_hops() == distance


@pytest.mark.parametrize(
    ("path", "distance"),
    [
        ((ROUTER, ROUTER, TARGET), 3),
        ((ROUTER, None, TARGET), None),
        # "Time exceeded" in the destination's name.
        ((ROUTER, TARGET, TARGET), None),
        ((TARGET,), 1),
    ],
)
async def test_an_odd_hop_before_the_destination_may_translate(
    path: Path, distance: int | None
) -> None:
    """Then the distance is not known exactly."""
    scene = make_scene(agent(icmp=path, udp=path))

    assert await DistanceWalks(make_task(), scene).count_hops(exact=True) == distance


@pytest.mark.parametrize(
    ("echo", "udp", "distance"),
    [
        ((ROUTER, LAST), (), 3),
        ((), (ROUTER, LAST), 3),
        ((ROUTER, LAST), (ROUTER,), 3),
        ((ROUTER, LAST), (ROUTER, LAST, TARGET), 3),
        # LAST rejects; its "time exceeded", which came with the TTL before, is dropped, or is not.
        ((ROUTER, None, LAST), (), None),
        ((ROUTER, LAST, LAST), (), None),
        # Packets go round.
        ((ROUTER, LAST, ROUTER, LAST), (), None),
        ((None, LAST), (), None),
        ((), (), None),
    ],
)
async def test_of_a_silent_address_the_last_router_tells_the_least_distance(
    echo: Path, udp: Path, distance: int | None
) -> None:
    """Where all routers before it answered, and each of them once."""
    scene = make_scene(agent(icmp=echo, udp=udp))

    assert await DistanceWalks(make_task(), scene).count_hops(or_least=True) == distance


async def test_where_echo_tells_nothing_a_closed_udp_port_is_asked() -> None:
    """Many firewalls drop echo."""
    source = agent(icmp=(ROUTER, None), udp=(ROUTER, ROUTER, TARGET))

    assert await DistanceWalks(make_task(), make_scene(source)).count_hops() == 3
    asked = [(order.proto, order.port, order.max_ttl) for order in source.orders(WalkOrder)]
    assert asked == [("icmp", 0, MAX_TTL), ("udp", CONTROL_PORTS[0], MAX_TTL)]
