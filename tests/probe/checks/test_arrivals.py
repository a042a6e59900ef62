"""What the destination's agent says of its listeners, joined to the flows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Seen
from netprobe.agent.wire.orders import SeenOrder
from netprobe.agent.wire.parts import OrderArrivals, UnreachedPorts
from netprobe.model.evidence import UNDIALLED, Listener, Outcome
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import TARGET, make_observation, make_task
from tests.probe.fakes import FakeAgent

SILENT = Outcome("connect", "no-answer")
PROVEN = Outcome("answer", None, answer="nonce")
ADDRESS = make_task("tcp", ((5, 9),)).address


async def ask(
    seen: Observation, *unreached: UnreachedPorts, arrived: bool = False
) -> list[Observation]:
    """The flow, after the listeners were asked."""
    arrivals = [OrderArrivals(seen.order, [(5, 9)], ["10.0.0.1"], None)] if arrived else []
    told = Seen(1, arrivals, [], [], list(unreached))
    agent = FakeAgent(TARGET, {SeenOrder: lambda order: told})
    return await with_witnesses([seen], Round(agent, 9))


async def test_ports_that_nothing_reached_are_cut_out() -> None:
    """A warning of one port is none of its neighbours."""
    seen = make_observation(SILENT, make_task("tcp", ((5, 9),)), listener="ours", mode="nonce")

    found = await ask(seen, UnreachedPorts("tcp", ADDRESS, None, [(6, 7), (20, 21)]))

    assert {one.ports: one.listener.note for one in found} == {
        ((6, 7),): UNDIALLED, ((5, 5), (8, 9)): None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        UnreachedPorts("udp", ADDRESS, None, [(5, 9)]),
        UnreachedPorts("tcp", "10.0.0.77", None, [(5, 9)]),
        UnreachedPorts("tcp", ADDRESS, None, [(10, 11)]),
    ],
)
async def test_ports_of_another_place_say_nothing(other: UnreachedPorts) -> None:
    """The same number of another protocol or address is another listener."""
    seen = make_observation(SILENT, make_task("tcp", ((5, 9),)), listener="ours", mode="nonce")

    (found,) = await ask(seen, other)

    assert (found.ports, found.listener.note) == (seen.ports, None)


async def test_what_is_known_of_a_holder_stays() -> None:
    """Where a service holds the port on another address, and our own dial did not arrive."""
    beside = Listener("ours", beside="etcd (pid 8) on 10.0.0.3")
    seen = make_observation(SILENT, make_task("tcp", ((5, 9),)), listener="ours", mode="nonce")

    (found,) = await ask(
        replace(seen, listener=beside), UnreachedPorts("tcp", ADDRESS, None, [(5, 9)])
    )

    assert found.listener == replace(beside, note=UNDIALLED)


async def test_an_ip_protocol_has_no_ports() -> None:
    """Its number names it."""
    task = make_task("ipproto/50", ())
    seen = make_observation(Outcome("send", None), task, listener="ours", mode="send")

    (other,) = await ask(seen, UnreachedPorts("ipproto", task.address, 51, [(0, 0)]))
    (found,) = await ask(seen, UnreachedPorts("ipproto", task.address, 50, [(0, 0)]))

    assert (other.listener.note, found.listener.note) == (None, UNDIALLED)


@pytest.mark.parametrize(("outcome", "rest"), [(PROVEN, False), (SILENT, True)])
async def test_only_who_misses_something_asks_about_the_rest(outcome: Outcome, rest: bool) -> None:
    """A whole table of the host's connections, and dials of thousands of listeners, cost time."""
    seen = make_observation(outcome, make_task("tcp", ((5, 9),)), listener="ours", mode="nonce")
    agent = FakeAgent(TARGET, {SeenOrder: lambda order: Seen(1, [], [], [], [])})

    await with_witnesses([seen], Round(agent, 9))

    assert [order.rest for order in agent.orders(SeenOrder)] == [rest]
