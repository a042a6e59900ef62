"""One-way packets that the listener has not seen are sent again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Seen
from netprobe.agent.wire.orders import ProbeOrder, SeenOrder
from netprobe.agent.wire.parts import OrderArrivals
from netprobe.model.evidence import Outcome, Witness
from netprobe.model.notes import SilenceNote
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.one_way import OneWay
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, kind, reply

SENT = Outcome("send", None)


def sent(port: int = 8472, **change: Any) -> Observation:
    """A packet that was sent and that the listener has not seen."""
    facts = {"listener": "ours", "mode": "send", "witness": Witness(), **change}
    outcome = facts.pop("outcome", SENT)
    return make_observation(outcome, make_task("udp", ((port, port),), probe="vxlan"), **facts)


def scene_of(arrives: set[int]) -> Scene:
    """Both agents; packets to these ports arrive."""
    source = FakeAgent(SOURCE, {ProbeOrder: lambda order: reply(order, kind(op="send", packets=6))})
    target = FakeAgent(TARGET)
    scene = make_scene(source, target)

    def see(order: SeenOrder) -> Seen:
        ports = {one.id: one.blocks[0].ports for one in source.orders(ProbeOrder)}
        found = [
            OrderArrivals(number, ports[number], ["10.0.0.1"], None)
            for number in order.orders
            if ports[number][0][0] in arrives
        ]
        return Seen(order.id, found, [], [], [])

    target.scripts[SeenOrder] = see
    return scene


async def test_what_arrives_later_has_its_witness() -> None:
    """Nobody answers these packets; the listener's word is all there is."""
    scene = scene_of({8472})

    found = await look(OneWay(), scene, sent(), sent(4789))

    assert [(one.ports, one.witness) for one in found] == [
        (((4789, 4789),), Witness()),
        (((8472, 8472),), Witness(socket=True)),
    ]


async def test_they_are_sent_in_two_more_looks() -> None:
    """Six packets beside the first three: loss alone seldom takes them all."""
    scene = scene_of(set())

    first = replace(SENT, packets=3)

    (found,) = await look(OneWay(), scene, sent(outcome=first).noting("earlier"))

    (order,) = scene.fleet.agent(SOURCE).asked  # type: ignore[attr-defined]  # a FakeAgent
    assert found.outcome is not None
    assert (found.outcome.attempts, found.outcome.packets) == (2, 9)
    assert found.trail[-1].note == SilenceNote(9, 0.05)
    assert (order.first_ms, order.look_ms, order.looks) == (500, 500, 2)
    assert [entry.name for entry in found.trail] == ["earlier", "probe", "one-way"]


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({}, True),
        ({"witness": Witness(socket=True)}, False),
        # Nobody asked the listeners.
        ({"witness": None}, False),
        ({"listener": "unknown"}, False),
        ({"mode": "nonce"}, False),
        ({"outcome": Outcome("send", "no-buffers")}, False),
        ({"outcome": Outcome("send", None, answer="reflected")}, False),
        ({"outcome": None}, False),
    ],
)
def test_unseen_packets_concern_the_check(change: dict[str, Any], concerned: bool) -> None:
    """What failed at the source, was answered, or has arrived needs no second look."""
    assert OneWay().concerns(sent(**change)) is concerned


def test_it_needs_listeners() -> None:
    """Without an agent at the destination nobody can tell what arrived."""
    assert OneWay.needs == "agent"
