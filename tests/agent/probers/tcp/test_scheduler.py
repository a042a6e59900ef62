"""Whose turn it is to connect; nothing is sent."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any

import pytest

from netprobe.agent.probers.orders import OrderReport, Turn
from netprobe.agent.probers.tcp.scheduler import CHUNK, OTHERS, ConnectScheduler
from netprobe.agent.probers.tcp.socket_pool import SocketPool, TcpOrder
from tests.agent.rig import Agent, order

ABREAST = OTHERS + 1
TURNS = 3
PORTS = [(1, TURNS * CHUNK)]


class NotingScheduler(ConnectScheduler):
    """Notes the destinations whose turn it was."""

    def __init__(self, agent: Agent, pool: SocketPool) -> None:
        owner: Any = None  # takes what ended at once, and here nothing begins
        super().__init__(agent, owner, pool, {})
        self.asked: list[str] = []

    def _connect_all(self, order: TcpOrder, turn: Turn, now: float) -> None:
        self.asked.append(order.target.address)


@pytest.fixture
def pool() -> Iterator[SocketPool]:
    """An empty pool of sockets."""
    epoll = select.epoll()
    pool = SocketPool(epoll)
    pool.measure()
    yield pool
    epoll.close()


def _add_order(
    scheduler: NotingScheduler, pool: SocketPool, known: int, unknown: int = 0
) -> list[str]:
    """Add an order for destinations of which so many have answered before; those come last."""
    agent: Any = scheduler._agent
    count = known + unknown
    report = OrderReport(agent, 1, count)
    names = [f"127.0.{known}.{number}" for number in range(1, count + 1)]
    for place, name in enumerate(names, 1):
        scheduler.add(TcpOrder(agent, order(place, "tcp", name, PORTS), pool, report, place))
        if place > unknown:
            agent.answers.learn(name, 0.001)
    return names


def test_destinations_of_an_order_are_done_one_after_the_other(pool: SocketPool) -> None:
    """A few at a time: the first ones have ended long before the last ones begin."""
    scheduler = NotingScheduler(Agent(), pool)
    names = _add_order(scheduler, pool, 3 * ABREAST)
    while scheduler.start_next():
        pass

    turns = ABREAST * TURNS
    for at in range(3):
        some = scheduler.asked[at * turns : (at + 1) * turns]
        assert set(some) == set(names[at * ABREAST : (at + 1) * ABREAST])
        assert some[:ABREAST] == names[at * ABREAST : (at + 1) * ABREAST]  # they take turns


def test_a_later_order_does_not_wait_for_all_of_an_earlier_one(pool: SocketPool) -> None:
    """Orders take turns, however many destinations the earlier one has."""
    scheduler = NotingScheduler(Agent(), pool)
    _add_order(scheduler, pool, 20)
    (name,) = _add_order(scheduler, pool, 1)
    while scheduler.start_next():
        pass

    assert [at for at, asked in enumerate(scheduler.asked) if asked == name] == [1, 3, 5]
    assert len(scheduler.asked) == 21 * TURNS


def test_orders_share_a_rate(pool: SocketPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds nothing of the rate left has had no turn."""
    agent = Agent()
    agent.rate.limit(1000)
    scheduler = NotingScheduler(agent, pool)
    _add_order(scheduler, pool, 20)
    (name,) = _add_order(scheduler, pool, 1)
    for tick in range(20):
        monkeypatch.setattr(scheduler, "_now", lambda tick=tick: 1000.0 + tick * 0.01)
        while scheduler.start_next():
            pass

    assert 9 <= scheduler.asked.count(name) <= 11
    assert len(scheduler.asked) == 20


def test_destinations_that_do_not_answer_hold_up_no_others(
    pool: SocketPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them gets a first few connects; then the others have their turns."""
    # However long a busy machine takes for it.
    monkeypatch.setattr("netprobe.agent.probers.tcp.scheduler.UNKNOWN_HOLD_S", 1000.0)
    scheduler = NotingScheduler(Agent(), pool)
    names = _add_order(scheduler, pool, 2, unknown=2 * ABREAST)
    while scheduler.start_next():
        pass

    assert scheduler.asked[: 2 * ABREAST] == names[:-2]
    assert sorted(scheduler.asked[2 * ABREAST :]) == sorted(TURNS * names[-2:])
