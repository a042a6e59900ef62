"""How good a way is: samples of a flow on its own port, or echo requests where netprobe has none.

A listener of netprobe answers the samples of all sources of a port. A port that a service holds is
not dialled hundreds of times, and a host without an agent has no listener.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from weakref import WeakKeyDictionary

from msgspec import Struct

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.agent.wire.quality_messages import SampleOrder, SamplesTaken
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.model.plan import Block, find_row
from netprobe.model.quality import FLOWS_AT_ONCE, INTERVAL_MS, SampledBy, WaySamples
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.listeners import Round, Spot
from netprobe.probe.flows.pauses import MACHINE_STILL_S
from netprobe.probe.flows.work import family_of
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage, TogetherRehearsal
from netprobe.protocols import Protocol, protocol_for

# The longest time of a limit: what takes longer is lost.
TIMEOUT_MS = 3000
NO_RIGHT = "no-permission"


class QualityRehearsal(TogetherRehearsal):
    """Measures the ways to one port of an address."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[AgentMethods, asyncio.Semaphore] = WeakKeyDictionary()

    def list_ports(self, stage: Stage) -> tuple[int, ...]:
        """No port of a back end is needed."""
        del stage
        return ()

    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Measure the way of each source once, however many rows ask for it."""
        async with open_listener(stages[0]) as way:
            by_source: dict[str, asyncio.Task[WaySamples]] = {}
            samples = max(stage.flow.block.samples or 0 for stage in stages)
            for stage in stages:
                name = stage.flow.source.name
                if name not in by_source:
                    by_source[name] = asyncio.create_task(self._measure_way(stage, way, samples))
            found = [by_source[stage.flow.source.name] for stage in stages]
            try:
                await asyncio.gather(*by_source.values(), return_exceptions=True)
            finally:
                for task in by_source.values():
                    task.cancel()
            if way.listening is not None:
                # What a listener did not answer whose agent has died meanwhile is no loss.
                await way.listening.held([])
        return [_read_task(one) for one in found]

    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """Nothing is needed that probes do not need."""
        del agent, block, fleet
        return None

    async def _measure_way(self, stage: Stage, way: SampledWay, samples: int) -> WaySamples:
        _refuse_stopped(stage)
        agent = stage.fleet.agent(stage.flow.source)
        for _ in range(2):
            async with self._turns.setdefault(agent, asyncio.Semaphore(FLOWS_AT_ONCE)):
                began_s = asyncio.get_running_loop().time()
                told = await agent.request(way.make_order(stage, samples), SamplesTaken)
            late, missed = await _count_spoilt(stage, way, began_s)
            if not late:
                break
        if told.failure == STOOD_STILL:
            raise _word_busy(stage.flow.source)
        if not told.rtts_us and told.failure is not None:
            raise NotPlayedError(
                NO_RIGHT if told.failure == NO_RIGHT else "no-samples",
                f"none of {samples} samples was answered ({told.failure}){way.word_by()}",
            )
        if not told.rtts_us and missed:
            raise _word_busy(stage.flow.destination)
        if not told.rtts_us:
            words = "no echo request" if way.by == "icmp" else f"none of {samples} samples"
            raise NotPlayedError("no-samples", f"{words} was answered{way.word_by()}")
        refused = samples - len(told.rtts_us) - told.lost
        return WaySamples(way.by, tuple(told.rtts_us), told.lost, way.why, refused, late, missed)


class SampledWay(Struct, frozen=True):
    """By what the ways to a port are measured, and why not by its own packets (empty: they are).

    ``listening``: the listener that answers, if netprobe has one.
    """

    by: SampledBy
    packet: Protocol
    why: str = ""
    listening: Round | None = None

    def make_order(self, stage: Stage, samples: int) -> SampleOrder:
        """Make the order for one source."""
        templates = stage.fleet.agent(stage.flow.source).templates
        family = family_of(stage.address)
        template = templates.listener(self.packet, "udp", family) if self.by == "udp" else 0
        return SampleOrder(
            0, self.by, stage.address, stage.source_address, stage.port, template,
            next(stage.fleet.order_ids), stage.fleet.agent(stage.flow.destination).index,
            samples, INTERVAL_MS, TIMEOUT_MS,
        )  # fmt: skip

    def word_by(self) -> str:
        """Say why echo requests were sent."""
        return f": by echo requests, because {self.why}" if self.why else ""


@contextlib.asynccontextmanager
async def open_listener(stage: Stage) -> AsyncIterator[SampledWay]:
    """Open a listener on the port of a row, and close it whatever comes."""
    block, host = stage.flow.block, stage.flow.destination
    protocol = block.protocol
    packet = protocol_for(block.row_probe, stage.port)
    why = await _find_why_not(stage)
    if protocol == "udp" and packet.one_way:
        why = why or "a host answers no packet of such a tunnel"
    if why or protocol == "icmp":
        yield SampledWay("icmp", packet, why)
        return
    agent = stage.fleet.agent(host)
    round_ = Round(agent, next(stage.fleet.order_ids))
    ports = ((stage.port, stage.port),)
    try:
        states = await round_.open([Spot(protocol, stage.address, packet, ports)])
        ((_, _, listener),) = states.known()
    except AgentError as error:
        yield SampledWay("icmp", packet, str(error))
        return
    try:
        if listener.state != "ours":
            why = listener.owner or listener.note or listener.state
            yield SampledWay("icmp", packet, f"netprobe cannot listen on the port ({why})")
        else:
            by: SampledBy = "tcp" if protocol == "tcp" else "udp"
            yield SampledWay(by, packet, listening=round_)
    finally:
        await round_.close()


async def _count_spoilt(stage: Stage, way: SampledWay, began_s: float) -> tuple[int, int]:
    """Count the samples since then that pauses of the destination can have made late at most, and
    lost. A listener's answer waits for its agent; a kernel answers unless its machine stands still,
    and only then packets are lost."""
    there = stage.fleet.agent(stage.flow.destination)
    if not there.alive:
        return 0, 0
    try:
        long_s = await there.count_lost(began_s, math.inf, MACHINE_STILL_S)
        still_s = await there.count_lost(began_s, math.inf) if way.by == "udp" else long_s
    except AgentError:
        return 0, 0  # the listener is asked for, too
    late, missed = (math.ceil(one * 1000 / INTERVAL_MS) for one in (still_s, long_s))
    return late, missed


def _word_busy(host: Host) -> NotPlayedError:
    return NotPlayedError("machine-busy", f"{host.name} stood still while it was measured")


async def _find_why_not(stage: Stage) -> str:
    """Find why no listener is opened; empty: one is."""
    host = stage.flow.destination
    if stage.flow.block.protocol == "icmp":
        return ""
    if host.vantage.kind == "none":
        return f"{host.name} has no agent"
    if stage.flow.block.existing:
        return "the service of the port runs already"
    agent = stage.fleet.agent(host)
    # One that nothing has needed so far may still be starting.
    await agent.settled.wait()
    return "" if agent.alive else f"{host.name} has no agent"


def _refuse_stopped(stage: Stage) -> None:
    """Raise NotPlayedError where the run knows already that nothing passes."""
    try:
        ip_address(stage.address)
    except ValueError:
        words = "the way leads through a proxy, which resolves the name"
        raise NotPlayedError(None, words) from None
    if stage.arrivals.of_row(stage.flow, stage.address, stage.port) is False:
        block = stage.flow.block
        row = f"row {find_row(block.requirement.id)} of {block.matrix}"
        words = f"{block.protocol.upper()} port {stage.port} itself ({row}) is stopped: first that"
        raise NotPlayedError("row-stopped", words)


def _read_task(task: asyncio.Task[WaySamples]) -> Played:
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, NotPlayedError | AgentError):
        return error
    raise error
