"""Ends that stand still while a silent flow or connection is woken: no memory is told of that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.idle.datagrams import DatagramFlow, DatagramMeetings, _keep_busy
from netprobe.idle.meeting import ConnectionEnd, MeetingPorts, MetConnection
from netprobe.idle.pairs import PairKey, PlannedConnection, ZonePair
from netprobe.idle.silences import WAKE_S, _wake_connection
from netprobe.idle.state import NotOpenedError, PairState, Waking
from netprobe.model.idle import BusyConnection
from netprobe.model.konnectivity import Event
from netprobe.probe.agents.decode import ProbeReply
from netprobe.protocols import protocol_for
from tests.probe.builders import SOURCE, TARGET
from tests.probe.fakes import FakeAgent, FakeFleet, icmp, kind, reply, routed

ADDRESS = TARGET.addresses[0]
TRY = PlannedConnection("x", SOURCE, ADDRESS, TARGET, 443, (TARGET,), "udp", protocol_for(None))
NONE = kind(failure="no-answer")
STOOD_STILL = kind(failure="stood-still")
NONCE = kind(op="answer", answer="nonce", by=0)
REFUSED = kind(failure="refused", icmp=icmp(3, 3, "10.0.0.9"))
BUSY_S = 1.5
SILENT_S = 30.0


class PausingEnd(FakeAgent):
    """Stood still for so long in each look, in turn; ``kinds``: how its orders end."""

    def __init__(self, host: object, *pauses: float, kinds: Sequence[OutcomeKind] = ()) -> None:
        super().__init__(host, {ProbeOrder: self._end_order})  # type: ignore[arg-type]
        self._pauses, self._kinds = iter(pauses), iter(kinds)

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        return next(self._pauses, 0.0)

    def _end_order(self, order: ProbeOrder) -> ProbeReply:
        return reply(order, next(self._kinds))


async def wake_flow(
    *kinds: OutcomeKind, here: Sequence[float] = (), there: Sequence[float] = ()
) -> tuple[Waking, int]:
    """How a UDP flow was after its silence, and how often the destination sent."""
    target = PausingEnd(TARGET, *there, kinds=kinds)
    fleet = FakeFleet([PausingEnd(SOURCE, *here), target])
    since = asyncio.get_running_loop().time() - SILENT_S
    flow = DatagramFlow(20_000, "10.0.0.1", since)
    (waking,) = await DatagramMeetings(fleet).wake_flows(TRY, [flow])
    return waking, len(target.orders(ProbeOrder))


@pytest.mark.parametrize("second", [NONCE, NONE])
async def test_a_waking_that_met_a_pause_is_repeated(second: OutcomeKind) -> None:
    """A pause of either end, or of the sender's own looks; the repeat counts."""
    ended = None if second is NONCE else "dropped"
    for waking, sent in (
        await wake_flow(NONE, second, here=[BUSY_S]),
        await wake_flow(NONE, second, there=[BUSY_S]),
        await wake_flow(STOOD_STILL, second),
    ):
        assert (waking.ended, round(waking.silent_s), sent) == (ended, SILENT_S, 2)


async def test_a_waking_without_a_pause_counts() -> None:
    """Silence that no pause could have hidden, an answer, and an error beside one."""
    assert (await wake_flow(NONE, here=[0.9]))[0].ended == "dropped"
    assert (await wake_flow(NONCE, here=[BUSY_S]))[0].ended is None
    assert (await wake_flow(REFUSED, here=[BUSY_S]))[0].ended == "refused"


@pytest.mark.parametrize("spoilt", [NONE, STOOD_STILL])
async def test_two_pauses_tell_nothing(spoilt: OutcomeKind) -> None:
    """Nobody knows whether the flow was forgotten."""
    with pytest.raises(NotOpenedError, match="stood still") as caught:
        await wake_flow(spoilt, spoilt, there=[BUSY_S, BUSY_S])
    assert caught.value.reason == "machine-busy"


class PlayedRound:
    """A listener that tells of no sender."""

    async def seen(self, numbers: Sequence[int]) -> SimpleNamespace:
        return SimpleNamespace(orders=[])


class PlayedMeetings(DatagramMeetings):
    """All ports are free, and every listener opens."""

    async def _choose_ports(self, source: object, address: str, count: int) -> list[int]:
        return [next(self._own_ports) for _ in range(count)]

    @contextlib.asynccontextmanager
    async def _listen(self, agent: object, spot: object) -> AsyncIterator[Any]:
        yield PlayedRound()


