"""Echo orders that are asked together are sent together, and everyone gets the own answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from netprobe.errors import AgentError
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.probe.agents import echo_batches as echoes
from netprobe.probe.agents.echo_batches import Echoes, joins
from netprobe.probe.agents.fleet import Fleet
from netprobe.vantage.launch import Launcher

NUMBERS = itertools.count(1)


def order(address: str, **more: Any) -> dict[str, Any]:
    """An echo order as the prober makes it."""
    return {
        "t": "probe", "id": next(NUMBERS), "proto": "icmp", "number": None, "dst": address,
        "src": None, "host": 1, "blocks": [{"ports": [], "mode": "echo", "template": 0}],
        "first_ms": 400, "look_ms": 400, "looks": 1, "pace": None, "min_ttl": None, **more,
    }  # fmt: skip


class Asked:
    """An agent that answers every destination with its number as the round trip, or is lost."""

    def __init__(self, *, lost: bool = False) -> None:
        self.orders: list[dict[str, Any]] = []
        self._lost = lost

    async def stream(self, message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        self.orders.append(message)
        count = len(message["dsts"])
        kinds = [{"answer": "echo"}]
        # The last one first, then the others: frames come as answers do.
        for first, last in ((count, count), (1, count - 1)):
            rtts = list(range(first, last + 1))
            runs = [[first, last, 0, rtts, 1]] if rtts else []
            yield {"t": "outcomes", "id": message["id"], "kinds": kinds, "runs": runs}
            if self._lost:
                raise AgentError("agent-lost", "gone")
        yield {"t": "done", "id": message["id"], "cancelled": False}


async def test_orders_of_the_same_moment_are_one() -> None:
    """Each asker gets a frame as if its order had gone alone."""
    agent = Asked()
    echo = Echoes(agent.stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 6)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders))

    assert [sent["dsts"] for sent in agent.orders] == [[one["dst"] for one in orders]]
    for number, (one, (frame,)) in enumerate(zip(orders, found, strict=True), 1):
        assert frame["id"] == one["id"]
        assert frame["runs"] == [[0, 0, 0, number, 1]]


async def test_what_differs_goes_apart() -> None:
    """Families, sources and deadlines are properties of the whole order."""
    agent = Asked()
    echo = Echoes(agent.stream)
    orders = [
        order("10.0.0.1"), order("fd00::1"), order("10.0.0.2", src="10.0.0.9"),
        order("10.0.0.3", look_ms=900), order("fe80::1%eth0"), order("10.0.0.4"),
    ]  # fmt: skip

    await asyncio.gather(*(echo.probe(one) for one in orders))

    assert sorted(sent["dsts"] for sent in agent.orders) == sorted(
        [["10.0.0.1", "10.0.0.4"], ["fd00::1"], ["10.0.0.2"], ["10.0.0.3"], ["fe80::1%eth0"]]
    )


async def test_a_full_order_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of destinations have sixteen bits."""
    monkeypatch.setattr(echoes, "MOST", 2)
    agent = Asked()
    echo = Echoes(agent.stream)

    await asyncio.gather(*(echo.probe(order(f"10.0.0.{number}")) for number in range(1, 6)))

    assert [len(sent["dsts"]) for sent in agent.orders] == [2, 2, 1]


async def test_a_lost_agent_is_told_to_all_whom_it_had_not_answered() -> None:
    """What was answered before stands."""
    echo = Echoes(Asked(lost=True).stream)
    orders = [order(f"10.0.0.{number}") for number in range(1, 4)]

    found = await asyncio.gather(*(echo.probe(one) for one in orders), return_exceptions=True)

    assert [isinstance(one, AgentError) for one in found] == [True, True, False]


def test_packets_of_a_given_size_go_alone() -> None:
    """A path MTU is that of one path; other protocols have orders of their own."""
    assert joins(order("10.0.0.1"))
    assert not joins(order("10.0.0.1", size=1400))
    assert not joins(order("10.0.0.1") | {"proto": "udp"})


async def test_a_real_agent_answers_many_destinations_with_one_order() -> None:
    """Through the wire: every address of loopback is asked, and each has a round trip."""
    host = Host("me", (Address("127.0.0.1", 4),), (), Vantage("local"), None)
    seen: list[str] = []
    async with Launcher() as launcher:
        fleet = Fleet((host,), launcher, lambda report: None, lambda *_: seen.append("order"))
        fleet.start(bytes(32))
        agent = fleet.agent(host)
        orders = [order(f"127.0.0.{number}") for number in range(1, 101)]
        try:
            link = await agent.ready()
            found = await asyncio.gather(*(agent.probe(one) for one in orders))
        finally:
            await fleet.close()

    if link.hello["echo"] not in ("datagram", "raw"):
        pytest.skip("no ICMP sockets here")
    assert len(seen) == 100
    for (frame,), one in zip(found, orders, strict=True):
        ((first, last, kind, rtt_us, _),) = frame["runs"]
        assert (frame["id"], first, last, rtt_us >= 0) == (one["id"], 0, 0, True)
        assert frame["kinds"][kind]["answer"] == "echo"
