"""Packets of several sizes between two hosts, to find the largest that arrives.

Sizes are bytes of the whole IP packet.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import ProbeBlock
from netprobe.agent.wire.replies import NARROW_BACK
from netprobe.model.evidence import PathMtu
from netprobe.model.result import Proof
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.batches import probe_order
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import Timing

# Two looks of three packets: a size is called too large only where six packets were lost. The
# first is short: what arrives is answered, or seen by the listener, long before its end.
SHORT_MS = 600
LOOK_MS = 1500
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
        if self.protocol == "tcp":
            return f"full TCP segments to port {self.port}"
        return f"{self.protocol} {self.port} packets" if self.port else f"{self.protocol} packets"


class MtuLadder:
    """Sends packets of several sizes by one way. ``round_``: the listeners of one-way packets.

    ``lost_back``: a TCP segment arrived, and none of that size came back.
    """

    def __init__(self, task: Task, way: MtuProbe, fleet: Fleet, round_: Round | None) -> None:
        self._task = task
        self._way = way
        self._fleet = fleet
        self._round = round_
        self._limit: tuple[int, str] | None = None
        self.lost_back = False

    async def passes(self, size: int) -> bool:
        """Tell whether one size arrives."""
        return bool(await self._send_sizes([size]))

    async def climb(self, needed: int) -> PathMtu:
        """Between the smallest size, which arrives, and ``needed``, which does not."""
        low, high = SMALLEST[self._task.family], needed
        while high - low > 1:
            sizes = list(range(low, high, max(1, (high - low) // STEPS)))[1:]
            # A kernel sends lost segments of TCP again by itself.
            once = self._way.protocol == "tcp"
            arrived = await (self._send_once(sizes, SHORT_MS) if once else self._send_sizes(sizes))
            low = max(low, *arrived) if arrived else low
            high = min([size for size in sizes if size > low], default=high)
        limit, router = self._limit or (None, None)
        return PathMtu(low, needed, self._way.proof, self._way.words, router, limit, self.lost_back)

    async def _send_sizes(self, sizes: list[int]) -> set[int]:
        """Give the sizes that arrive; what did not after a short look gets a longer one."""
        arrived = await self._send_once(sizes, SHORT_MS)
        left = [size for size in sizes if size not in arrived]
        return arrived | await self._send_once(left, LOOK_MS) if left else arrived

    async def _send_once(self, sizes: list[int], look_ms: int) -> set[int]:
        orders = [self._make_order(size, look_ms) for size in sizes]
        agent = self._fleet.agent(self._task.source)
        replies = await asyncio.gather(*(agent.probe(order) for order in orders))
        for kind in (row.kind for reply in replies for row in reply.rows):
            if kind.failure == "message-too-long" and kind.icmp is not None:
                self._limit = (kind.mtu or 0, kind.icmp.offender)
        words = {row.kind.answer for reply in replies for row in reply.rows}
        self.lost_back = self.lost_back or NARROW_BACK in words
        if self._way.proof == "witness":
            assert self._round is not None
            seen = await self._round.seen([order.id for order in orders])
            numbers = {item.order for item in seen.orders}
            good = [order.id in numbers for order in orders]
        else:
            good = [any(row.kind.answer in ANSWERED for row in reply.rows) for reply in replies]
        return {size for size, arrived in zip(sizes, good, strict=True) if arrived}

    def _make_order(self, size: int, look_ms: int) -> ProbeOrder | EchoOrder:
        way, task = self._way, self._task
        number = next(self._fleet.order_ids)
        blocks = [ProbeBlock([(way.port, way.port)] if way.port else [], way.mode, way.template)]
        timing = Timing(look_ms, look_ms, 1)
        order = probe_order(
            number, way.protocol, task.address, source_address(task), blocks, timing
        )
        return order._replace(size=size)
