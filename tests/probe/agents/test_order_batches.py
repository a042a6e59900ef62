"""Orders that are asked together are sent together, and everyone gets the own answer."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bench.agent import port_order
from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import EchoRun, ListenBlock, OutcomeRun, Pace, ProbeBlock
from netprobe.errors import AgentError
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.probe.agents import decode
from netprobe.probe.agents.agent import Agent
from netprobe.probe.agents.decode import OrderBatches, PortOutcome
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.protocols import protocol_for
from netprobe.vantage.launch import Launcher
from tests.ports import free_ports
from tests.probe.fakes import kind

NUMBERS = itertools.count(1)
ANSWERED = kind(op="answer", answer="echo")
REFUSED = kind(failure="refused")


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

    async def stream(self, order: Any) -> AsyncIterator[tuple[EchoOutcomes, list[int]]]:
        self.orders.append(order)
        count = len(order.dsts)
        # The last one first, then the others: answers come as the hosts give them.
        for first, last in ((count, count), (1, count - 1)):
            rtts_us: list[int | None] = list(range(first, last + 1))
            runs = [EchoRun(first, last, 0, rtts_us, 1)] if rtts_us else []
            yield EchoOutcomes(order.id, [ANSWERED], runs), list(range(first, last + 1))
            if self._lost:
                raise AgentError("agent-lost", "gone")


async def test_orders_of_the_same_moment_are_one() -> None:
    """Each asker gets the outcome as if its order had gone alone."""
    agent = Asked()
    echo = OrderBatches(agent.stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 6)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders))

    assert [sent.dsts for sent in agent.orders] == [[dst for one in orders for dst in one.dsts]]
    assert [one.rows for one in found] == [
        [PortOutcome(0, 0, ANSWERED, number, 1)] for number in range(1, 6)
    ]


async def test_what_differs_goes_apart() -> None:
    """Families, interfaces, sources, deadlines and sizes are properties of the whole order."""
    agent = Asked()
    echo = OrderBatches(agent.stream)
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
    monkeypatch.setattr(decode, "MOST", 2)
    agent = Asked()
    echo = OrderBatches(agent.stream)

    await asyncio.gather(*(echo.probe(order(f"10.0.0.{number}")) for number in range(1, 6)))

    assert [len(sent.dsts) for sent in agent.orders] == [2, 2, 1]


async def test_a_lost_agent_is_told_to_all_whom_it_had_not_answered() -> None:
    """What was answered before stands."""
    echo = OrderBatches(Asked(lost=True).stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 4)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders), return_exceptions=True)

    assert [isinstance(one, AgentError) for one in found] == [True, True, False]


async def test_whatever_goes_wrong_is_told_to_all_who_wait() -> None:
    """An exception that nobody foresaw too: nobody waits for ever, and nothing is called told."""

    async def stream(order: Any) -> AsyncIterator[tuple[EchoOutcomes, list[int]]]:
        if len(order.dsts) > 1:
            yield EchoOutcomes(order.id, [], [EchoRun(1, 1, 0, [7], 1)]), [1]

    for count, expected in ((2, IndexError), (1, AgentError)):
        echo = OrderBatches(stream)
        orders = [order(f"10.0.0.{number}") for number in range(count)]
        found = await asyncio.gather(*(echo.probe(one) for one in orders), return_exceptions=True)
        assert [type(one) for one in found] == [expected] * count


@pytest.mark.slow
@pytest.mark.needs("echo sockets")
@pytest.mark.asyncio(loop_factories=["real"])
async def test_a_real_agent_answers_many_destinations_with_one_order() -> None:
    """Through the wire: every address of loopback is asked, and each has a round trip."""
    host = Host("me", (Address("127.0.0.1", 4),), (), Vantage("local"), None)
    async with open_fleet((host,), Launcher(), lambda report: None) as fleet:
        agent = fleet.agent(host)
        orders = [order(f"127.0.0.{number}") for number in range(1, 101)]
        await agent.wait_ready()
        found = await asyncio.gather(*(agent.probe(one) for one in orders))

    assert len(found) == 100
    for reply in found:
        (row,) = reply.rows
        assert (row.ports, row.kind.answer) == ((), "echo")
        assert row.rtt_us is not None


def probe_order(address: str, ports: tuple[int, int] = (1, 3), **more: Any) -> ProbeOrder:
    """A TCP order as the prober makes it."""
    made = port_order(next(NUMBERS), "tcp", address, ports, "connect")
    return made._replace(look_ms=400, looks=1, **more)


class Told:
    """An agent that refuses every port; destinations of an even place in a message of their own."""

    def __init__(self) -> None:
        self.orders: list[ProbeOrder] = []

    async def stream(self, order: Any) -> AsyncIterator[tuple[ProbeOutcomes, list[int]]]:
        self.orders.append(order)
        places = range(1, 2 + len(order.more))
        for some in (places[::2], places[1::2]):
            ranges = [(place, place) for place in some]
            runs = [OutcomeRun(1, 3, 0, [100 * place for place in some], 1)]
            if some:
                yield ProbeOutcomes(order.id, ranges, [REFUSED], runs, []), list(some)


async def test_tcp_orders_of_the_same_moment_are_one() -> None:
    """One frame names every destination; each asker hears of its own, and of it alone."""
    agent = Told()
    batches = OrderBatches(agent.stream)
    orders = [probe_order(f"10.0.0.{number}", host=number) for number in range(1, 6)]
    heard: list[list[PortOutcome]] = []

    found = await asyncio.gather(*(batches.probe(one, heard.append) for one in orders))

    (sent,) = agent.orders
    assert (sent.id, sent.dst, sent.host) == (orders[0].id, "10.0.0.1", 1)
    assert [(one.number, one.dst, one.host, one.blocks) for one in sent.more] == [
        (one.id, one.dst, one.host, []) for one in orders[1:]
    ]
    rows = [[PortOutcome(1, 3, REFUSED, 100 * place, 1)] for place in range(1, 6)]
    assert [one.rows for one in found] == rows
    assert sorted(heard) == sorted(rows)


async def test_destinations_of_an_order_have_ports_of_their_own() -> None:
    """Only where they differ are they said again."""
    agent = Told()
    batches = OrderBatches(agent.stream)
    orders = [probe_order("10.0.0.1"), probe_order("10.0.0.2", (1, 2)), probe_order("10.0.0.3")]

    await asyncio.gather(*(batches.probe(one) for one in orders))

    assert [one.blocks for one in agent.orders[0].more] == [orders[1].blocks, []]


async def test_tcp_orders_that_differ_go_apart() -> None:
    """What a source does alike for all destinations of an order is the order's."""
    agent = Told()
    batches = OrderBatches(agent.stream)
    usual = probe_order("10.0.0.1")
    others: list[dict[str, Any]] = [
        {"src": "10.0.0.9"}, {"look_ms": 900}, {"looks": 2}, {"size": 1400}, {"min_ttl": 3},
        {"ttl": 3}, {"sport": 7}, {"pace": Pace(6, 1000)}, {"proto": "udp"}, {"dst": "fd00::1"},
        {"dst": "fe80::1%eth0"}, {"first_ms": 50},
    ]  # fmt: skip
    orders = [usual, *(usual._replace(id=next(NUMBERS), **more) for more in others)]

    await asyncio.gather(*(batches.probe(one) for one in orders))

    assert len(agent.orders) == len(orders)


