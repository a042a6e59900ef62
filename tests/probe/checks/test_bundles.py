"""What fails from the same source ports every time is one bad link of a bundle, and not loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model.evidence import Outcome
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.checks.bundles import LOOKS, SOURCE_PORTS, Bundles
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, kind, reply

NOTHING = kind(failure="no-answer")
OPEN = kind(op="answer", answer="nonce", by=1)
LATE = Outcome("answer", None, answer="nonce", attempts=2)
SILENT = Outcome("answer", "no-answer", attempts=2)

# Tells by source port, and how often it has been asked before, in which look the answer comes; 0:
# in none.
Fate = Callable[[int, int], int]


def seen(
    protocol: str = "tcp", outcome: Outcome | None = LATE, ports: Ports = ((443, 450),), **more: Any
) -> Observation:
    """Flows to our listeners."""
    usual = {"listener": "ours", "mode": "nonce", **more}
    return make_observation(outcome, make_task(protocol, ports), **usual)


class World:
    """A source whose packets meet their fate by the port that they leave from."""

    def __init__(
        self, fate: Fate, settings: ProbeSettings | None = None, stopped: tuple[int, ...] = ()
    ) -> None:
        self._fate = fate
        self._stopped = stopped
        self.asked: list[int] = []
        self.source = FakeAgent(SOURCE, {ProbeOrder: self._probe})
        self.target = FakeAgent(TARGET)
        self.scene = make_scene(self.source, self.target, settings=settings)

    def _probe(self, order: ProbeOrder) -> ProbeReply:
        assert order.sport is not None
        fate = self._fate(order.sport, self.asked.count(order.sport))
        self.asked.append(order.sport)
        answered = 0 < fate <= order.looks

        def tell(port: int) -> OutcomeKind:
            return OPEN if answered and port not in self._stopped else NOTHING

        rows = reply(order, tell).rows
        return ProbeReply([row._replace(looks=fate if answered else order.looks) for row in rows])

    async def conclude(self, *some: Observation) -> list[str]:
        found = await look(Bundles(), self.scene, *(some or (seen(),)))
        return [one.conclusion.said for one in found if one.conclusion]


async def test_the_same_source_ports_every_time_are_a_bad_link() -> None:
    """One flow of the pair is asked; those that failed go first the second time."""
    world = World(lambda port, _: port % 4 != 0)

    said = await world.conclude(seen(), seen(ports=((80, 80),)))

    failed = sorted({port for port in world.asked if port % 4 == 0})
    ports = ", ".join(map(str, failed))
    assert said == [f"4 of {SOURCE_PORTS} source ports fail every time ({ports})"] * 2
    orders = world.source.orders(ProbeOrder)
    assert [order.looks for order in orders] == [1] * SOURCE_PORTS + [LOOKS] * SOURCE_PORTS
    assert world.asked[SOURCE_PORTS:][:4] == failed
    assert {tuple(order.blocks[0].ports) for order in orders} == {((443, 443),)}


async def test_what_no_source_port_gets_through_to_is_stopped_by_something_else() -> None:
    """A rule drops one of the silent ports wholly; the others get through from some."""
    world = World(lambda port, _: port % 4 != 0, stopped=(31005,))

    found = await look(
        Bundles(), world.scene, seen("udp"), seen("udp", SILENT, ports=((31004, 31006),))
    )

    concluded = {one.ports: one.conclusion is not None for one in found}
    assert concluded == {((443, 450),): True, ((31004, 31004), (31006, 31006)): True,
                         ((31005, 31005),): False}  # fmt: skip


@pytest.mark.parametrize(
    "fate",
    [
        lambda port, time: 1,
        lambda port, time: 0,
        # Loss: other ports fail, or one gets through later.
        lambda port, time: (port + time) % 4 != 0,
        lambda port, time: time and 2 if port % 4 == 0 else 1,
        # A limit of new connections lets only the first ones through.
        lambda port, time: port % 16 < 9 if time == 0 else port % 16 >= 9,
    ],
)
async def test_anything_else_is_none(fate: Fate) -> None:
    """Each source port must fail or pass twice."""
    assert await World(fate).conclude() == []


async def test_who_wants_one_look_gets_no_more() -> None:
    """--retries 0."""
    world = World(lambda port, _: port % 2, ProbeSettings(looks=1))

    assert await world.conclude() == []
    assert world.asked == []


@pytest.mark.parametrize(
    ("some", "concerned"),
    [
        (seen(), True),
        (seen("udp"), True),
        (seen("udp", SILENT), True),
        # Each of its looks came from a port of its own.
        (seen("tcp", SILENT), False),
        (seen(outcome=Outcome("answer", None, answer="nonce")), False),
        (seen(listener="live"), False),
        # Its connections leave something at their ports.
        (seen(mode="connect"), False),
        (seen(outcome=None), False),
        (seen("icmp", ports=()), False),
    ],
)
def test_what_is_asked_again(some: Observation, concerned: bool) -> None:
    """Flows to our listeners that were answered late, and silent datagrams."""
    assert Bundles().concerns(some) is concerned
