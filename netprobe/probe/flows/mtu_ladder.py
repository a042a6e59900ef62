"""Packets of several sizes between two hosts, to find the largest that arrives.

Sizes are bytes of the whole IP packet.

Finds paths that are too narrow for TCP: small segments arrive, and full-sized ones vanish.

Every connection would open there and then hang, so that no flow of such a pair is a pass.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import ProbeBlock
from netprobe.agent.wire.replies import NARROW_BACK, SILENT
from netprobe.errors import AgentError
from netprobe.model.evidence import PathMtu
from netprobe.model.result import Proof
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.batches import probe_order
from netprobe.probe.flows.chance import Chance
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import LEAST_LOOK_S, LOOK_S, Timing

# Two looks of three packets while the limit is searched. The first is short: what arrives is
# answered, or seen by the listener, long before its end. Nobody answers one-way packets, so that
# their look takes all of its time.
SHORT_MS = 600
ONE_WAY_MS = 200
LOOK_MS = 1500
SMALLEST = {4: 576, 6: 1280}
# Segments of TCP may be smaller than what every path must carry; a nonce fits.
SMALLEST_TCP = 256
STEPS = 16
# So often the limit is asked again side by side with what is too large for it, before a path where
# both get lost is called unknown.
ROUNDS = 4
# Answers that only the destination itself gives.
ANSWERED = ("nonce", "echo")

Pair = tuple[str, str]


class MtuProbe(Struct, frozen=True):
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
    """Sends packets of several sizes by one way. ``round_``: the listeners of one-way packets."""

    def __init__(
        self, task: Task, way: MtuProbe, fleet: Fleet, chance: Chance, round_: Round | None
    ) -> None:
        self._task = task
        self._way = way
        self._fleet = fleet
        self._chance = chance
        self._round = round_
        # What a kernel or a router said of a size that was too large: its limit, and who it is.
        self._limit: tuple[int | None, str | None] | None = None
        # The size that is needed, where it was not seen to arrive.
        self._lost: int | None = None
        # A TCP segment arrived, and none of that size came back.
        self._lost_back = False
        # Of TCP not even the small request was answered: that shows nothing of sizes.
        self._is_unheard = False

    async def measure(self, needed: int) -> PathMtu | None:
        """Find the largest size that arrives, up to ``needed``.

        None where the smallest does not arrive either, and where loss would explain all of it.
        Raises AgentError.
        """
        tcp = self._way.protocol == "tcp"
        smallest = SMALLEST_TCP if tcp else SMALLEST[self._task.family]
        if await self._find_arrived([needed]):
            return self._make_path_mtu(needed, needed)
        if not self._is_unheard:
            self._lost = needed
        if not await self._find_arrived([smallest]):
            return None
        largest = await self._find_largest(smallest, needed)
        if self._limit is None:
            arrives = await self._compare_sizes(largest, needed)
            if arrives is not False:
                return self._make_path_mtu(needed, needed) if arrives else None
        return self._make_path_mtu(largest, needed)

    def doubt(self) -> PathMtu | None:
        """Give that the size which is needed was not seen to arrive, where nothing more could be
        asked."""
        return None if self._lost is None else PathMtu(None, self._lost, self._way.proof)

    def _make_path_mtu(self, largest: int, needed: int) -> PathMtu:
        limit, router = self._limit or (None, None)
        way, is_narrow = self._way, largest < needed
        lost_back = is_narrow and self._lost_back
        return PathMtu(largest, needed, way.proof, way.words, router, limit, lost_back)

    async def _find_largest(self, low: int, high: int) -> int:
        """Give the largest size that arrives, between one that does and one that does not."""
        while high - low > 1:
            sizes = list(range(low, high, max(1, (high - low) // STEPS)))[1:]
            # A kernel sends lost segments of TCP again by itself.
            once = self._way.protocol == "tcp"
            arrived = await (self._send_once(sizes, SHORT_MS) if once else self._send_twice(sizes))
            good = [size for size, told in zip(sizes, arrived, strict=True) if told]
            low = max(low, *good) if good else low
            high = min([size for size in sizes if size > low], default=high)
        return low

    async def _compare_sizes(self, small: int, large: int) -> bool | None:
        """Tell whether the large size arrives, asking for both side by side.

        It does not where the loss that the small one shows cannot explain that the large one never
        arrived. None: it can.
        """
        asked = arrived = 0
        for _ in range(ROUNDS):
            looks = self._chance.count_looks()
            told = await self._send_once([small, large] * looks, LOOK_MS)
            if any(told[1::2]):
                return True
            asked += looks
            arrived += sum(told[::2])
            if self._chance.excludes_loss(asked, 1 - arrived / asked):
                return False
        return None

    async def _find_arrived(self, sizes: list[int]) -> set[int]:
        arrived = await self._send_twice(sizes)
        return {size for size, told in zip(sizes, arrived, strict=True) if told}

    async def _send_twice(self, sizes: list[int]) -> list[bool]:
        """Tell of each size whether it arrives, at a short look or at a longer one."""
        short_ms = ONE_WAY_MS if self._way.proof == "witness" else SHORT_MS
        arrived = await self._send_once(sizes, short_ms, is_last=False)
        left = [size for size, told in zip(sizes, arrived, strict=True) if not told]
        late = iter(await self._send_once(left, LOOK_MS) if left else [])
        return [told or next(late) for told in arrived]

    async def _send_once(
        self, sizes: list[int], look_ms: int, *, is_last: bool = True
    ) -> list[bool]:
        """Tell of each size whether it arrives. A look that met a pause of the other end is taken
        again, a longer one, unless another one follows. Raises AgentError where that met one, too.
        """
        there = self._fleet.agent(self._task.wants[0].flow.destination)
        for look_s in (look_ms / 1000, look_ms / 1000 + LOOK_S):
            lost_back, began_s = self._lost_back, asyncio.get_running_loop().time()
            told = await self._send_sizes(sizes, round(look_s * 1000))
            # Without an agent there it is the kernel that answers.
            if all(told) or not is_last or not there.alive:
                return told
            if await there.count_lost(began_s, look_s) <= look_s - LEAST_LOOK_S:
                return told
            self._lost_back = lost_back
        if self._lost is None and not self._is_unheard:
            self._lost = max(sizes)
        raise AgentError("machine-busy", f"{there.host.name} stood still")

    async def _send_sizes(self, sizes: list[int], look_ms: int) -> list[bool]:
        orders = [self._make_order(size, look_ms) for size in sizes]
        agent = self._fleet.agent(self._task.source)
        replies = await gather_all(agent.probe(order) for order in orders)
        for kind in (row.kind for reply in replies for row in reply.rows):
            if kind.failure == "message-too-long":
                router = kind.icmp
                self._limit = (kind.mtu or 0, router.offender) if router else (None, None)
        words = {row.kind.answer for reply in replies for row in reply.rows}
        self._lost_back = self._lost_back or NARROW_BACK in words
        self._is_unheard = self._way.protocol == "tcp" and words <= {SILENT}
        if self._way.proof == "witness":
            assert self._round is not None
            seen = await self._round.seen([order.id for order in orders])
            numbers = {item.order for item in seen.orders}
            return [order.id in numbers for order in orders]
        return [any(row.kind.answer in ANSWERED for row in reply.rows) for reply in replies]

    def _make_order(self, size: int, look_ms: int) -> ProbeOrder | EchoOrder:
        way, task = self._way, self._task
        number = next(self._fleet.order_ids)
        blocks = [ProbeBlock([(way.port, way.port)] if way.port else [], way.mode, way.template)]
        timing = Timing(look_ms, look_ms, 1)
        order = probe_order(
            number, way.protocol, task.address, source_address(task), blocks, timing
        )
        return order._replace(size=size)


class PathWidths:
    """Sends full-sized segments both ways, once for each source and address of a destination."""

    def __init__(self, fleet: Fleet, chance: Chance) -> None:
        self._fleet = fleet
        self._chance = chance
        self._measuring: dict[Pair, asyncio.Task[PathMtu | None]] = {}

    def begin(self, seen: Observation) -> None:
        """Start to measure the pair of a TCP flow that our listener answered, once."""
        pair = seen.task.pair
        if pair not in self._measuring:
            self._measuring[pair] = asyncio.create_task(self._measure_pair(seen))

    def is_wide(self, pair: Pair) -> bool:
        """Tell whether it is known by now that full-sized segments get through."""
        task = self._measuring.get(pair)
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return False
        return task.result() is None

    async def find(self, seen: Observation) -> PathMtu | None:
        """Give what the path of such a flow carries; None where that is enough."""
        self.begin(seen)
        return await self._measuring[seen.task.pair]

    def close(self) -> None:
        """Stop measuring."""
        for task in self._measuring.values():
            task.cancel()

    async def _measure_pair(self, seen: Observation) -> PathMtu | None:
        task, port = seen.task, seen.ports[0][0]
        way = MtuProbe("nonce", "tcp", port, seen.part.mode, seen.part.template)
        ladder = MtuLadder(task, way, self._fleet, self._chance, None)
        agent = self._fleet.agent(task.source)
        try:
            needed = (await agent.route(task.address, source_address(task))).dev_mtu
            found = None if needed is None else await ladder.measure(needed)
        except AgentError:
            # Where nobody asks for the source any more, what it saw before stands.
            return ladder.doubt()
        return found if found and found.path != found.needed else None
