"""What an interrupted destination keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from netprobe.agent.wire.orders import (
    CloseOrder,
    ProbeOrder,
)
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.destination import interrupted
from netprobe.probe.flows.work import STOPPED, Task, Want
from tests.probe.builders import (
    make_observation,
    make_task,
    make_want,
)
from tests.probe.destination_world import (
    SILENCE,
    TIME_S,
    World,
    answers,
    assert_whole,
    open_to_nonces,
)
from tests.probe.fakes import (
    host,
)


async def interrupt(world: World, *wants: Want) -> list[Evidence]:
    """Cancel the destination while an order is out."""
    ended: list[int] = []
    running = asyncio.create_task(world.make().run(wants, lambda: ended.append(1)))
    async with asyncio.timeout(TIME_S):
        await world.source.waits.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert ended == [1]
    assert [want for want, _ in world.emitted] == list(wants)
    return world.evidence


async def test_an_interrupt_keeps_what_is_proven() -> None:
    """A nonce needs no second look; everything else is not final yet."""
    world = World(lambda mode, port: open_to_nonces(mode, port) if port == 5 else SILENCE)
    world.source.stops_at = lambda order: isinstance(order, ProbeOrder) and order.proto == "udp"

    await interrupt(
        world, make_want("tcp", ((5, 6),)), make_want("udp", ((7, 7),), order=(1, 0, 0))
    )

    (_, tcp), (_, udp) = world.emitted
    assert answers(tcp) == {((5, 5),): "nonce", ((6, 6),): None}
    assert [one.untested for one in tcp] == [None, STOPPED]
    assert [one.untested for one in udp] == [STOPPED]
    assert_whole(world)


async def test_an_interrupt_closes_the_listeners() -> None:
    """They answered for a run that is over."""
    world = World()
    world.source.stops_at = lambda order: True

    found = await interrupt(world, make_want())

    assert [type(order) for order in world.log][-1] is CloseOrder
    assert [one.untested for one in found] == [STOPPED]


def finished(outcome: Outcome, task: Task, ports: Ports | None = None) -> Any:
    part = task if ports is None else replace(task, ports=ports)
    return replace(make_observation(outcome, part, listener="ours"), task=task)


NONCE = Outcome("answer", None, answer="nonce")


@pytest.mark.parametrize(
    ("outcome", "kept"),
    [
        (NONCE, True),
        (Outcome("answer", None, answer="echo"), True),
        (Outcome("connect", None, answer="unasked"), False),
        (Outcome("connect", "refused"), False),
        (Outcome("connect", "no-answer"), False),
        (Outcome("send", None), False),
    ],
)
def test_only_an_answer_that_needs_no_second_look_is_proven(outcome: Outcome, kept: bool) -> None:
    """Silence and refusals are not final before the checks."""
    task = make_task("tcp", ((5, 9),))

    found = interrupted([task], [finished(outcome, task, ((5, 6),))])

    expected: list[tuple[Ports, Any]] = [(((5, 6),), None), (((7, 9),), STOPPED)]
    assert [(one.ports, one.untested) for one in found] == (
        expected if kept else [(((5, 9),), STOPPED)]
    )


def test_a_denied_port_that_answered_is_not_final() -> None:
    """It would be a finding; a look at it is cut short."""
    task = make_task("tcp", ((5, 9),), expect="denied")

    assert [(one.ports, one.untested) for one in interrupted([task], [finished(NONCE, task)])] == [
        (((5, 9),), STOPPED)
    ]


def test_a_flow_without_ports_is_proven_or_stopped() -> None:
    """One answer is all there is."""
    task = make_task("icmp", ())
    echo = Outcome("answer", None, answer="echo")

    assert [one.untested for one in interrupted([task], [finished(echo, task)])] == [None]
    assert [one.untested for one in interrupted([task], [])] == [STOPPED]


def test_a_port_that_was_asked_again_is_proven_once() -> None:
    """A limit of new connections is measured against a port that is known to answer."""
    task = make_task("tcp", ((5, 9),))
    again = [finished(NONCE, task, ports) for ports in (((5, 6),), ((6, 6),), ((6, 7),))]

    found = interrupted([task], again)

    assert [(one.ports, one.untested) for one in found] == [
        (((5, 6),), None), (((7, 7),), None), (((8, 9),), STOPPED),
    ]  # fmt: skip
    echo = make_task("icmp", ())
    twice = [finished(Outcome("answer", None, answer="echo"), echo)] * 2
    assert len(interrupted([echo], twice)) == 1


def test_what_is_proven_of_one_flow_proves_no_other() -> None:
    """Flows differ by source, address, protocol, packet and the name that TLS asks for."""
    mine = make_task("tcp", ((443, 443),), probe="kube-apiserver", sni="a.lab.test")
    others = [
        make_task("tcp", ((443, 443),), probe="kube-apiserver", sni="b.lab.test"),
        make_task("tcp", ((443, 443),)),
        make_task("udp", ((443, 443),)),
        make_task("tcp", ((443, 443),), target=host("b", "10.0.0.3")),
        make_task("tcp", ((443, 443),), source=host("c", "10.0.0.1")),
    ]

    found = interrupted([mine, *others], [finished(NONCE, mine)])

    assert [one.untested for one in found if one.task is mine] == [None]
    assert [one.task for one in found if one.untested == STOPPED] == others
