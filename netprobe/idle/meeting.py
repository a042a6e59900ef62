"""Where both ends of a connection meet: agents listen, and each connection says which one it is."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Final

from msgspec import Struct, field

from netprobe.idle.pairs import PlannedConnection, ZonePair
from netprobe.idle.state import NotOpenedError
from netprobe.model.konnectivity import IdleClock, Pipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.vantage.accepting import PortPlace
from netprobe.vantage.stream import Stream, Target

OPEN_S = 4.0
ANSWER_S = 5.0
# An answer takes no longer, also where packets of it are lost.
LEAST_LOOK_S = 1.0
# A refusal of a lost agent's host is here before the news of its loss.
HEARD_S = 1.0
WORD_BYTES: Final = 16
# Connections that an agent holds at a port, and for how long it listens beyond the measurement.
CONNECTIONS = 1500
AFTER_S = 300.0
NO_ADDRESS: Final = "address-not-available"
HELD: Final = "address-in-use"
NO_RIGHT: Final = frozenset(("access-denied", "not-permitted"))
ANYWHERE: Final = {4: "0.0.0.0", 6: "::"}


class ConnectionEnd(Struct):
    """One end of a connection; its clock knows since when no byte has passed."""

    pipe: Pipe
    clock: IdleClock = field(default_factory=IdleClock)


class MetConnection(Struct):
    """A connection between two agents, and when (of the loop's clock) its silence began."""

    source: ConnectionEnd
    destination: ConnectionEnd
    since: float


class MeetingPorts:
    """The ports where agents wait, each opened once. A context: it closes them."""

    def __init__(self, fleet: Fleet, pairs: Iterable[ZonePair], up_to_s: float) -> None:
        self.fleet = fleet
        # A balancer may use any address of these, and two sockets cannot share a port.
        self._balanced = {
            (host.name, planned.port)
            for pair in pairs
            if pair.key.via is not None
            for planned in pair.tries
            for host in planned.listeners
        }
        self._limit_s = up_to_s + AFTER_S
        self._open: dict[tuple[str, str, int], str | None] = {}
        self._opening = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()
        self._waiting: dict[bytes, asyncio.Future[ConnectionEnd]] = {}
        self._over: dict[bytes, asyncio.Event] = {}

    async def __aenter__(self) -> MeetingPorts:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @contextlib.asynccontextmanager
    async def connect(self, planned: PlannedConnection) -> AsyncIterator[MetConnection]:
        """Open a connection, and let both ends say a word; it is closed at the end.

        Raises NotOpenedError and AgentError.
        """
        await self._open_listeners(planned)
        word = secrets.token_hex(WORD_BYTES // 2).encode()
        self._waiting[word] = asyncio.get_running_loop().create_future()
        self._over[word] = asyncio.Event()
        agent = self.fleet.agent(planned.source)
        target = Target(planned.address.text, planned.port, find_source(planned), timeout_s=OPEN_S)
        try:
            async with agent.open_stream(target) as stream:
                if stream.opened.failure is not None:
                    raise NotOpenedError("row-stopped", f"no connection ({stream.opened.failure})")
                yield await self._meet_agent(stream, word)
                self._over[word].set()
        finally:
            self._waiting.pop(word).cancel()
            self._over.pop(word).set()

    async def _meet_agent(self, stream: Pipe, word: bytes) -> MetConnection:
        await stream.send(word)
        try:
            far = await asyncio.wait_for(asyncio.shield(self._waiting[word]), ANSWER_S)
        except TimeoutError:
            words = "the connection opens, and something else than netprobe's agent has it"
            raise NotOpenedError("row-stopped", words) from None
        near = ConnectionEnd(stream)
        await far.pipe.send(b"y")
        answer = await stream.receive(ANSWER_S)
        near.clock.note(answer)
        if answer.kind != "data":
            raise NotOpenedError("row-stopped", f"the first answer does not come ({answer.kind})")
        return MetConnection(near, far, asyncio.get_running_loop().time())

    async def _open_listeners(self, planned: PlannedConnection) -> None:
        """Let agents listen, where they do not yet. Raises NotOpenedError and AgentError."""
        anywhere = ANYWHERE[planned.address.family or 4]
        for host in planned.listeners:
            agent = self.fleet.agent(host)
            is_balanced = (host.name, planned.port) in self._balanced
            place = anywhere if is_balanced else planned.address.text
            failure = await self._open_place(agent, place, planned)
            if failure == NO_ADDRESS:  # translated on the way
                failure = await self._open_place(agent, anywhere, planned)
            if failure is not None:
                raise NotOpenedError(*_explain_failure(host.name, planned.port, failure))

    async def _open_place(
        self, agent: AgentMethods, address: str, planned: PlannedConnection
    ) -> str | None:
        key = agent.host.name, address, planned.port
        await agent.wait_ready()
        async with self._opening:
            if key not in self._open:
                place = PortPlace(address, planned.port, CONNECTIONS, self._limit_s)
                context = agent.open_port(place, self._serve_stream)
                self._open[key] = await self._stack.enter_async_context(context)
            return self._open[key]

    async def _serve_stream(self, stream: Stream, _peer: str) -> None:
        """Read which connection it is, and hold it until that is over."""
        end, word = ConnectionEnd(stream), b""
        while len(word) < WORD_BYTES:
            event = await stream.receive(ANSWER_S)
            if event.kind != "data":
                return
            end.clock.note(event)
            word += event.data
        waiting = self._waiting.get(word)
        if waiting is not None and not waiting.done():
            over = self._over[word]
            waiting.set_result(end)
            await over.wait()
            # No TIME_WAIT keeps a port that the platform needs.
            await stream.close(reset=True)


async def require_agents(fleet: Fleet, planned: PlannedConnection) -> None:
    """Raise AgentError where an agent of a connection is lost."""
    await asyncio.sleep(HEARD_S)
    for host in (planned.source, *planned.listeners):
        await fleet.agent(host).wait_ready()


async def has_paused(
    fleet: Fleet, planned: PlannedConnection, began_s: float, look_s: float
) -> bool:
    """Tell whether pauses of an end since then (of the loop's clock), or of the way to its agent,
    could have hidden an answer for which a look waited so long. Raises AgentError."""
    ends = (fleet.agent(host) for host in (planned.source, *planned.listeners))
    lost_s = await asyncio.gather(*(end.count_lost(began_s, look_s) for end in ends))
    return max(lost_s) > look_s - LEAST_LOOK_S


def find_source(planned: PlannedConnection) -> str | None:
    """Find the address that the inventory lets the source send from; None: any."""
    usable = planned.source.source_addresses
    return next((one.text for one in usable if one.family == planned.address.family), None)


def _explain_failure(host: str, port: int, failure: str) -> tuple[str, str]:
    if failure == HELD:
        return "port-held", f"TCP port {port} of {host} is in use"
    reason = "no-permission" if failure in NO_RIGHT else "no-back-end"
    return reason, f"{host}: the agent cannot listen at TCP port {port} ({failure})"
