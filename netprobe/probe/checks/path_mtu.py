"""Measures the path MTU between hosts of an overlay with packets that must not be fragmented.

It sends the overlay's own packets to our listener where they arrive, else packets of a UDP flow
that our listener answers, else echo requests. Sizes are bytes of the whole IP packet.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import ProbeBlock
from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome, PathMtu
from netprobe.model.plan import PATH_MTU
from netprobe.model.result import Proof
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.batches import probe_order
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import Timing

# Two looks of three packets: a size is called too large only where six packets were lost. The
# first is short: what arrives is answered, or seen by the listener, long before its end.
SHORT_MS = 600
LOOK_MS = 1500
# Conclusions of a host that is down: no size arrives.
DEAD = ("host-down", "router-gives-up")
SMALLEST = {4: 576, 6: 1280}
STEPS = 16
# Answers that only the destination itself gives.
ANSWERED = ("nonce", "echo")


@dataclass(frozen=True, slots=True)
class MtuProbe:
    """Packets that arrive at the destination while they are small, and how that is known."""

    proof: Proof
    protocol: str
    port: int
    mode: str
    template: int

    @property
    def words(self) -> str:
        """The kind of packets, for the report's sentence."""
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


async def _measure_path(wanted: Observation, group: list[Observation], scene: Scene) -> Observation:
    task = wanted.task
    agent = scene.fleet.agent(task.source)
    try:
        needed = (await agent.route(task.address, source_address(task))).dev_mtu
        mtu = PathMtu(None, needed)
        if needed is not None and not any(seen.concluded in DEAD for seen in group):
            mtu = await _measure_best(task, group, scene, needed)
    except AgentError as error:
        return replace(wanted, untested=(error.reason, str(error)))
    measured = replace(wanted, outcome=Outcome(PATH_MTU, None), mtu=mtu)
    return measured.noting(PathMtuLook.name, path=mtu.path, needed=mtu.needed)


async def _measure_best(task: Task, group: list[Observation], scene: Scene, needed: int) -> PathMtu:
    """By the first way whose smallest packets arrive."""
    for way in _find_ways(group):
        ladder = _Ladder(task, way, scene)
        if await ladder.passes(needed):
            return PathMtu(needed, needed, proof=way.proof, how=way.words)
        if await ladder.passes(SMALLEST[task.family]):
            return await ladder.climb(needed)
    return PathMtu(None, needed)


class _Ladder:
    """Sends packets of several sizes by one way, to find the largest that arrives."""

    def __init__(self, task: Task, way: MtuProbe, scene: Scene) -> None:
        self._task = task
        self._way = way
        self._scene = scene
        self._limit: tuple[int, str] | None = None

    async def passes(self, size: int) -> bool:
        """Tell whether one size arrives."""
        return bool(await self._send_sizes([size]))

    async def climb(self, needed: int) -> PathMtu:
        """Between the smallest size, which arrives, and ``needed``, which does not."""
        low, high = SMALLEST[self._task.family], needed
        while high - low > 1:
            sizes = list(range(low, high, max(1, (high - low) // STEPS)))[1:]
            arrived = await self._send_sizes(sizes)
            low = max(low, *arrived) if arrived else low
            high = min([size for size in sizes if size > low], default=high)
        limit, router = self._limit or (None, None)
        return PathMtu(low, needed, self._way.proof, self._way.words, router, limit)

    async def _send_sizes(self, sizes: list[int]) -> set[int]:
        """Give the sizes that arrive; what did not after a short look gets a longer one."""
        arrived = await self._send_once(sizes, SHORT_MS)
        left = [size for size in sizes if size not in arrived]
        return arrived | await self._send_once(left, LOOK_MS) if left else arrived

    async def _send_once(self, sizes: list[int], look_ms: int) -> set[int]:
        orders = [self._make_order(size, look_ms) for size in sizes]
        agent = self._scene.fleet.agent(self._task.source)
        replies = await asyncio.gather(*(agent.probe(order) for order in orders))
        for kind in (row.kind for reply in replies for row in reply.rows):
            if kind.failure == "message-too-long" and kind.icmp is not None:
                self._limit = (kind.mtu or 0, kind.icmp.offender)
        if self._way.proof == "witness":
            assert self._scene.round is not None
            seen = await self._scene.round.seen([order.id for order in orders])
            numbers = {item.order for item in seen.orders}
            good = [order.id in numbers for order in orders]
        else:
            good = [any(row.kind.answer in ANSWERED for row in reply.rows) for reply in replies]
        return {size for size, arrived in zip(sizes, good, strict=True) if arrived}

    def _make_order(self, size: int, look_ms: int) -> ProbeOrder | EchoOrder:
        way, task = self._way, self._task
        number = next(self._scene.fleet.order_ids)
        blocks = [ProbeBlock([(way.port, way.port)] if way.port else [], way.mode, way.template)]
        timing = Timing(look_ms, look_ms, 1)
        order = probe_order(
            number, way.protocol, task.address, source_address(task), blocks, timing
        )
        return order._replace(size=size)


def _find_ways(seen: list[Observation]) -> list[MtuProbe]:
    """Ways for one source and address, the overlay's own packets first."""
    witnessed = [_make_way(one, "witness") for one in seen if _is_witnessed(one)]
    answered = [
        _make_way(one, "nonce")
        for one in seen
        if one.task.protocol == "udp" and one.outcome is not None and one.outcome.answer == "nonce"
    ]
    return [*witnessed[:1], *answered[:1], MtuProbe("service", "icmp", 0, "echo", 0)]


def _make_way(observation: Observation, proof: Proof) -> MtuProbe:
    port = observation.ports[0][0] if observation.ports else 0
    part = observation.part
    return MtuProbe(proof, observation.task.protocol, port, part.mode, part.template)


def _is_witnessed(observation: Observation) -> bool:
    """Tell whether it is an overlay's packet that reached our listener."""
    arrived = observation.witness is not None and observation.witness.socket
    return arrived and observation.part.one_way
