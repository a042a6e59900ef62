"""Looks end with the listeners that alone could answer them."""

from __future__ import annotations

import asyncio

import pytest

from netprobe.errors import AgentError
from netprobe.model.evidence import Listener
from netprobe.probe.agents.templates import Templates
from netprobe.probe.flows.batches import Part, parts
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.vanishing import look_until_lost
from tests.probe.builders import TARGET, make_task
from tests.probe.fakes import FakeAgent


class Vanishing(FakeAgent):
    """An agent whose loss is told."""

    def __init__(self) -> None:
        super().__init__(TARGET)
        self.link = asyncio.get_running_loop().create_future()

    @property
    def lost_link(self) -> asyncio.Future[None]:
        return self.link

    def vanish(self) -> None:
        self.link.set_exception(AgentError("agent-lost", "gone"))


def part_of(protocol: str, state: str) -> Part:
    """The part of a flow to a port in this state."""
    listeners = Listeners(Listener(state))  # type: ignore[arg-type]
    (part,) = parts(make_task(protocol), listeners, Templates())
    return part


TO_US, TO_SERVICE, UDP_TO_US = (
    part_of(*what) for what in (("tcp", "ours"), ("tcp", "live"), ("udp", "ours"))
)


async def test_a_look_ends_with_the_listeners() -> None:
    """It is stopped, and whoever waits learns why."""
    agent, stopped = Vanishing(), asyncio.Event()

    async def look() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    looking = asyncio.create_task(look_until_lost(look(), [TO_US, TO_SERVICE], agent))
    await asyncio.sleep(0)
    agent.vanish()

    with pytest.raises(AgentError, match="gone"):
        await looking
    assert stopped.is_set()


@pytest.mark.parametrize("asked", [[TO_SERVICE], [TO_US, UDP_TO_US]])
async def test_what_needs_no_listener_goes_on(asked: list[Part]) -> None:
    """And UDP: its order goes on at the source, and another one beside it would get half of the
    host's ICMP errors."""
    agent, told = Vanishing(), asyncio.Event()

    async def look() -> str:
        await told.wait()
        return "found"

    looking = asyncio.create_task(look_until_lost(look(), asked, agent))
    agent.vanish()
    await asyncio.sleep(1)
    told.set()

    assert await looking == "found"


async def test_what_was_found_before_counts() -> None:
    """Also where the agent is lost at the same moment."""
    agent = Vanishing()

    async def look() -> str:
        agent.vanish()
        return "found"

    assert await look_until_lost(look(), [TO_US], agent) == "found"


async def test_who_stops_waiting_stops_the_look() -> None:
    """As where nothing else is waited for."""
    stopped = asyncio.Event()

    async def look() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    looking = asyncio.create_task(look_until_lost(look(), [TO_US], Vanishing()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    looking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await looking
    assert stopped.is_set()
