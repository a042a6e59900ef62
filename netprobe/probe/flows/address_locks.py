"""One destination at a time for each address and machine, whatever hosts have it or are it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager


class Alone:
    """Locks of addresses and machines, by name.

    Two hosts of an inventory may be one machine, or share an address. While the listeners of one
    are open, the other's denied ports would answer, and its listeners would find the ports held.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def at(self, places: Iterable[str]) -> AsyncIterator[None]:
        """Wait until nobody else is at any of these places."""
        async with AsyncExitStack() as stack:
            # In one order for all, so that two that share several do not wait for each other.
            for place in sorted(set(places)):
                lock = self._locks.setdefault(place, asyncio.Lock())
                await stack.enter_async_context(lock)
            yield
