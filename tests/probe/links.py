"""A link that answers from a script, for the real agents of a real fleet; nothing is started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pytest

from netprobe.agent.wire.answers import EchoOutcomes, HelloLine, ProbeOutcomes
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import EchoRun, OutcomeRun
from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.probe.agents import live_fleet as fleet_module
from netprobe.probe.agents.decode import ProbeReply
from netprobe.vantage.launch import Launcher
from netprobe.vantage.link import AgentLink
from tests.probe.fakes import HELLO, Script

Answer = TypeVar("Answer")
# Starts the agent of a host. Raises AgentError where it does not start.
Start = Callable[[Host], Awaitable[AgentLink]]


def _hear_nothing(order: Any) -> SegmentHeard:
    return SegmentHeard(order.id, [], None)


class FakeLink(AgentLink):
    """Answers orders by the function that ``scripts`` has for their class, and notes them.

    The scripts are those of a ``FakeAgent``.
    """

    def __init__(
        self,
        host: str,
        scripts: Mapping[type[Any], Script] | None = None,
        hello: HelloLine = HELLO,
        cost: str | None = None,
    ) -> None:
        self.host = host
        self.hello = hello
        self.cost = cost
        self.is_python_sent = False
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.scripts: dict[type[Any], Script] = {SegmentHearOrder: _hear_nothing}
        self.scripts.update(scripts or {})
        self.sent: list[Any] = []
        self.closed = False
        self.is_refused = False

    def send(self, message: Any) -> None:
        """Note a message that has no answer."""
        self.sent.append(message)

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        """It never stood still."""
        return 0.0

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Carry out an order that has one answer."""
        self.sent.append(order)
        await asyncio.sleep(0)
        found = self.scripts[type(order)](order)
        assert isinstance(found, answer)
        return found

    async def stream(self, order: Any, answer: type[Answer]) -> AsyncIterator[Answer]:
        """Carry out a probe or echo order, a message for each run."""
        self.sent.append(order)
        await asyncio.sleep(0)
        for found in self._make_outcomes(order):
            if self.lost.done():
                self.lost.result()
            assert isinstance(found, answer)
            yield found

    async def close(self, patience_s: float = 0.0) -> None:
        """End it as the coordinator does."""
        self.closed = True
        self.lose("the agent was stopped")

    def kill(self) -> None:
        """There is no process."""

    def lose(self, words: str = "gone") -> None:
        """The agent is gone."""
        if not self.lost.done():
            self.lost.set_exception(AgentError("agent-lost", words))

    def refuse(self, sent: str) -> AgentError:
        """End it for what it sent."""
        self.lose(f"it sent {sent}")
        self.is_refused = True
        error = self.lost.exception()
        assert isinstance(error, AgentError)
        return error

    def orders(self, kind: type[Answer]) -> list[Answer]:
        """What it was asked of one class of order."""
        return [order for order in self.sent if isinstance(order, kind)]

    def _make_outcomes(self, order: ProbeOrder | EchoOrder) -> list[Any]:
        script = self.scripts[type(order)]
        if isinstance(order, EchoOrder):
            return [
                EchoOutcomes(
                    order.id,
                    [row.kind],
                    [EchoRun(place, place, 0, [row.rtt_us], row.looks)],
                )
                for place, dst in enumerate(order.dsts, 1)
                for row in script(order._replace(dsts=[dst])).rows
            ]
        ones = [order, *(order._replace(id=one.number, dst=one.dst, host=one.host,
                                        blocks=one.blocks or order.blocks)
                         for one in order.more)]  # fmt: skip
        found = []
        for place, one in enumerate(ones, 1):
            reply: ProbeReply = script(one._replace(more=[]))
            found += [
                ProbeOutcomes(
                    order.id,
                    [(place, place)],
                    [row.kind],
                    [OutcomeRun(row.first, row.last, 0, [row.rtt_us], row.looks)],
                    [] if reply.own_port is None else [reply.own_port],
                )
                for row in reply.rows
            ]
        return found


def start_by(monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    """Let every fleet start its agents by this function, without a process."""

    async def start_agent(host: Host, index: int, *, key: bytes, launcher: Launcher) -> AgentLink:
        await asyncio.sleep(0)
        return await start(host)

    monkeypatch.setattr(fleet_module, "start_agent", start_agent)
