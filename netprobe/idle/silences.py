"""Connections that are silent for longer and longer, and what became of them.

All are opened at the beginning, and each is asked once, after a silence of its own: so the whole
takes no longer than the longest silence. What a firewall has forgotten is asked no more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

from netprobe.idle.meeting import (
    ConnectionEnd,
    MeetingPorts,
    MetConnection,
    has_paused,
    require_agents,
)
from netprobe.idle.pairs import PlannedConnection, ZonePair
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
from netprobe.model.idle import BusyConnection, Ended, SideMemory, WokenBy
from netprobe.model.konnectivity import Event, EventKind

# A kernel repeats what is not answered after 0.2, 0.5, 0.9, 1.7 and 3.4 s (measured: round trips of
# 1 ms): six packets and their answers would have to be lost by chance.
WAKE_S = 5.0
# A balancer that saw all back ends down takes so long to see that they are up.
BALANCER_S = 30.0
PAUSE_S = 1.0
LEAST_WAIT_S = 0.05
_ENDS: Final[Mapping[EventKind, Ended]] = {"fin": "closed", "reset": "reset"}


async def measure_connections(state: PairState, ports: MeetingPorts, up_to_s: int) -> None:
    """Measure a pair's TCP. Raises NotOpenedError and AgentError, and groups of them."""
    state.require_tries()
    keepalives = [one for row in state.pair.keepalives for one in row.keepalive.times_s]
    silences = list_silences(up_to_s, keepalives)
    async with contextlib.AsyncExitStack() as opened:
        first, planned = await _open_first(opened, ports, state.pair)
        state.planned = planned

        async def open_all() -> list[tuple[int, MetConnection]]:
            ways = (_open_further(opened, ports, planned) for _ in silences)
            return [*zip(silences, await asyncio.gather(*ways), strict=True)]

        every_s = min((*keepalives, SILENCES_S[0]))
        async with run_meanwhile(_keep_busy(state, ports, first, every_s)):
            by_source, by_destination = await open_all(), await open_all()
            state.by_source = state.by_destination = SideMemory()
            async with asyncio.TaskGroup() as sides:
                sides.create_task(_wake_all(state, ports, by_source, "source"))
                sides.create_task(_wake_all(state, ports, by_destination, "destination"))


async def _open_first(
    opened: contextlib.AsyncExitStack, ports: MeetingPorts, pair: ZonePair
) -> tuple[MetConnection, PlannedConnection]:
    """Open the first connection that opens. Raises NotOpenedError with the last one's reason."""
    loop = asyncio.get_running_loop()
    until = loop.time() + (BALANCER_S if pair.key.via else 0.0)
    while True:
        for planned in pair.tries:
            try:
                return await opened.enter_async_context(ports.connect(planned)), planned
            except NotOpenedError as error:
                last = NotOpenedError(error.reason, word_try(planned, error))
        if last.reason != "row-stopped" or loop.time() >= until:
            raise last
        await asyncio.sleep(PAUSE_S)


async def _open_further(
    opened: contextlib.AsyncExitStack, ports: MeetingPorts, planned: PlannedConnection
) -> MetConnection:
    """Open a connection where one opened before: loss may stop a try. Raises NotOpenedError, and
    AgentError."""
    try:
        return await opened.enter_async_context(ports.connect(planned))
    except NotOpenedError:
        return await opened.enter_async_context(ports.connect(planned))


async def _wake_all(
    state: PairState,
    ports: MeetingPorts,
    connections: Iterable[tuple[int, MetConnection]],
    woken_by: WokenBy,
) -> None:
    """Wake one connection after the other, each after its silence, until one is dead."""
    loop = asyncio.get_running_loop()
    for silence_s, connection in connections:
        wait_s = connection.since + silence_s - loop.time()
        waking = await _wake_connection(state, ports, connection, wait_s, woken_by)
        if waking.ended is not None:
            await _try_fresh(state, ports)
        memory = state.by_source if woken_by == "source" else state.by_destination
        assert memory is not None
        known = add_waking(memory, waking)
        if woken_by == "source":
            state.by_source = known
        else:
            state.by_destination = known
        if waking.ended is not None:
            return


async def _try_fresh(state: PairState, ports: MeetingPorts) -> None:
    """Open a new connection: only if that works, the old one was forgotten. Raises NotOpenedError,
    and AgentError."""
    assert state.planned is not None
    try:
        async with contextlib.AsyncExitStack() as opened:
            await _open_further(opened, ports, state.planned)
    except NotOpenedError as error:
        await require_agents(ports.fleet, state.planned)
        words = f"a connection was dead, and a new one does not open either: {error}"
        raise NotOpenedError("row-stopped", words) from None


async def _keep_busy(
    state: PairState, ports: MeetingPorts, connection: MetConnection, every_s: int
) -> None:
    """Send over one connection again and again, for as long as the others are silent."""
    packets = 0
    while True:
        waking = await _wake_connection(state, ports, connection, every_s, "source")
        lived = waking.ended is None
        if not lived and waking.silent_s > every_s + LATE_S:
            return
        packets += lived
        state.busy = BusyConnection(every_s, packets, lived)
        if not lived:
            return


async def _wake_connection(
    state: PairState,
    ports: MeetingPorts,
    connection: MetConnection,
    wait_s: float,
    woken_by: WokenBy,
) -> Waking:
    """Wait in silence, then let one end send and the other one answer. Raises NotOpenedError
    where an end stood still, and AgentError."""
    first, second = connection.source, connection.destination
    if woken_by == "destination":
        first, second = second, first
    waited = await first.pipe.receive(max(LEAST_WAIT_S, wait_s))
    first.clock.note(waited)
    silent_ms = first.clock.idle_ms
    if waited.over:
        return Waking(silent_ms / 1000, _ENDS.get(waited.kind, "dropped"))
    await first.pipe.send(b"w")
    heard, told = await _hear_answer(state, ports, first, second)
    if heard.since_sent_ms is not None:
        # The word left a little later, or much: this machine may have slept.
        silent_ms += heard.elapsed_ms - heard.since_sent_ms - waited.elapsed_ms
    first.clock.note(heard)
    if heard.kind == "data":
        return Waking(silent_ms / 1000, None)
    ends = [_ENDS[one.kind] for one in (heard, told) if one.kind in _ENDS]
    return Waking(silent_ms / 1000, ends[0] if ends else "dropped")


async def _hear_answer(
    state: PairState, ports: MeetingPorts, first: ConnectionEnd, second: ConnectionEnd
) -> tuple[Event, Event]:
    """Give what both ends hear of a word. The kernel goes on to send what is not answered: where
    a pause could have hidden the answer, it is waited for once more."""
    assert state.planned is not None
    for _ in range(2):
        began_s = asyncio.get_running_loop().time()
        heard, told = await asyncio.gather(first.pipe.receive(WAKE_S), _answer_word(second))
        if heard.kind != "timeout" or heard.over or told.over:
            return heard, told
        if not await has_paused(ports.fleet, state.planned, began_s, WAKE_S):
            return heard, told
    raise NotOpenedError("machine-busy", "an end stood still while it was to answer, twice")


async def _answer_word(end: ConnectionEnd) -> Event:
    event = await end.pipe.receive(WAKE_S)
    end.clock.note(event)
    if event.kind == "data":
        await end.pipe.send(b"a")
    return event
