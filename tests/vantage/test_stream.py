"""Streams over a real agent on this machine: credit, ends, and what is left when they close."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from netprobe.agent.wire.stream_messages import StreamAwaitOrder
from netprobe.errors import AgentError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from netprobe.vantage.stream import CREDIT_BYTES, Target, open_stream
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.vantage.support import KEY, local


@pytest.fixture
async def link() -> AsyncIterator[AgentLink]:
    """An agent of this machine."""
    async with Launcher() as launcher:
        link = await start_agent(local(), 1, key=KEY, launcher=launcher)
        yield link
        await link.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server that echoes until we close our half."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_much_more_than_the_credit_passes_both_ways(link: AgentLink, port: int) -> None:
    """Sending and receiving go on as each side takes what it got."""
    sent = bytes(range(256)) * (4 * CREDIT_BYTES // 256)
    got = bytearray()
    async with open_stream(link, Target("127.0.0.1", port)) as stream:
        assert stream.opened.failure is None
        sender = asyncio.create_task(stream.send(sent))
        while len(got) < len(sent):
            event = await stream.receive(PATIENCE_S)
            assert event.kind == "data"
            got += event.data
        await sender
        assert bytes(got) == sent
        assert (await stream.info())["bytes_received"] == len(sent)


async def test_silence_is_measured_by_the_agent(link: AgentLink, port: int) -> None:
    """``timeout`` with the agent's own times, and the stream lives on."""
    async with open_stream(link, Target("127.0.0.1", port)) as stream:
        event = await stream.receive(0.15)
        assert (event.kind, event.over) == ("timeout", False)
        assert event.elapsed_ms >= 145
        await stream.send(b"x")
        assert (await stream.receive(PATIENCE_S)).data == b"x"


async def test_the_timer_of_an_earlier_wait_says_nothing_of_this_one(
    link: AgentLink, port: int
) -> None:
    """Bytes and the order to wait for them may cross: the agent's timer goes on, and runs out."""
    async with open_stream(link, Target("127.0.0.1", port)) as stream:
        stream._awaits += 1
        stream._due += 1
        link.send(StreamAwaitOrder(stream._id, 10))
        await until(lambda: stream._messages)
        await stream.send(b"x")
        assert (await stream.receive(PATIENCE_S)).data == b"x"
        assert (await stream.receive(0.15)).kind == "timeout"


async def test_a_refusal_is_an_outcome(link: AgentLink) -> None:
    """Nothing is raised where nothing listens."""
    async with open_stream(link, Target("127.0.0.1", free_port())) as stream:
        assert stream.opened.failure == "refused"


@pytest.mark.slow
async def test_streams_do_not_wait_for_each_other(link: AgentLink, port: int) -> None:
    """One that nobody reads does not hold up another of the same agent."""
    async with (
        open_stream(link, Target("127.0.0.1", port)) as lazy,
        open_stream(link, Target("127.0.0.1", port)) as busy,
    ):
        await lazy.send(bytes(CREDIT_BYTES))
        for _ in range(300):
            await busy.send(b"y")
            assert (await busy.receive(PATIENCE_S)).data == b"y"


async def test_a_lost_agent_ends_every_wait(link: AgentLink, port: int) -> None:
    """Whoever waits on a stream hears that the agent is gone."""
    async with open_stream(link, Target("127.0.0.1", port)) as stream:
        waiting = asyncio.create_task(stream.receive(60))
        await asyncio.sleep(0)
        await link.close()
        with pytest.raises(AgentError):
            await waiting


async def test_a_bug_of_ours_is_told(link: AgentLink) -> None:
    """An address that is none is the coordinator's bug: a fault, not a hang."""
    with pytest.raises(AgentError, match="a bug in the agent"):
        async with open_stream(link, Target("not-an-address", 1)):
            pass
