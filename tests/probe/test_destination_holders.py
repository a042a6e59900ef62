"""Ports that somebody holds, and addresses that the destination has, by its agent's word."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import (
    Listening,
)
from netprobe.agent.wire.host_messages import (
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    HeldOrder,
    ListenOrder,
)
from netprobe.agent.wire.parts import HeldPorts
from netprobe.probe import destination as destination_module
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import (
    ROUTER,
    make_want,
)
from tests.probe.destination_world import (
    SILENCE,
    World,
    answers,
)
from tests.probe.fakes import (
    HELLO,
    icmp,
    kind,
    listening_block,
    routed,
)


def holder(port: int, pid: int = 8) -> HeldPorts:
    return HeldPorts(port, port, "etcd", "etcd", pid, "10.0.0.2", loopback=False)


async def test_a_port_whose_holder_went_away_gets_a_listener_of_ours() -> None:
    """Its refusal was that of a free port."""
    world = World()
    listen = world.target.scripts[ListenOrder]

    def held_at_first(order: ListenOrder) -> Any:
        if len(world.sent(ListenOrder)) == 0:
            world.log.append(order)
            return Listening(order.id, [listening_block(held=[holder(443)])])
        return listen(order)

    world.target.scripts[ListenOrder] = held_at_first

    (found,) = await world.run(make_want())

    assert (found.listener.state, answers([found])) == ("ours", {((443, 443),): "nonce"})
    assert [type(order) for order in world.log if isinstance(order, ListenOrder | HeldOrder)] == [
        ListenOrder, HeldOrder, ListenOrder,
    ]  # fmt: skip


async def test_a_port_whose_holder_changes_with_every_look_decides_nothing() -> None:
    """Some rounds, and then the flow is untested."""
    world = World()
    pids = iter(range(100))

    def restless(order: ListenOrder | HeldOrder) -> Any:
        world.log.append(order)
        return Listening(order.id, [listening_block(held=[holder(443, next(pids))])])

    world.target.scripts |= {ListenOrder: restless, HeldOrder: restless}

    (found,) = await world.run(make_want())

    assert found.outcome is None
    assert found.untested is not None
    assert found.untested[0] == "holder-changed"
    assert len(world.sent(ListenOrder)) == 1 + destination_module.HOLDER_LOOKS


async def test_a_holder_that_comes_to_rest_decides_after_all() -> None:
    """The last look counts, too."""
    world = World()
    # Of every round: who held the port at its begin, and after the refusal.
    pids = iter([1, 2, 3, 4, 5, 6, 7, 7])

    def restless(order: ListenOrder | HeldOrder) -> Any:
        return Listening(order.id, [listening_block(held=[holder(443, next(pids))])])

    world.target.scripts |= {ListenOrder: restless, HeldOrder: restless}

    (found,) = await world.run(make_want())

    assert (found.listener.owner, answers([found])) == (
        "etcd (pid 7) on 10.0.0.2", {((443, 443),): "refused"},
    )  # fmt: skip


async def test_an_address_that_the_host_has_is_not_down() -> None:
    """A late "host unreachable" may be a firewall's that waited for its turn."""
    late = kind(failure="host-unreachable", icmp=icmp(3, 1, ROUTER), elapsed_ms=3100)
    world = World(lambda mode, port: late, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]
    settings = ProbeSettings(listen=False)

    (found,) = await world.run(make_want(), settings=settings)
    assert found.host_up

    world.emitted = []
    world.target.scripts[RouteOrder] = routed(source="10.0.0.99")
    world.target._routes = {}
    (found,) = await world.run(make_want(), settings=settings)
    assert not found.host_up
    assert found.given_up_by == ROUTER


async def test_the_host_says_which_silent_addresses_are_its_own() -> None:
    """Then it is up, and silence is no dead host's."""
    world = World(lambda mode, port: SILENCE, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]

    found = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert {one.listener.state for one in found} == {"live"}
    assert {one.host_up for one in found} == {True}


async def test_an_address_that_the_host_does_not_have_is_translated_on_the_way() -> None:
    """Its agent sends to it from another address."""
    world = World(lambda mode, port: SILENCE, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]
    world.target.scripts[RouteOrder] = routed(source="10.0.0.99")

    found = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert {one.host_up for one in found} == {False}


async def test_what_exists_gets_no_listener_of_ours() -> None:
    """Its ports are looked at; those of another flow to the same host are opened."""
    world = World()
    want = make_want()
    block = replace(want.flow.block, existing=True)
    exists = replace(want, flow=replace(want.flow, block=block))
    other = make_want(ports=((22, 22),), order=(1, 0, 0))

    found, free = await world.run(exists, other)

    assert (found.listener.state, answers([found])) == ("closed", {((443, 443),): "refused"})
    assert (free.listener.state, answers([free])) == ("ours", {((22, 22),): "nonce"})
    assert [block.ports for order in world.sent(ListenOrder) for block in order.blocks] == [
        [(22, 22)]
    ]


@pytest.mark.parametrize("kubelet", [False, True])
async def test_the_evidence_says_whether_the_platform_runs_there(kubelet: bool) -> None:
    """By the hello of the destination's agent."""
    world = World()
    world.target._hello = HELLO._replace(kubelet=kubelet)

    (found,) = await world.run(make_want())

    assert found.platform_runs is kubelet


@pytest.mark.parametrize("failed", [True, False])
async def test_whose_sudo_failed_is_known_of_a_flow(
    failed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Advice for such a host is not to give it sudo."""
    world = World()
    monkeypatch.setattr(type(world.target), "sudo_failed", failed)

    (found,) = await world.run(make_want())

    assert found.sudo_failed == (("a", "b") if failed else ())
