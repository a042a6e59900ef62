"""What an interrupted destination keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.orders import (
    CloseOrder,
    ProbeOrder,
    SeenOrder,
)
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Vantage, VantageKind
from netprobe.model.ports import Ports
from netprobe.probe.flows.told_ports import interrupted
from netprobe.probe.flows.work import STOPPED, Task, Want
from tests.patience import PATIENCE_S
from tests.probe.builders import (
    TARGET,
    make_observation,
    make_task,
    make_want,
)
from tests.probe.destination_world import (
    REFUSED,
    SILENCE,
    World,
    answers,
    assert_whole,
    open_to_nonces,
)
from tests.probe.fakes import (
    host,
    kind,
)


async def interrupt(world: World, *wants: Want) -> list[Evidence]:
    """Cancel the destination while an order is out."""
    running = asyncio.create_task(world.make().run(wants))
    async with asyncio.timeout(PATIENCE_S):
        await world.source.waits.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert all(want.ledger.is_final for want in wants)
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


async def test_an_interrupt_says_what_came_and_was_not_checked() -> None:
    """A refusal may be forged: it is no result yet, and the sentence has it."""
    others = {6: REFUSED, 7: SILENCE}
    world = World(lambda mode, port: others.get(port) or open_to_nonces(mode, port))
    world.source.stops_at = lambda order: isinstance(order, ProbeOrder) and order.proto == "udp"

    await interrupt(
        world, make_want("tcp", ((5, 7),)), make_want("udp", ((7, 7),), order=(1, 0, 0))
    )

    told = {one.ports: one.untested for _, some in world.emitted for one in some}
    assert told == {
        ((5, 5),): None,
        ((6, 6),): ("stopped", "the run was stopped before what came was checked: refused"),
        ((7, 7),): STOPPED,
    }
    assert_whole(world)


async def test_an_interrupt_asks_nobody_any_more() -> None:
    """An agent that does not answer would hold it up; agents close everything when they end."""
    world = World()
    world.source.stops_at = lambda order: True

    found = await interrupt(world, make_want())

    assert world.sent(CloseOrder) == []
    assert {one.untested for one in found} == {None}


async def test_what_was_emitted_early_is_not_emitted_again() -> None:
    """The listeners have confirmed it; an interrupt tells the rest."""
    world = World(lambda mode, port: open_to_nonces(mode, port) if port == 5 else SILENCE)
    world.source.stops_at = lambda order: order.size is None
    destination = world.make()
    running = asyncio.create_task(destination.run([make_want("tcp", ((5, 6),))]))
    async with asyncio.timeout(PATIENCE_S):
        await world.source.waits.wait()
        await destination.emit_proven()
        assert answers(world.evidence) == {}, "the width of the path is not known yet"
        for _ in range(9):
            await asyncio.sleep(0)
        await destination.emit_proven()
        assert answers(world.evidence) == {((5, 5),): "nonce"}
        assert len(world.sent(SeenOrder)) == 1, "asked of wide paths only"
        (early,) = world.evidence
        assert early.witness is not None
        assert early.witness.socket
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert [(one.ports, one.untested) for one in world.evidence] == [
        (((5, 5),), None), (((6, 6),), STOPPED),
    ]  # fmt: skip


@pytest.mark.parametrize("confirms", [True, False])
async def test_early_evidence_and_the_rest_are_every_port_once(confirms: bool) -> None:
    """Where the listeners are gone, no answer is final before the end."""
    world = World(lambda mode, port: open_to_nonces(mode, port) if port < 8 else SILENCE)
    destination = world.make()
    made = world.target.scripts[SeenOrder]
    probe = world.source.probe
    turn = asyncio.Lock()

    async def emit_early(order: Any, heard: Any = None) -> Any:
        found = await probe(order, heard)
        async with turn:  # some looks are side by side
            if not confirms:
                world.lose_target_at(SeenOrder)
            await destination.emit_proven()
            world.target.lost = False
            world.target.scripts[SeenOrder] = made
        return found

    world.source.probe = emit_early  # type: ignore[method-assign]  # a script
    async with asyncio.timeout(PATIENCE_S):
        await destination.run([make_want("tcp", ((5, 9),))])

    ports = [one.ports for one in world.evidence]
    assert port_sets.union(ports) == ((5, 9),)
    assert sum(map(port_sets.count, ports)) == 5
    assert (len(world.emitted) == 2) is confirms


@pytest.mark.parametrize(("way", "early"), [("local", 0), ("none", 1)])
async def test_an_echo_reply_that_may_be_another_machines_waits_for_the_end(
    way: VantageKind, early: int
) -> None:
    """The last check may find who it is, of a host that is declared with a way onto it."""
    target = replace(TARGET, vantage=Vantage(way))
    world = World(echo=kind(op="answer", answer="echo"), with_agent=False, target=target)
    destination = world.make()
    probe = world.source.probe
    told: list[int] = []

    async def emit_early(order: Any, heard: Any = None) -> Any:
        found = await probe(order, heard)
        await destination.emit_proven()
        told.append(len(world.emitted))
        return found

    world.source.probe = emit_early  # type: ignore[method-assign]  # a script
    async with asyncio.timeout(PATIENCE_S):
        await destination.run([make_want("icmp", ())])

    assert told[0] == early
    assert [one.outcome and one.outcome.answer for one in world.evidence] == ["echo"]


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

    seen = finished(outcome, task, ((5, 6),))

    found = interrupted([task], [seen] if seen.proven else [])

    expected: list[tuple[Ports, Any]] = [(((5, 6),), None), (((7, 9),), STOPPED)]
    assert [(one.ports, one.untested) for one in found] == (
        expected if kept else [(((5, 9),), STOPPED)]
    )


def test_a_denied_port_that_answered_is_not_final() -> None:
    """It would be a finding; a look at it is cut short."""
    task = make_task("tcp", ((5, 9),), expect="denied")

    assert not finished(NONCE, task).proven


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
