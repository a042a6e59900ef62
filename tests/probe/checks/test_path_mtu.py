"""What a path carries, measured with packets of which nobody may fragment any."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from netprobe.agent.wire.answers import Seen
from netprobe.agent.wire.host_messages import (
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    ProbeOrder,
    SeenOrder,
)
from netprobe.agent.wire.parts import OrderArrivals
from netprobe.model.evidence import Outcome, PathMtu, Witness
from netprobe.model.inventory import Host
from netprobe.model.notes import SizeNote
from netprobe.model.plan import PATH_MTU
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.path_mtu import PathMtuLook
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.told_ports import unprobed
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
)
from tests.probe.fakes import FakeAgent, host, icmp, kind, reply, routed

LOST = kind(op="send", failure="no-answer")
ECHO = kind(op="answer", answer="echo")


@dataclass
class World:
    """A path that carries packets up to ``mtu`` bytes; the router before it may say so (``limit``).

    ``echo``, ``nonce``, ``arrives``: whether small echo requests and UDP requests are answered, and
    the overlay's packets reach the listener. ``lost``: how often the first packets of each size get
    lost.
    """

    mtu: int
    dev_mtu: int | None = 1500
    echo: bool = True
    nonce: bool = True
    arrives: bool = True
    limit: int | None = None
    lost: int = 0
    router: str | None = ROUTER
    sent: Counter[int] = field(default_factory=Counter)

    def scene(self, with_agent: bool = True, source: Host = SOURCE) -> Scene:
        """Both agents."""
        asker = FakeAgent(
            source,
            {
                RouteOrder: routed(dev_mtu=self.dev_mtu),
                EchoOrder: lambda order: self._answer(order, ECHO if self.echo else LOST),
                ProbeOrder: lambda order: self._answer(
                    order, kind(op="answer", answer="nonce") if self.nonce else LOST
                ),
            },
        )
        target = FakeAgent(TARGET)

        def see(order: SeenOrder) -> Seen:
            sizes = {one.id: one.size for one in asker.orders(ProbeOrder)}
            found = [
                OrderArrivals(number, [], ["10.0.0.1"], None)
                for number in order.orders
                if self.arrives and (sizes[number] or 0) <= self.mtu
            ]
            return Seen(order.id, found, [], [], [])

        target.scripts[SeenOrder] = see
        return make_scene(asker, target if with_agent else None)

    def _answer(self, order: ProbeOrder | EchoOrder, answer: Any) -> object:
        size = order.size or 0
        self.sent[size] += 1
        if self.sent[size] <= self.lost:
            return reply(order, LOST)
        if size <= self.mtu:
            return reply(order, answer)
        if self.limit is None:
            return reply(order, LOST)
        fact = None if self.router is None else icmp(3, 4, self.router)
        return reply(order, kind(op="send", failure="message-too-long", icmp=fact, mtu=self.limit))


def wanted(**more: Any) -> Observation:
    """A pair whose path is measured."""
    return unprobed(make_task("icmp", (), probe=PATH_MTU, **more), ())


def overlay(**change: Any) -> Observation:
    """The overlay's own packets, which reached our listener."""
    facts = {"listener": "ours", "mode": "send", "witness": Witness(socket=True), **change}
    task = make_task("udp", ((8472, 8472),), probe="vxlan")
    return make_observation(Outcome("send", None), task, template=3, **facts)


def answered(**more: Any) -> Observation:
    """A UDP flow that our listener answered."""
    task = make_task("udp", ((51820, 51820),), **more)
    return make_observation(
        Outcome("answer", None, answer="nonce"), task, listener="ours", mode="nonce", template=1
    )


async def measure(world: World, *others: Observation, with_agent: bool = True) -> PathMtu | None:
    """What is found out of the pair, given these flows of it."""
    found = await look(PathMtuLook(), world.scene(with_agent), wanted(), *others)
    (mtu,) = [one.mtu for one in found if one.task.probe == PATH_MTU]
    return mtu


async def test_a_path_that_carries_what_is_needed_is_asked_once() -> None:
    """The interface's MTU is what overlays are built on."""
    world = World(1500)

    assert await measure(world) == PathMtu(1500, 1500, "service", "echo requests")
    assert world.sent == {1500: 1}


@pytest.mark.parametrize("mtu", [576, 577, 1000, 1279, 1280, 1400, 1449, 1450, 1498, 1499])
async def test_a_smaller_path_is_measured_to_the_byte(mtu: int) -> None:
    """Some sizes at a time, between the smallest one and what is needed."""
    world = World(mtu)

    assert await measure(world) == PathMtu(mtu, 1500, "service", "echo requests")
    assert len(world.sent) < 60


async def test_jumbo_frames() -> None:
    """The steps grow with what is needed."""
    assert await measure(World(4321, dev_mtu=9000)) == PathMtu(
        4321, 9000, "service", "echo requests"
    )


async def test_loopback_carries_all_that_an_ip_packet_may_be() -> None:
    """Two hosts of the inventory are one machine: its device promises a byte too many."""
    assert await measure(World(65535, dev_mtu=65536)) == PathMtu(
        65535, 65535, "service", "echo requests"
    )


