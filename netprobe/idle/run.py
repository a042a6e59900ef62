"""All pairs of zones at once: agents start, connections open, and what they show is reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from netprobe.idle.datagrams import DatagramMeetings, measure_datagrams
from netprobe.idle.meeting import MeetingPorts
from netprobe.idle.pairs import PlannedConnection, ZonePair
from netprobe.idle.silences import measure_connections
from netprobe.idle.state import PairState
from netprobe.model.idle import (
    Ended,
    HeldKeepalive,
    IdleReport,
    KeepaliveKind,
    MeasuredFlow,
    PairMemory,
)
from netprobe.model.inventory import Host
from netprobe.model.matrix import Keepalive
from netprobe.model.run import Events
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.signals import run_until_signal
from netprobe.vantage.launch import Launcher


def measure_idle(
    pairs: Sequence[ZonePair], up_to_s: int, launcher: Launcher, events: Events
) -> IdleReport:
    """Measure every pair, up to a longest silence; a signal ends it, and what is known is given."""
    states = [PairState(pair) for pair in pairs]
    started, begun_s = datetime.now(UTC), time.monotonic()
    stopped = run_until_signal(_measure_all(states, up_to_s, launcher, events))
    return IdleReport(
        started_at=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        elapsed_s=round(time.monotonic() - begun_s, 3),
        up_to_s=up_to_s,
        stopped=stopped,
        pairs=tuple(tell_pair(state, stopped) for state in states),
    )


async def _measure_all(
    states: Sequence[PairState], up_to_s: int, launcher: Launcher, events: Events
) -> None:
    hosts = {host.name: host for state in states for host in _list_hosts(state.pair)}
    async with (
        open_fleet(hosts.values(), launcher, events.host) as fleet,
        MeetingPorts(fleet, [state.pair for state in states], up_to_s) as ports,
        asyncio.TaskGroup() as tasks,
    ):
        datagrams = DatagramMeetings(fleet)
        for state in states:
            if state.pair.key.protocol == "udp":
                work = measure_datagrams(state, datagrams, up_to_s)
            else:
                work = measure_connections(state, ports, up_to_s)
            tasks.create_task(state.measure(work))


def _list_hosts(pair: ZonePair) -> Iterator[Host]:
    for planned in pair.tries:
        yield planned.source
        yield from planned.listeners


def tell_pair(state: PairState, stopped: bool) -> PairMemory:
    """Tell what is known of a pair; ``stopped``: a signal ended it."""
    key = state.pair.key
    sides = [one for one in (state.by_source, state.by_destination, state.one_exchange) if one]
    forgotten = [one.forgotten_s for one in sides if one.forgotten_s is not None]
    alive_s = min((one.alive_s for one in sides), default=0)
    forgotten_s = min(forgotten, default=None)
    is_measured = bool(alive_s or forgotten_s)
    reason, because = state.reason, state.because
    if not is_measured and reason is None and stopped:
        reason, because = "stopped", "it was stopped before the end of the first silence"
    ended = {one.ended for one in sides if one.forgotten_s == forgotten_s}
    return PairMemory(
        from_=key.from_,
        to=key.to,
        protocol=key.protocol,
        family=key.family,
        via=key.via,
        alive_s=alive_s if is_measured else None,
        forgotten_s=forgotten_s,
        reset=None if forgotten_s is None else "dropped" not in ended,
        flow=None if state.planned is None else _tell_flow(state.planned),
        by_source=state.by_source if is_measured else None,
        by_destination=state.by_destination if is_measured else None,
        one_exchange=state.one_exchange if is_measured else None,
        # What ended the measurement may have ended that one.
        busy=state.busy if state.reason is None else None,
        keepalives=tuple(_hold_keepalives(state.pair, alive_s, forgotten_s, ended)),
        reason=reason,
        because=because,
        skipped=not state.pair.tries,
    )


def _tell_flow(planned: PlannedConnection) -> MeasuredFlow:
    return MeasuredFlow(
        planned.requirement,
        planned.source.name,
        planned.destination.name,
        planned.address.text,
        planned.port,
    )


def _hold_keepalives(
    pair: ZonePair, alive_s: int, forgotten_s: int | None, ended: Container[Ended | None]
) -> Iterator[HeldKeepalive]:
    """Hold what rows' programs send against the memory; each keepalive was a silence itself."""
    # Only what ends TCP itself sends a FIN. A balancer that forgot nothing may do that, too.
    counts_tcp = "closed" not in ended if forgotten_s is not None else pair.key.via is None
    for one in pair.keepalives:
        kind, keepalive_s = _choose_kind(one.keepalive, counts_tcp)
        outcome: Literal["lives", "too-long", "untold"] = "untold"
        if kind == "tcp" and not counts_tcp:
            pass
        elif keepalive_s <= alive_s:
            outcome = "lives"
        elif forgotten_s is not None and keepalive_s >= forgotten_s:
            outcome = "too-long"
        uncounted_s = None if counts_tcp or kind == "tcp" else one.keepalive.tcp_s
        yield HeldKeepalive(one.matrix, one.requirement, keepalive_s, outcome, kind, uncounted_s)


def _choose_kind(keepalive: Keepalive, counts_tcp: bool) -> tuple[KeepaliveKind, int]:
    """Choose what comes first of what counts."""
    data_s, tcp_s = keepalive.data_s, keepalive.tcp_s
    if tcp_s is not None and (data_s is None or (counts_tcp and tcp_s < data_s)):
        return "tcp", tcp_s
    assert data_s is not None
    return "data", data_s
