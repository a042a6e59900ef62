"""Measures the path MTU between hosts of an overlay with packets that must not be fragmented.

It sends the overlay's own packets to our listener where they arrive, else packets of a UDP flow
that our listener answers, else echo requests. Sizes are bytes of the whole IP packet.

Tells the TCP flows of a pair that its path is too narrow for full-sized segments.
"""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome, PathMtu
from netprobe.model.notes import SizeNote
from netprobe.model.plan import PATH_MTU
from netprobe.model.result import Proof
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.mtu_ladder import MtuLadder, MtuProbe
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task

# No IP packet is larger, though loopback's MTU is 65536: two hosts may be one machine.
LARGEST = 65535
# Conclusions of a host that is down: no size arrives.
DEAD = ("host-down", "router-gives-up")


class PathMtuLook(Check):
    """Measures what a path carries; flows of the same pair tell which packets arrive."""

    name = "path-mtu"

    def concerns(self, seen: Observation) -> bool:
        """All flows of pairs whose path is measured."""
        return True

    def is_due(self, group: list[Observation], scene: Scene) -> bool:
        """Only a pair of which a task asks for it."""
        return any(seen.task.probe == PATH_MTU for seen in group)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Measure once for each task that asks for it."""
        wanted = [seen for seen in group if seen.task.probe == PATH_MTU]
        measured = await gather_all(_measure_path(seen, group, scene) for seen in wanted)
        return [seen for seen in group if seen.task.probe != PATH_MTU] + measured


async def _measure_path(wanted: Observation, group: list[Observation], scene: Scene) -> Observation:
    task = wanted.task
    agent = scene.fleet.agent(task.source)
    try:
        device = (await agent.route(task.address, source_address(task))).dev_mtu
        needed = None if device is None else min(device, LARGEST)
        mtu = PathMtu(None, needed)
        if needed is not None and not any(seen.concluded in DEAD for seen in group):
            mtu = await _measure_best(task, group, scene, needed)
    except AgentError as error:
        return replace(wanted, untested=(error.reason, str(error)))
    measured = replace(wanted, outcome=Outcome(PATH_MTU, None), mtu=mtu)
    return measured.noting(PathMtuLook.name, SizeNote(mtu.path, mtu.needed))


async def _measure_best(task: Task, group: list[Observation], scene: Scene, needed: int) -> PathMtu:
    """By the first way whose smallest packets arrive."""
    for way in _find_ways(group):
        ladder = MtuLadder(task, way, scene.fleet, scene.prober.chance, scene.round)
        if found := await ladder.measure(needed):
            return found
    return PathMtu(None, needed)


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


class PathWidth(Check):
    """Asks for the width of the path where our listener answered a small segment."""

    name = "path-width"
    needs = "agent"

    def concerns(self, seen: Observation) -> bool:
        """The TCP flows that were probed directly."""
        return seen.outcome is not None and seen.task.protocol == "tcp" and seen.task.via is None

    def is_due(self, group: list[Observation], scene: Scene) -> bool:
        """Only a pair of which the early results have not shown yet that its path is wide."""
        return not scene.widths.is_wide(group[0].task.pair)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Note on every flow of the pair what its path carries, where that is too little."""
        answered = [seen for seen in group if seen.proven]
        mtu = await scene.widths.find(answered[0]) if answered else None
        if mtu is None:
            return group
        note = SizeNote(mtu.path, mtu.needed)
        return [replace(seen, mtu=mtu).noting(self.name, note, "bad") for seen in group]