async def test_ipv6_starts_at_its_smallest_mtu() -> None:
    """No path of IPv6 carries less than 1,280 bytes."""
    source, target = host("a", "fd00::1"), host("b", "fd00::2")
    world = World(1300)

    (found,) = await look(
        PathMtuLook(), world.scene(source=source), wanted(source=source, target=target)
    )

    assert found.mtu == PathMtu(1300, 1500, "service", "echo requests")
    assert min(world.sent) == 1280


async def test_a_router_that_says_its_limit_is_named() -> None:
    """Without its word it is a black hole."""
    found = await measure(World(1400, limit=1400))

    assert found == PathMtu(1400, 1500, "service", "echo requests", ROUTER, 1400)


async def test_the_own_interfaces_limit_names_no_router() -> None:
    """Its kernel refuses larger packets without an ICMP error."""
    found = await measure(World(1400, limit=1400, router=None))

    assert found == PathMtu(1400, 1500, "service", "echo requests")


async def test_a_packet_that_was_lost_once_is_sent_again() -> None:
    """A size is too large only where two looks lost it."""
    assert (await measure(World(1500, lost=1))) == PathMtu(1500, 1500, "service", "echo requests")


async def test_where_nothing_arrives_nothing_is_known() -> None:
    """What is needed is known nevertheless."""
    assert await measure(World(1500, echo=False)) == PathMtu(None, 1500)


async def test_without_the_devices_mtu_nothing_is_sent() -> None:
    """Nobody knows what the overlay is built on."""
    world = World(1500, dev_mtu=None)

    assert await measure(world) == PathMtu(None, None)
    assert not world.sent


async def test_the_overlays_own_packets_are_the_best_proof() -> None:
    """Firewalls may treat echo requests otherwise."""
    found = await measure(World(1430, echo=False), answered(), overlay())

    assert found == PathMtu(1430, 1500, "witness", "udp 8472 packets")


async def test_what_our_listener_answers_is_the_next_best() -> None:
    """Here the overlay's packets arrive no more."""
    found = await measure(World(1430, arrives=False, echo=False), answered(), overlay())

    assert found == PathMtu(1430, 1500, "nonce", "udp 51820 packets")


async def test_echo_requests_are_the_last_way() -> None:
    """They need no listener."""
    found = await measure(World(1430, arrives=False, nonce=False), answered(), overlay())

    assert found == PathMtu(1430, 1500, "service", "echo requests")


@pytest.mark.parametrize(
    "other",
    [
        overlay(witness=Witness()),
        overlay(witness=None),
        overlay(listener="live"),
        overlay(mode="nonce"),
        answered(source=host("c", "10.0.0.3")),
        answered(target=host("b", "10.0.0.4")),
    ],
)
async def test_flows_that_did_not_arrive_or_go_elsewhere_are_no_way(other: Observation) -> None:
    """Only what the same pair sent and what arrived is worth a further try."""
    found = await measure(World(1500), other)

    assert found == PathMtu(1500, 1500, "service", "echo requests")


async def test_orders_carry_the_flows_packet_and_the_size() -> None:
    """The same port, mode and template as the flow whose packets arrived."""
    scene = World(1500).scene()

    await look(PathMtuLook(), scene, wanted(), overlay())

    (order,) = scene.fleet.agent(SOURCE).orders(ProbeOrder)  # type: ignore[attr-defined]  # a fake
    (block,) = order.blocks
    assert (order.proto, order.size, order.looks) == ("udp", 1500, 1)
    assert (block.ports, block.mode, block.template) == ([(8472, 8472)], "send", 3)


async def test_other_flows_stay_as_they_are() -> None:
    """The measurement is a result of its own, with its own entry in the trail."""
    flow = answered()

    first, second = await look(PathMtuLook(), World(1400).scene(), wanted(), flow)

    assert second is flow
    assert (first.outcome, first.listener.state) == (Outcome(PATH_MTU, None), "unknown")
    (entry,) = first.trail
    assert (entry.name, entry.note) == ("path-mtu", SizeNote(1400, 1500))


@pytest.mark.parametrize("with_agent", [True, False])
async def test_where_the_source_is_lost_the_path_is_untested(with_agent: bool) -> None:
    """Its reason is that of the source's flows."""
    scene = World(1500).scene(with_agent)
    scene.fleet.agent(SOURCE).lost = True  # type: ignore[attr-defined]  # a FakeAgent

    (found,) = await look(PathMtuLook(), scene, wanted())

    assert found.outcome is None
    assert found.untested == ("agent-lost", "the agent of a was lost")


async def test_the_loss_of_the_destinations_agent_costs_only_the_path() -> None:
    """What its listeners proved of other flows stands."""
    scene = World(1500).scene()
    scene.agent.lost = True  # type: ignore[attr-defined]  # a FakeAgent

    path, flow = await look(PathMtuLook(), scene, wanted(), proven := overlay())

    assert flow is proven
    assert (path.outcome, path.untested) == (None, ("agent-lost", "the agent of b was lost"))


def test_an_unmeasured_path_passes_nothing() -> None:
    """It has no outcome until it is measured."""
    found = wanted()

    assert (found.outcome, found.mtu, found.ports) == (None, None, ())
