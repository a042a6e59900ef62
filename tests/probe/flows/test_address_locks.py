"""One destination at a time for each address."""

from __future__ import annotations

import asyncio

import pytest

from netprobe.probe.flows.address_locks import Alone
from tests.patience import PATIENCE_S


class Visits:
    """Destinations that stay at their addresses until they are told to leave."""

    def __init__(self) -> None:
        self.alone = Alone()
        self.inside: list[str] = []

    async def visit(self, name: str, addresses: list[str], leave: asyncio.Event) -> None:
        async with self.alone.at(addresses):
            self.inside.append(name)
            await leave.wait()
            self.inside.remove(name)


async def settle() -> None:
    """Let every task come as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_two_hosts_with_one_address_take_turns() -> None:
    """Open listeners of one would answer the denied ports of the other."""
    visits, leave, other = Visits(), asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(visits.visit("first", ["10.0.0.1", "10.0.0.2"], leave))
        group.create_task(visits.visit("second", ["10.0.0.3", "10.0.0.2"], leave))
        group.create_task(visits.visit("third", ["10.0.0.4"], other))
        await settle()
        assert sorted(visits.inside) == ["first", "third"]
        leave.set()
        await settle()
        assert visits.inside == ["third"]
        other.set()


async def test_who_shares_several_addresses_does_not_wait_for_ever() -> None:
    """All take them in one order, however they name them, and how often."""
    visits, leave = Visits(), asyncio.Event()
    leave.set()
    ways = [["b", "a"], ["a", "b"], ["b", "a", "b"], ["a"]] * 5
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(visits.visit("one", some, leave) for some in ways))


async def test_an_address_is_free_again_after_a_failure() -> None:
    """An interrupt ends one destination, not the others."""
    alone = Alone()
    with pytest.raises(RuntimeError):
        async with alone.at(["10.0.0.1"]):
            raise RuntimeError
    async with asyncio.timeout(PATIENCE_S), alone.at(["10.0.0.1"]):
        pass
