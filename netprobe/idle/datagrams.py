"""UDP: after which silence a datagram of the destination still arrives at the port that asked it.

The source's own packets always make a new flow, so that only what the destination sends by itself
shows what was forgotten. A firewall may remember one question and its answer for another time than
a conversation, so each silence is tried after both.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind, ProbeBlock
from netprobe.errors import AgentError
from netprobe.idle.meeting import find_source, has_paused, require_agents
from netprobe.idle.pairs import PlannedConnection
from netprobe.idle.state import (
    LATE_S,
    SILENCES_S,
    NotOpenedError,
    PairState,
    Waking,
    add_waking,
    list_silences,
    run_meanwhile,
    word_try,
)
from netprobe.model import ports as port_sets
from netprobe.model.idle import BusyConnection, Ended, SideMemory
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.batches import probe_order
from netprobe.probe.flows.listeners import Round, Spot, holds
from netprobe.probe.flows.work import family_of
from netprobe.probe.settings import Timing
from netprobe.protocols import Protocol, protocol_for

# Six packets, and their answers, in two looks.
ASKING: Final = Timing(1000, 1000, 2)
ASKING_S: Final = ASKING.looks * ASKING.look_ms / 1000
# Linux remembers a flow for longer that was asked again after so long (measured: with
# nf_conntrack_udp_timeout=5 and ..._stream=20 it was passed on after 15 s of silence).
CONVERSATION_S = 3.0
# Ports of the source: below those that Linux chooses itself, and NodePorts.
OWN_PORTS: Final = (20000, 29000)
BUSY: Final = "machine-busy"
HELD: Final = frozenset(("live", "loopback", "bound"))


class DatagramFlow(Struct, frozen=True):
    """A question that was answered: from which port, seen from which address there; ``since`` (of
    the loop's clock): when its silence began."""

    port: int
    peer: str
    since: float


class SendingEnd(Struct, frozen=True):
    """Who sends which packet from which address, and the index of the host that answers."""

    agent: AgentMethods
    address: str
    packet: Protocol
    answering: int


class DatagramMeetings:
    """Lets sources ask destinations, and destinations send by themselves to the ports that asked.

    A port of a destination is the listener's or the sender's, one at a time.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._locks: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._own_ports = _list_own_ports()

    @contextlib.asynccontextmanager
    async def ask_destination(
        self, planned: PlannedConnection, count: int, talks: int = 0
    ) -> AsyncIterator[list[DatagramFlow]]:
        """Ask from so many ports, and listen there until the end; from the first ``talks`` of them
        it has been asked some seconds before, too.

        Raises NotOpenedError and AgentError.
        """
        source = self._fleet.agent(planned.source)
        destination = self._fleet.agent(planned.destination)
        if planned.address.text not in destination.own_addresses:
            raise NotOpenedError("row-stopped", "addresses of the destination are translated")
        route = await source.route(planned.address.text, find_source(planned))
        if route.source is None:
            raise NotOpenedError("row-stopped", f"no route ({route.failure})")
        end = SendingEnd(source, route.source, planned.packet, destination.index)
        try:
            flows = await self._begin_flows(planned, end, count, talks)
        except NotOpenedError as error:
            if error.reason != BUSY:
                raise
            flows = await self._begin_flows(planned, end, count, talks)
        ports = [flow.port for flow in flows]
        async with self._listen(source, _make_spot(route.source, protocol_for(None), ports)):
            yield flows

    async def wake_flows(
        self, planned: PlannedConnection, flows: Sequence[DatagramFlow]
    ) -> list[Waking]:
        """Let the destination send to ports that asked it, and the source answer.

        Where a pause could have hidden an answer, it sends once more. What is answered then lived
        after the first silence, which alone is sure to have been one; what is not was forgotten by
        then. Raises NotOpenedError where that met a pause, too, and AgentError.
        """
        end = SendingEnd(
            self._fleet.agent(planned.destination),
            planned.address.text,
            protocol_for(None),
            self._fleet.agent(planned.source).index,
        )
        found: dict[int, Waking] = {}
        first_s = asyncio.get_running_loop().time()
        for _ in range(2):
            left = [flow for flow in flows if flow.port not in found]
            async with self._find_lock(planned):
                now = asyncio.get_running_loop().time()
                number = next(self._fleet.order_ids)
                to = flows[0].peer, [flow.port for flow in left]
                reply = await self._send_from(end, planned.port, to, number)
            ended = {port: _word_end(row.kind) for row in reply.rows
                     for port in range(row.first, row.last + 1)}  # fmt: skip
            spoilt = "dropped" in ended.values() and await self._is_spoilt(planned, reply, now)
            for flow in left:
                how = ended[flow.port]
                if how is None:
                    found[flow.port] = Waking(first_s - flow.since, None)
                elif how != "dropped" or not spoilt:
                    found[flow.port] = Waking(now - flow.since, how)
            if len(found) == len(flows):
                return [found[flow.port] for flow in flows]
        raise NotOpenedError(BUSY, "an end stood still while it was to answer, twice")

    async def try_fresh(self, planned: PlannedConnection) -> None:
        """Ask anew, and let the destination send at once. Raises NotOpenedError and AgentError."""
        async with self.ask_destination(planned, 1) as flows:
            (waking,) = await self.wake_flows(planned, flows)
        if waking.ended is not None:
            await require_agents(self._fleet, planned)
            words = "what the destination sends right after an answer does not arrive"
            raise NotOpenedError("row-stopped", words)

    async def _begin_flows(
        self, planned: PlannedConnection, end: SendingEnd, count: int, talks: int
    ) -> list[DatagramFlow]:
        """Ask from so many ports that nobody holds. Raises NotOpenedError and AgentError."""
        ports = await self._choose_ports(end.agent, end.address, count)
        if talks:
            await self._ask_all(planned, end, ports[:talks])
            await asyncio.sleep(CONVERSATION_S)
        return await self._ask_all(planned, end, ports)

    async def _is_spoilt(
        self, planned: PlannedConnection, reply: ProbeReply, began_s: float
    ) -> bool:
        """Tell whether a pause of either end could have hidden an answer. Raises AgentError."""
        return any(row.kind.failure == STOOD_STILL for row in reply.rows) or await has_paused(
            self._fleet, planned, began_s, ASKING_S
        )

    async def _choose_ports(self, source: AgentMethods, address: str, count: int) -> list[int]:
        """Choose ports of the source that nobody holds. Raises NotOpenedError and AgentError."""
        some = [next(self._own_ports) for _ in range(2 * count)]
        round_ = Round(source, next(self._fleet.order_ids))
        known = (await round_.held([_make_spot(address, protocol_for(None), some)])).known()
        held = port_sets.union(ports for _, ports, one in known if one.state in HELD)
        free = [port for port in some if not holds(held, port)]
        if len(free) < count:
            raise NotOpenedError("port-held", f"{source.host.name} has no free UDP ports")
        return free[:count]

    def _find_lock(self, planned: PlannedConnection) -> asyncio.Lock:
        return self._locks[planned.address.text, planned.port]

    @contextlib.asynccontextmanager
    async def _listen(self, agent: AgentMethods, spot: Spot) -> AsyncIterator[Round]:
        """Listen at all ports of a spot. Raises NotOpenedError and AgentError."""
        round_ = Round(agent, next(self._fleet.order_ids))
        states = await round_.open([spot])
        try:
            for _, ports, listener in states.known():
                if listener.state != "ours":
                    why = listener.owner or listener.note or listener.state
                    words = f"{agent.host.name} cannot listen at UDP port {ports[0][0]} ({why})"
                    is_held = listener.state in HELD
                    raise NotOpenedError("port-held" if is_held else "no-permission", words)
            yield round_
        finally:
            await round_.close()

    async def _ask_all(
        self, planned: PlannedConnection, end: SendingEnd, ports: Sequence[int]
    ) -> list[DatagramFlow]:
        """Ask from every port. Raises NotOpenedError where one gets no answer, and AgentError."""
        to = planned.address.text, [planned.port]
        numbered = [(next(self._fleet.order_ids), port) for port in ports]
        spot = _make_spot(planned.address.text, planned.packet, [planned.port])
        destination = self._fleet.agent(planned.destination)
        async with self._find_lock(planned), self._listen(destination, spot) as round_:
            began_s = asyncio.get_running_loop().time()
            replies = await asyncio.gather(
                *(self._send_from(end, port, to, number) for number, port in numbered)
            )
            since = asyncio.get_running_loop().time()
            seen = await round_.seen([number for number, _ in numbered])
        reply = ProbeReply([row for reply in replies for row in reply.rows])
        lost = [row.kind.failure for row in reply.rows if _word_end(row.kind) is not None]
        # Of one that met a pause nobody knows when its silence began.
        if await self._is_spoilt(planned, reply, began_s):
            raise NotOpenedError(BUSY, "an end stood still while it was asked, twice")
        if lost:
            raise NotOpenedError("row-stopped", f"no answer ({lost[0]})")
        peers = {one.order: one.senders[0] for one in seen.orders}
        return [
            DatagramFlow(port, peers.get(number, end.address), since) for number, port in numbered
        ]

    async def _send_from(
        self, end: SendingEnd, own_port: int, to: tuple[str, Sequence[int]], number: int
    ) -> ProbeReply:
        """Send datagrams from a port of our own, and wait for their answers. Raises AgentError."""
        address, ports = to
        template = self._fleet.templates.listener(end.packet, "udp", family_of(address))
        blocks = [ProbeBlock([(port, port) for port in sorted(ports)], "nonce", template)]
        order = cast(ProbeOrder, probe_order(number, "udp", address, end.address, blocks, ASKING))
        return await end.agent.probe(order._replace(host=end.answering, sport=own_port))


async def measure_datagrams(state: PairState, meetings: DatagramMeetings, up_to_s: int) -> None:
    """Measure a pair's UDP. Raises NotOpenedError and AgentError, and groups of them."""
    state.require_tries()
    state.planned = planned = await _find_open(state, meetings)
    silences = list_silences(up_to_s, ())
    count = len(silences)
    async with meetings.ask_destination(planned, 2 * count + 1, count + 1) as flows:
        state.one_exchange = state.by_destination = SideMemory()
        talks, exchanges, busy = flows[:count], flows[count + 1 :], flows[count]
        async with run_meanwhile(_keep_busy(state, meetings, busy)):
            await _wake_all(state, meetings, [*zip(silences, talks, exchanges, strict=True)])


async def _find_open(state: PairState, meetings: DatagramMeetings) -> PlannedConnection:
    """Find the first try whose destination can send to a port that has just asked it."""
    for planned in state.pair.tries:
        try:
            await meetings.try_fresh(planned)
        except NotOpenedError as error:
            last = NotOpenedError(error.reason, word_try(planned, error))
        else:
            return planned
    raise last


async def _wake_all(
    state: PairState,
    meetings: DatagramMeetings,
    flows: Sequence[tuple[int, DatagramFlow, DatagramFlow]],
) -> None:
    """Wake a conversation and an exchange after each silence, until both memories are known."""
    planned, loop = state.planned, asyncio.get_running_loop()
    memories = [SideMemory(), SideMemory()]
    assert planned is not None
    for silence_s, *both in flows:
        alive = [place for place, one in enumerate(memories) if one.ended is None]
        if not alive:
            return
        await asyncio.sleep(both[0].since + silence_s - loop.time())
        wakings = await meetings.wake_flows(planned, [both[place] for place in alive])
        if any(waking.ended is not None for waking in wakings):
            await meetings.try_fresh(planned)
        for place, waking in zip(alive, wakings, strict=True):
            memories[place] = add_waking(memories[place], waking)
        state.by_destination, state.one_exchange = memories


async def _keep_busy(state: PairState, meetings: DatagramMeetings, flow: DatagramFlow) -> None:
    """Let the destination send again and again, for as long as the others are silent."""
    assert state.planned is not None
    packets, every_s = 0, SILENCES_S[0]
    while True:
        await asyncio.sleep(every_s)
        try:
            (waking,) = await meetings.wake_flows(state.planned, [flow])
        except (NotOpenedError, AgentError):
            return
        lived = waking.ended is None
        if not lived and waking.silent_s > every_s + LATE_S:
            return
        flow = replace(flow, since=asyncio.get_running_loop().time())
        packets += lived
        state.busy = BusyConnection(every_s, packets, lived)
        if not lived:
            return


def _word_end(kind: OutcomeKind) -> Ended | None:
    """Say how a flow has ended; None: its answer came."""
    if kind.answer == "nonce":
        return None
    return "dropped" if kind.icmp is None else "refused"


def _make_spot(address: str, packet: Protocol, ports: Sequence[int]) -> Spot:
    return Spot("udp", address, packet, tuple((port, port) for port in ports))


def _list_own_ports() -> Iterator[int]:
    """Give ports of sources, from a place of chance on, round and round."""
    first, last = OWN_PORTS
    port = random.randrange(first, last)
    while True:
        yield port
        port = first if port >= last else port + 1
