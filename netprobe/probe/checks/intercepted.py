"""Finds devices nearer than the destination that accept connections in its name.

* A port that must be closed and opens nevertheless: something answers SYNs for everybody.
* A connection that opens with a TTL too small to reach the destination: something nearer answers.

The recorder knows the TTL that every SYN-ACK arrived with: where it is that of other answers of
the host, nothing needs to be asked, and a few ports stand for all with another one.

What follows: something else accepts, and the destination is not shown to be up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion
from netprobe.model.notes import InterceptionNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.distances import DistanceWalks
from netprobe.probe.checks.genuine import (
    arrival_ttl,
    choose_sample,
    count_lost_hops,
    find_by_sample,
    find_genuine,
)
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.reachability import OPENED
from netprobe.probe.flows.work import Task

EVERYBODY = CheckConclusion("intercepted", "ports that nobody uses accept connections too")
NEARER = CheckConclusion(
    "intercepted", "the connection opens even with a TTL too small to reach the destination"
)

# Of ports that differ each is asked so often: a lost answer must not look like a genuine port.
TRIES = 3


class Intercepted(Check):
    """Checks connections that opened, once a source and address."""

    name = "intercepted"

    def concerns(self, seen: Observation) -> bool:
        """A TCP connection that opened without the word of our listener, or of a recorder there."""
        outcome = seen.outcome
        return (
            outcome is not None
            and seen.came == "unknown"
            and seen.task.protocol == "tcp"
            and seen.listener.state != "ours"
            and outcome.answer in OPENED
        )

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask ports that must be closed, then with a TTL that does not reach the destination."""
        task = group[0].task
        if task.address in {one.text for one in task.source.addresses}:
            return group
        looks = _OpenLooks(task, scene)
        nearer = await looks.find_intercepted(group)
        if nearer:
            scene.prober.answered.note_intercepted(*task.pair)
        return [
            (replace(piece, conclusion=looks.conclusion) if is_nearer else piece).noting(
                self.name, looks.note, "bad" if is_nearer else "ok"
            )
            for seen in group
            for is_nearer, piece in seen.cut(nearer)
        ]


@dataclass
class _OpenLooks:
    """The looks at the connections of one pair; ``note`` is what the trail has of them."""

    task: Task
    scene: Scene
    note: InterceptionNote = field(default_factory=InterceptionNote)
    conclusion: CheckConclusion = NEARER

    async def find_intercepted(self, group: list[Observation]) -> Ports:
        """Find the ports that something nearer than the destination opened."""
        everything = port_sets.union(seen.ports for seen in group)
        opened = await self._control_ports_open()
        self.note = InterceptionNote(CONTROL_PORTS[:2], opened)
        if opened:
            self.conclusion = EVERYBODY
            return everything
        alike = group_by(group, arrival_ttl)
        known = any(arrival_ttl(some[0]) is not None for some in alike)
        ttl = (await find_genuine(self.task, (), self.scene)).ttl if known else None
        doubtful = [some for some in alike if not _is_as_far(arrival_ttl(some[0]), ttl)]
        if not doubtful or await self._is_neighbour(ttl):
            return ()
        hops = await DistanceWalks(self.task, self.scene).count_hops(or_least=True)
        if hops is None or hops < 2:
            return ()
        return port_sets.union([await self._find_nearer(some, hops) for some in doubtful])

    async def _is_neighbour(self, ttl: int | None) -> bool:
        """Tell whether no router is on the way: none in the route, and none lowered the TTL."""
        if ttl is None or count_lost_hops(ttl):
            return False
        task = self.task
        agent = self.scene.fleet.agent(task.source)
        return (await agent.route(task.address, source_address(task))).gateway is None

    async def _control_ports_open(self) -> bool:
        """Tell whether two ports that nobody needs accept connections too."""
        ports = port_sets.normalise((port, port) for port in CONTROL_PORTS[:2])
        answers = await self.scene.prober.ask(self.task, "tcp", ports, look_ms=CHECK_MS)
        return bool(answers) and all(one.answer is not None for _, one in answers)

    async def _find_nearer(self, group: list[Observation], hops: int) -> Ports:
        """Find which of these ports open with a TTL that is one too small.

        Ports with one TTL on arrival are of one kind, and a few of them stand for all, unless
        these differ; where no recorder told it, a few stand for a range.
        """
        ports = port_sets.union(seen.ports for seen in group)
        if arrival_ttl(group[0]) is None:
            asked_for = port_sets.union(seen.task.ports for seen in group)
            return await find_by_sample(
                ports, asked_for, lambda some: self._find_opened(some, hops - 1)
            )
        asked = choose_sample(ports)
        nearer = await self._find_opened(asked, hops - 1)
        if not nearer or nearer == asked:
            return ports if nearer else ()
        for _ in range(TRIES):
            rest = port_sets.subtract(ports, nearer)
            more = await self._find_opened(rest, hops - 1) if rest else ()
            nearer = port_sets.union((nearer, more))
        return nearer

    async def _find_opened(self, ports: Ports, ttl: int) -> Ports:
        """Find the ports that open to a SYN with this TTL."""
        answers = await self.scene.prober.ask(self.task, "tcp", ports, look_ms=CHECK_MS, ttl=ttl)
        opened = port_sets.union(some for some, one in answers if one.answer is not None)
        self.note = self.note._replace(ttl=ttl, opened=self.note.opened or bool(opened))
        return opened


def _is_as_far(arrived: int | None, ttl: int | None) -> bool:
    """Tell whether a SYN-ACK came as far as other answers of the address did."""
    known = arrived is not None and ttl is not None
    return known and count_lost_hops(arrived or 0) == count_lost_hops(ttl or 0)
