"""Path MTU of pairs that an overlay runs between: full-size packets that must not be fragmented.

Sent as the overlay's own packets to our listener where they arrive, else on any UDP flow that our
listener answers, else as echo requests. Sizes are bytes of the whole IP packet.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind, ProbeBlock
from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome, PathMtu
from netprobe.model.plan import PATH_MTU
from netprobe.model.result import Proof
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.batches import Part, probe_order
from netprobe.probe.flows.listeners import UNKNOWN
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import Timing
from netprobe.protocols import protocol_for

# Two looks of three packets: a size is called too large only where six packets were lost. The
# first is short: what arrives is answered, or seen by the listener, long before its end.
SHORT_MS = 600
LOOK_MS = 1500
SMALLEST = {4: 576, 6: 1280}
STEPS = 16
# Answers that only the destination itself gives.
ANSWERED = ("nonce", "echo")


@dataclass(frozen=True, slots=True)
class Way:
    """Packets that arrive at the destination while they are small, and how that is known."""

    proof: Proof
    protocol: str
    port: int
    mode: str
    template: int

    @property
    def words(self) -> str:
        """What the packets are, for the report's sentence."""
        if self.proof == "service":
            return "echo requests"
        return f"{self.protocol} {self.port} packets" if self.port else f"{self.protocol} packets"


class PathMtuLook(Check):
    """Measures what a path carries; flows of the same pair tell which packets arrive."""

    name = "path-mtu"

    def concerns(self, seen: Observation) -> bool:
        """All flows of pairs whose path is measured."""
        return True

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Measure once for each task that asks for it."""
        wanted = [seen for seen in group if seen.task.probe == PATH_MTU]
        measured = await asyncio.gather(*(_measure_path(seen, group, scene) for seen in wanted))
        return [seen for seen in group if seen.task.probe != PATH_MTU] + list(measured)


def unmeasured(task: Task) -> Observation:
    """What stands for a path until it is measured."""
    part = Part(task, (), (((), UNKNOWN),), protocol_for(None), "echo", 0, False)
    return Observation(task, part, (), 0, outcome=None, listener=UNKNOWN)


async def _measure_path(wanted: Observation, group: list[Observation], scene: Scene) -> Observation:
    task = wanted.task
    agent = scene.fleet.agent(task.source)
    try:
        needed = (await agent.route(task.address, source_address(task))).dev_mtu
        mtu = PathMtu(None, None)
        if needed is not None:
            mtu = await _measure_best(task, group, scene, needed)
    except AgentError as error:
        if scene.round is not None and not scene.agent.alive:
            raise
        return replace(wanted, untested=(error.reason, str(error)))
    measured = replace(wanted, outcome=Outcome(PATH_MTU, None), mtu=mtu)
    return measured.noting(PathMtuLook.name, path=mtu.path, needed=mtu.needed)


async def _measure_best(task: Task, group: list[Observation], scene: Scene, needed: int) -> PathMtu:
    """By the first way whose smallest packets arrive."""
    for way in _find_ways(task, group):
        ladder = _Ladder(_SizeProber(task, way, scene))
        if await ladder.passes(needed):
            return PathMtu(needed, needed, proof=way.proof, how=way.words)
        if await ladder.passes(SMALLEST[task.family]):
            return await ladder.climb(needed)
    return PathMtu(None, needed)


@dataclass(frozen=True, slots=True)
class _SizeProber:
    """Sends packets of given sizes by one way."""

    task: Task
    way: Way
    scene: Scene

    async def send(self, sizes: list[int]) -> tuple[set[int], list[OutcomeKind]]:
        """Which of these sizes arrive, and the kinds of what came back."""
        arrived, kinds = await self._send_once(sizes, SHORT_MS)
        left = [size for size in sizes if size not in arrived]
        if left:
            late, more = await self._send_once(left, LOOK_MS)
            return arrived | late, kinds + more
        return arrived, kinds

    async def _send_once(
        self, sizes: list[int], look_ms: int
    ) -> tuple[set[int], list[OutcomeKind]]:
        orders = [self._make_order(size, look_ms) for size in sizes]
        agent = self.scene.fleet.agent(self.task.source)
        replies = await asyncio.gather(*(agent.probe(order) for order in orders))
        kinds = [row.kind for reply in replies for row in reply.rows]
        if self.way.proof == "witness":
            assert self.scene.round is not None
            seen = await self.scene.round.seen([order.id for order in orders])
            numbers = {item.order for item in seen.orders}
            good = [order.id in numbers for order in orders]
        else:
            good = [any(row.kind.answer in ANSWERED for row in reply.rows) for reply in replies]
        return {size for size, arrived in zip(sizes, good, strict=True) if arrived}, kinds

    def _make_order(self, size: int, look_ms: int) -> ProbeOrder | EchoOrder:
        way, task = self.way, self.task
        ports = [(way.port, way.port)] if way.port else []
        order = probe_order(
            next(self.scene.fleet.order_ids),
            way.protocol,
            task.address,
            source_address(task),
            [ProbeBlock(ports, way.mode, way.template)],
            Timing(look_ms, look_ms, 1),
        )
        return order._replace(size=size)


class _Ladder:
    """Finds the largest size that arrives, some sizes at a time."""

    def __init__(self, prober: _SizeProber) -> None:
        self._prober = prober
        self._limit: tuple[int, str] | None = None

    async def passes(self, size: int) -> bool:
        """Whether one size arrives."""
        return bool(await self._send_sizes([size]))

    async def climb(self, needed: int) -> PathMtu:
        """Between the smallest size, which arrives, and ``needed``, which does not."""
        low, high = SMALLEST[self._prober.task.family], needed
        while high - low > 1:
            sizes = list(range(low, high, max(1, (high - low) // STEPS)))[1:]
            arrived = await self._send_sizes(sizes)
            low = max(low, *arrived) if arrived else low
            high = min([size for size in sizes if size > low], default=high)
        limit, router = self._limit or (None, None)
        way = self._prober.way
        return PathMtu(low, needed, way.proof, way.words, router, limit)

    async def _send_sizes(self, sizes: list[int]) -> set[int]:
        arrived, kinds = await self._prober.send(sizes)
        for kind in kinds:
            if kind.failure == "message-too-long" and kind.icmp is not None:
                self._limit = (kind.mtu or 0, kind.icmp.offender)
        return arrived


def _find_ways(task: Task, seen: list[Observation]) -> list[Way]:
    """Ways for this source and address, the overlay's own packets first."""
    mine = [
        observation
        for observation in seen
        if observation.task.source == task.source and observation.task.address == task.address
    ]
    witnessed = [observation for observation in mine if _is_witnessed(observation)]
    answered = [
        observation
        for observation in mine
        if observation.task.protocol == "udp" and _answer_of(observation) == "nonce"
    ]
    ways = [_make_way(observation, "witness") for observation in witnessed[:1]]
    ways += [_make_way(observation, "nonce") for observation in answered[:1]]
    return [*ways, Way("service", "icmp", 0, "echo", 0)]


def _make_way(observation: Observation, proof: Proof) -> Way:
    port = observation.ports[0][0] if observation.ports else 0
    part = observation.part
    return Way(proof, observation.task.protocol, port, part.mode, part.template)


def _is_witnessed(observation: Observation) -> bool:
    """An overlay's packet that reached our listener."""
    arrived = observation.witness is not None and observation.witness.socket
    return arrived and observation.part.ours and observation.part.mode == "send"


def _answer_of(observation: Observation) -> str | None:
    return observation.outcome.answer if observation.outcome is not None else None
