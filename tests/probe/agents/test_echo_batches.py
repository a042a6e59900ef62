"""Echo orders that are asked together are sent together, and everyone gets the own answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from netprobe.agent.wire.answers import EchoOutcomes
from netprobe.agent.wire.orders import EchoOrder
from netprobe.agent.wire.parts import EchoRun
from netprobe.errors import AgentError
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.probe.agents import echo_batches
from netprobe.probe.agents.decode import PortOutcome
from netprobe.probe.agents.echo_batches import EchoBatches
from netprobe.probe.agents.live_fleet import LiveFleet
from netprobe.vantage.launch import Launcher
from tests.probe.fakes import kind

NUMBERS = itertools.count(1)
ANSWERED = kind(op="answer", answer="echo")


def order(address: str, **more: Any) -> EchoOrder:
    """An echo order as the prober makes it."""
    number = next(NUMBERS)
    return EchoOrder(
        number, [address], src=None, first_ms=400, look_ms=400, looks=1, size=None, numbers=[]
    )._replace(**more)


class Asked:
    """An agent that answers every destination with its number as the round trip, or is lost."""

    def __init__(self, *, lost: bool = False) -> None:
        self.orders: list[EchoOrder] = []
        self._lost = lost

    async def stream(
        self, order: EchoOrder, answer: type[EchoOutcomes]
    ) -> AsyncIterator[EchoOutcomes]:
        self.orders.append(order)
        count = len(order.dsts)
        # The last one first, then the others: answers come as the hosts give them.
        for first, last in ((count, count), (1, count - 1)):
            rtts_us: list[int | None] = list(range(first, last + 1))
            runs = [EchoRun(first, last, 0, rtts_us, 1)] if rtts_us else []
            yield answer(order.id, [ANSWERED], runs)
            if self._lost:
                raise AgentError("agent-lost", "gone")


async def test_orders_of_the_same_moment_are_one() -> None:
    """Each asker gets the outcome as if its order had gone alone."""
    agent = Asked()
    echo = EchoBatches(agent.stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 6)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders))

    assert [sent.dsts for sent in agent.orders] == [[dst for one in orders for dst in one.dsts]]
    assert found == [[PortOutcome(0, 0, ANSWERED, number, 1)] for number in range(1, 6)]


async def test_what_differs_goes_apart() -> None:
    """Families, interfaces, sources, deadlines and sizes are properties of the whole order."""
    agent = Asked()
    echo = EchoBatches(agent.stream)
    orders = [
        order("10.0.0.1"), order("fd00::1"), order("10.0.0.2", src="10.0.0.9"),
        order("10.0.0.3", look_ms=900), order("fe80::1%eth0"), order("10.0.0.4"),
        order("10.0.0.5", size=1400),
    ]  # fmt: skip

    await asyncio.gather(*(echo.probe(one) for one in orders))

    assert sorted(sent.dsts for sent in agent.orders) == [
        ["10.0.0.1", "10.0.0.4"], ["10.0.0.2"], ["10.0.0.3"], ["10.0.0.5"], ["fd00::1"],
        ["fe80::1%eth0"],
    ]  # fmt: skip


async def test_a_full_order_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of destinations have sixteen bits."""
    monkeypatch.setattr(echo_batches, "MOST", 2)
    agent = Asked()
    echo = EchoBatches(agent.stream)

    await asyncio.gather(*(echo.probe(order(f"10.0.0.{number}")) for number in range(1, 6)))

    assert [len(sent.dsts) for sent in agent.orders] == [2, 2, 1]


async def test_a_lost_agent_is_told_to_all_whom_it_had_not_answered() -> None:
    """What was answered before stands."""
    echo = EchoBatches(Asked(lost=True).stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 4)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders), return_exceptions=True)

    assert [isinstance(one, AgentError) for one in found] == [True, True, False]


async def test_whatever_goes_wrong_is_told_to_all_who_wait() -> None:
    """An exception that nobody foresaw too: nobody waits for ever, and nothing is called told."""

    async def stream(order: EchoOrder, answer: type[EchoOutcomes]) -> AsyncIterator[EchoOutcomes]:
        if len(order.dsts) > 1:
            yield answer(order.id, [], [EchoRun(1, 1, 0, [7], 1)])

    for count, expected in ((2, IndexError), (1, AgentError)):
        echo = EchoBatches(stream)
        orders = [order(f"10.0.0.{number}") for number in range(count)]
        found = await asyncio.gather(*(echo.probe(one) for one in orders), return_exceptions=True)
        assert [type(one) for one in found] == [expected] * count


async def test_a_real_agent_answers_many_destinations_with_one_order() -> None:
    """Through the wire: every address of loopback is asked, and each has a round trip."""
    host = Host("me", (Address("127.0.0.1", 4),), (), Vantage("local"), None)
    async with Launcher() as launcher:
        fleet = LiveFleet((host,), launcher, lambda report: None)
        fleet.start()
        agent = fleet.agent(host)
        orders = [order(f"127.0.0.{number}") for number in range(1, 101)]
        try:
            await agent.wait_ready()
            found = await asyncio.gather(*(agent.probe(one) for one in orders))
        finally:
            await fleet.close()

    if agent.hello is None or agent.hello.echo not in ("datagram", "raw"):
        pytest.skip("no ICMP sockets here")
    assert len(found) == 100
    for reply in found:
        (row,) = reply.rows
        assert (row.ports, row.kind.answer) == ((), "echo")
        assert row.rtt_us is not None