async def test_what_one_asker_cannot_read_is_not_the_others_loss() -> None:
    """Its own exception is its own."""
    batches = OrderBatches(Told().stream)

    def fail(_rows: list[PortOutcome]) -> None:
        raise KeyError

    first, second = await asyncio.gather(
        batches.probe(probe_order("10.0.0.1"), fail), batches.probe(probe_order("10.0.0.2")),
        return_exceptions=True,
    )  # fmt: skip

    assert isinstance(first, KeyError)
    assert not isinstance(second, BaseException)


def test_large_runs_gather_longer() -> None:
    """Two hosts wait no time that anybody feels; of a thousand more orders can join."""
    waits_s = [OrderBatches(Told().stream, hosts).gather_s for hosts in (2, 10, 1000)]

    assert waits_s == [0.002, 0.01, 0.25]


@pytest.mark.slow
@pytest.mark.asyncio(loop_factories=["real"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
async def test_a_real_agent_asks_many_destinations_with_one_order(protocol: str) -> None:
    """Through the wire, to the agent's own listeners: every nonce is that of its own destination,
    and what is alike is told at once."""
    host = Host("me", (Address("127.0.0.1", 4),), (), Vantage("local"), None)
    port = free_ports("127.0.0.1", socket.SOCK_STREAM, 1)
    addresses = [f"127.0.0.{number}" for number in range(1, 31)]
    async with open_fleet((host,), Launcher(), lambda report: None) as fleet:
        agent = fleet.agent(host)
        assert isinstance(agent, Agent)
        template = fleet.templates.listener(protocol_for(None), protocol, 4)
        block = ProbeBlock([(port, port)], "nonce", template)
        orders = [
            probe_order(address, proto=protocol, host=0, blocks=[block]) for address in addresses
        ]
        listening = [
            ListenBlock(protocol, address, [(port, port)], None, template)
            for address in addresses[:-1]
        ]
        link = await agent.wait_ready()
        frames = Counter[str]()
        deliver = link._deliver_message

        async def count(message: Any) -> None:
            frames[type(message).__name__] += 1
            await deliver(message)

        link._deliver_message = count  # type: ignore[method-assign]  # a witness
        await agent.listen(1 << 20, listening)
        found = await asyncio.gather(*(agent.probe(one) for one in orders))
        seen = await agent.seen(1 << 20, [one.id for one in orders], rest=False)

    words = [reply.rows[0].kind.answer or reply.rows[0].kind.failure for reply in found]
    assert words == ["nonce"] * 29 + ["refused"]
    assert [item.order for item in seen.orders] == [one.id for one in orders[:-1]]
    assert {tuple(item.ports) for item in seen.orders} == {((port, port),)}
    assert all(reply.rows[0].rtt_us for reply in found)
    own_ports = {reply.own_port for reply in found}
    assert len(own_ports) == (30 if protocol == "udp" else 1)
    assert frames["Done"] == 1
    assert frames["ProbeOutcomes"] < len(addresses)
