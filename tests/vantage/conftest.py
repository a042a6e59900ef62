"""Fixtures of the vantage tests: a launcher, and agents that are always closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from netprobe.model.inventory import Host
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from tests.vantage.support import HOST, KEY

Start = Callable[[Host], Awaitable[AgentLink]]


@pytest.fixture
async def launcher() -> AsyncIterator[Launcher]:
    """A launcher that does not wait long between tries."""
    async with Launcher(retry_s=0.05) as made:
        yield made


@pytest.fixture
async def start(launcher: Launcher) -> AsyncIterator[Start]:
    """Start agents that are closed with the test."""
    links: list[AgentLink] = []

    async def started(host: Host) -> AgentLink:
        links.append(await start_agent(host, HOST, key=KEY, launcher=launcher))
        return links[-1]

    yield started
    for link in links:
        await link.close()