async def ask_destination(
    *kinds: OutcomeKind, there: Sequence[float] = ()
) -> tuple[list[DatagramFlow], list[int | None]]:
    """The one flow that began, and the ports that asked."""
    source = PausingEnd(SOURCE, kinds=kinds)
    source.scripts[RouteOrder] = routed(source="10.0.0.1")
    meetings = PlayedMeetings(FakeFleet([source, PausingEnd(TARGET, *there)]))
    async with meetings.ask_destination(TRY, 1) as flows:
        return flows, [one.sport for one in source.orders(ProbeOrder)]


@pytest.mark.parametrize("first", [NONE, NONCE, STOOD_STILL])
async def test_an_asking_that_met_a_pause_begins_anew(first: OutcomeKind) -> None:
    """From another port: of the first one nobody knows when its silence began."""
    there = [] if first is STOOD_STILL else [BUSY_S]
    (flow,), ports = await ask_destination(first, NONCE, there=there)
    assert len(set(ports)) == 2
    assert flow.port == ports[1]
    with pytest.raises(NotOpenedError, match="stood still") as caught:
        await ask_destination(first, first, there=there * 2)
    assert caught.value.reason == "machine-busy"


async def test_an_asking_without_a_pause_counts() -> None:
    """Its silence is that of the row, and it is asked once."""
    (flow,), ports = await ask_destination(NONCE)
    assert ports == [flow.port]
    with pytest.raises(NotOpenedError, match="no answer") as caught:
        await ask_destination(NONE)
    assert caught.value.reason == "row-stopped"


class PlayedWakings(DatagramMeetings):
    """Wakings end so, in turn."""

    def __init__(self, *wakings: Waking) -> None:
        super().__init__(FakeFleet([]))
        self._wakings = iter(wakings)

    async def wake_flows(
        self, planned: PlannedConnection, flows: Sequence[DatagramFlow]
    ) -> list[Waking]:
        return [next(self._wakings)]


@pytest.mark.parametrize(("silent_s", "lived"), [(0.01, False), (1.5, True)])
async def test_a_busy_flow_that_was_silent_for_longer_was_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, silent_s: float, lived: bool
) -> None:
    """Where this process stood still between two packets, only the first one tells something."""
    monkeypatch.setattr("netprobe.idle.datagrams.SILENCES_S", (0,))
    state = PairState(ZonePair(PairKey("a", "b", 4, None)), TRY)
    meetings = PlayedWakings(Waking(0.01, None), Waking(silent_s, "dropped"))
    await _keep_busy(state, meetings, DatagramFlow(20_000, "10.0.0.1", 0.0))
    assert state.busy == BusyConnection(0, 1, lived)


class ScriptedPipe:
    """Hears these events in turn."""

    def __init__(self, *events: Event) -> None:
        self.sent: list[bytes] = []
        self._events = list(events)

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def receive(self, limit_s: float) -> Event:
        return self._events.pop(0)


TIMEOUT = Event("timeout", elapsed_ms=SILENT_S * 1000)
DATA = Event("data", b"a", elapsed_ms=SILENT_S * 1000)


async def wake_connection(
    heard: Sequence[Event], told: Sequence[Event], *pauses: float
) -> tuple[Waking, int]:
    """How a TCP connection was after its silence, and how many words went back."""
    state = PairState(ZonePair(PairKey("a", "b", 4, None)), TRY)
    fleet = FakeFleet([PausingEnd(SOURCE), PausingEnd(TARGET, *pauses)])
    near, far = ScriptedPipe(TIMEOUT, *heard), ScriptedPipe(*told)
    connection = MetConnection(ConnectionEnd(near), ConnectionEnd(far), 0.0)
    ports = MeetingPorts(fleet, [], SILENT_S)
    waking = await _wake_connection(state, ports, connection, SILENT_S, "source")
    assert near.sent == [b"w"]
    return waking, len(far.sent)


async def test_an_answer_over_tcp_is_waited_for_once_more() -> None:
    """The kernel sends the word again: one that stood still answers it later."""
    waking, answers = await wake_connection([TIMEOUT, DATA], [TIMEOUT, DATA], WAKE_S - 0.5)
    assert (waking, answers) == (Waking(SILENT_S, None), 1)
    waking, answers = await wake_connection([TIMEOUT, TIMEOUT], [TIMEOUT, TIMEOUT], WAKE_S - 0.5)
    assert (waking, answers) == (Waking(SILENT_S, "dropped"), 0)
    waking, _ = await wake_connection([TIMEOUT], [TIMEOUT], WAKE_S - 1.5)
    assert waking.ended == "dropped"
    waking, _ = await wake_connection([TIMEOUT], [Event("reset")], WAKE_S)
    assert waking.ended == "reset"
    with pytest.raises(NotOpenedError, match="stood still") as caught:
        await wake_connection([TIMEOUT, TIMEOUT], [TIMEOUT, TIMEOUT], WAKE_S, WAKE_S)
    assert caught.value.reason == "machine-busy"
