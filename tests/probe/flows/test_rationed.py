"""UDP ports that nobody of ours listens on: paced only where something is rationed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model import ports as port_sets
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.flows.listeners import UNKNOWN, Listeners
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.rationed import probe_tasks
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.settings import PACED_LOOKS, UDP_BURST, ProbeSettings
from tests.probe.builders import SOURCE, TARGET, make_task
from tests.probe.fakes import FakeAgent, FakeFleet, icmp, kind, reply

SILENT = kind(op="send")
REFUSED = kind(failure="refused", icmp=icmp(3, 3, "10.0.0.2"))
# Forty ports, of which the first six go first.
PORTS = ((1, 40),)
LAST = ((UDP_BURST + 1, 40),)

# What a port answers to an order: ``answer(order, port)``.
Answer = Callable[[ProbeOrder, int], OutcomeKind]


class World:
    """One destination, and the orders that it was asked by."""

    def __init__(self, answer: Answer) -> None:
        self.orders: list[ProbeOrder] = []
        self._answer = answer

    async def probe(self, ports: port_sets.Ports = PORTS) -> list[Observation]:
        """What is observed of these UDP ports."""
        source = FakeAgent(SOURCE, {ProbeOrder: self._carry_out})
        prober = Prober(FakeFleet([source, FakeAgent(TARGET)]), ProbeSettings(), Answered())
        found = await probe_tasks([make_task("udp", ports)], Listeners(UNKNOWN), prober)
        assert port_sets.union(one.ports for one in found) == ports
        assert sum(port_sets.count(one.ports) for one in found) == port_sets.count(ports)
        assert all(one.part.paced for one in found)
        return found

    def _carry_out(self, order: ProbeOrder) -> ProbeReply:
        self.orders.append(order)
        return reply(order, lambda port: self._answer(order, port))

    @property
    def looks(self) -> list[tuple[port_sets.Ports, bool, int]]:
        """The ports of each order, whether it was paced, and its looks."""
        return [
            (tuple(one.blocks[0].ports), one.pace is not None, one.looks) for one in self.orders
        ]


async def test_where_nothing_comes_back_nothing_is_paced() -> None:
    """Three looks of all ports at once, behind one of a few."""
    world = World(lambda order, port: SILENT)

    found = await world.probe()

    assert world.looks == [
        (((1, 6),), True, 1),
        (((1, 6),), False, PACED_LOOKS),
        (LAST, False, PACED_LOOKS),
    ]
    assert all(one.lost for one in found)
    # What was asked before is part of the flow's story.
    assert {len(one.orders) for one in found} == {1, 2}


async def test_where_ports_are_refused_the_pace_is_kept() -> None:
    """Errors come from a bucket: the others, and the silent one of the first, wait their turn."""
    world = World(lambda order, port: SILENT if port in (3, 9) else REFUSED)

    found = await world.probe()

    assert world.looks == [
        (((1, 6),), True, 1),
        (((3, 3),), True, PACED_LOOKS),
        (LAST, True, PACED_LOOKS),
    ]
    assert port_sets.union(one.ports for one in found if one.lost) == ((3, 3), (9, 9))


async def test_a_refusal_among_all_makes_the_silent_ones_paced() -> None:
    """The first six are dropped, of the others those beyond the bucket stay silent at first."""
    world = World(
        lambda order, port: (
            REFUSED
            if port > UDP_BURST and (port < 2 * UDP_BURST or order.pace is not None)
            else SILENT
        )
    )

    found = await world.probe()

    assert [(paced, looks) for _, paced, looks in world.looks] == [
        (True, 1), (False, PACED_LOOKS), (False, PACED_LOOKS), (True, PACED_LOOKS),
        (True, PACED_LOOKS),
    ]  # fmt: skip
    assert port_sets.union(one.ports for one in found if one.lost) == ((1, UDP_BURST),)


@pytest.mark.parametrize("answer", [SILENT, REFUSED])
async def test_a_few_ports_are_one_order(answer: OutcomeKind) -> None:
    """The bucket has an error for each of them."""
    world = World(lambda order, port: answer)

    await world.probe(((1, UDP_BURST),))

    assert world.looks == [(((1, UDP_BURST),), True, PACED_LOOKS)]
