"""Ports at a real agent on this machine, over which the coordinator speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from netprobe.vantage.accepting import PortPlace, open_port
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from netprobe.vantage.stream import Stream
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.vantage.support import KEY, local


@pytest.fixture
async def link() -> AsyncIterator[AgentLink]:
    """An agent of this machine."""
    async with Launcher() as launcher:
        link = await start_agent(local(), 1, key=KEY, launcher=launcher)
        yield link
        await link.close()


async def _answer(stream: Stream, peer: str) -> None:
    event = await stream.receive(PATIENCE_S)
    await stream.send(event.data + b" from " + peer.encode())


async def ask(port: int) -> bytes:
    """Send a few bytes from a program's socket, and give all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello")
    answer = await reader.read()
    writer.close()
    return answer


async def _wait_until_closed(port: int) -> None:
    """Ask until nothing listens: the agent reads the order to close a moment later."""
    while True:
        try:
            await asyncio.wait_for(ask(port), PATIENCE_S)
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            await asyncio.sleep(0.01)


async def test_connections_are_served_side_by_side(link: AgentLink) -> None:
    """Each gets its own answer, and is closed when its service is over; so is the port, soon."""
    port = free_port()
    async with open_port(link, PortPlace("127.0.0.1", port, 8, 60.0), _answer) as failure:
        assert failure is None
        answers = await asyncio.gather(*(ask(port) for _ in range(20)))
    assert set(answers) == {b"hello from 127.0.0.1"}
    await _wait_until_closed(port)


async def test_a_service_that_fails_ends_its_own_connection_only(link: AgentLink) -> None:
    """The port goes on, and the connection is closed."""
    calls = 0

    async def fail_once(stream: Stream, peer: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await stream.receive(PATIENCE_S)
            raise RuntimeError("the service")
        await _answer(stream, peer)

    port = free_port()
    async with open_port(link, PortPlace("127.0.0.1", port, 8, 60.0), fail_once):
        assert await ask(port) == b""
        assert await ask(port) == b"hello from 127.0.0.1"


async def test_a_port_that_cannot_be(link: AgentLink) -> None:
    """The failure is named, and nothing is served."""
    place = PortPlace("192.0.2.77", free_port(), 8, 60.0)
    async with open_port(link, place, _answer) as failure:
        assert failure == "address-not-available"


async def test_a_lost_agent_ends_what_waits(link: AgentLink) -> None:
    """A service that waits for bytes ends with the agent."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait(stream: Stream, _peer: str) -> None:
        began.set()
        try:
            await stream.receive(PATIENCE_S)
        finally:
            ended.set()

    port = free_port()
    async with open_port(link, PortPlace("127.0.0.1", port, 8, 60.0), wait):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(began.wait(), PATIENCE_S)
        link.kill()
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        writer.close()
