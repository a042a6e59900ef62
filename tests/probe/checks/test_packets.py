"""Whose packets are fetched for ``--evidence``, and by which names the destination knows them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import PacketsKept
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import KeptOrder
from netprobe.agent.wire.parts import KeptPacket
from netprobe.model.evidence import CheckConclusion, Outcome
from netprobe.model.story import EndPackets, FlowPacket, FlowPackets
from netprobe.probe.checks.packets import MOST_PORTS, fetch_packets
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import SOURCE, TARGET, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, routed

SILENT = Outcome("connect", "no-answer")
PASSED = Outcome("answer", None, answer="nonce")
PACKET = KeptPacket(443, 5, "eth0", True, 60, b"E")


class World:
    """Both recorders kept one packet of everything."""

    def __init__(self, *, records: bool = True) -> None:
        def tell(order: KeptOrder) -> PacketsKept:
            return PacketsKept(0, [PACKET], [4711], 2, [99], sure=order.sent or self.sure_there)

        self.source = FakeAgent(SOURCE, {KeptOrder: tell, RouteOrder: routed(source="10.0.0.1")})
        self.target = FakeAgent(TARGET, {KeptOrder: tell})
        self.source.recorder = self.target.recorder = records
        self.sure_there = False
        self.kept: list[FlowPackets] = []

    async def fetch(self, *seen: Observation, is_recorded: bool = True) -> list[FlowPackets]:
        scene = replace(make_scene(self.source, self.target), is_recorded=is_recorded)
        await fetch_packets(seen, scene, self.kept.append)
        return self.kept


async def test_the_source_names_what_the_destination_is_asked_for() -> None:
    """By the first sequence numbers of its connects; of many ports some stand for all."""
    world = World()
    seen = make_observation(SILENT, make_task("tcp", ((443, 500),)))

    (found,) = await world.fetch(seen)

    (first,), (second,) = world.source.orders(KeptOrder), world.target.orders(KeptOrder)
    assert (first.sent, first.asker, first.numbers) == (True, "10.0.0.1", [seen.order])
    assert first.ports[0] == (443, 443)
    assert first.ports[-1] == (500, 500)
    assert len(first.ports) == MOST_PORTS
    assert (second.sent, second.numbers) == (False, sorted({seen.order, 4711}))
    assert (first.own_ports, second.own_ports) == ([], [99])
    packet = FlowPacket(443, 5, "eth0", True, 60, b"E")
    assert found == FlowPackets(
        "10.0.0.2", "tcp", ((443, 500),), tuple(first.ports), EndPackets("a", True, (packet,), 2),
        EndPackets("b", False, (packet,), 2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (make_observation(SILENT), True),
        (make_observation(Outcome("connect", "refused")), True),
        (make_observation(PASSED), False),
        (make_observation(PASSED, conclusion=CheckConclusion("bad-link")), True),
        (make_observation(None), False),
    ],
)
async def test_only_what_may_be_part_of_a_finding(seen: Observation, wanted: bool) -> None:
    """What passed needs no packets."""
    assert bool(await World().fetch(seen)) is wanted


async def test_without_recorders_there_is_nothing() -> None:
    """Nor where an agent is gone."""
    world, lost = World(records=False), World()
    lost.source.lost = lost.target.lost = True

    assert await world.fetch(make_observation(SILENT)) == []
    assert await lost.fetch(make_observation(SILENT)) == []


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_recorder_that_began_too_late_is_sure_of_nothing(is_recorded: bool) -> None:
    """What was sent before may have come."""
    world = World()
    world.sure_there = True

    (found,) = await world.fetch(make_observation(SILENT), is_recorded=is_recorded)

    assert (found.source.sure, found.destination.sure) == (True, is_recorded)
