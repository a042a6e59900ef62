"""Finds devices nearer than the destination that accept connections in its name.

* A port that must be closed and opens nevertheless: something answers SYNs for everybody.
* A connection that opens with a TTL too small to reach the destination: something nearer answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from netprobe.agent.wire.parts import WalkHop
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import CHECK_MS, CONTROL_PORTS, MAX_TTL

EVERYBODY = CheckConclusion("intercepted", "ports that nobody uses accept connections too")
NEARER = CheckConclusion(
    "intercepted", "the connection opens even with a TTL too small to reach the destination"
)

HANDSHAKES = ("unasked", "silent", "closed", "reset", "other", "service")


class Intercepted(Check):
    """Checks connections that opened, once a source and address."""

    name = "intercepted"

    def concerns(self, seen: Observation) -> bool:
        """A TCP connection that opened without our listener's word."""
        outcome = seen.outcome
        return (
            outcome is not None
            and seen.task.protocol == "tcp"
            and seen.listener.state != "ours"
            and outcome.answer in HANDSHAKES
        )

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask ports that must be closed, then with a TTL that does not reach the destination."""
        task = group[0].task
        if task.address in {one.text for one in task.source.addresses}:
            return group
        opened = await _control_ports_open(task, scene)
        facts: dict[str, Any] = {"control_ports": list(CONTROL_PORTS[:2]), "control_opened": opened}
        if opened:
            return [
                replace(seen, conclusion=EVERYBODY).noting(self.name, "bad", **facts)
                for seen in group
            ]
        hops = await _count_hops(task, scene)
        if hops is None or hops < 2:
            return [seen.noting(self.name, **facts) for seen in group]
        ports = port_sets.union(seen.ports for seen in group)
        answers = await scene.prober.ask(task, "tcp", ports, look_ms=CHECK_MS, ttl=hops - 1)
        nearer = port_sets.union(some for some, one in answers if one.answer is not None)
        facts |= {"ttl": hops - 1, "opened": bool(nearer)}
        return [
            (replace(piece, conclusion=NEARER) if false else piece).noting(self.name, **facts)
            for seen in group
            for false, piece in seen.cut(nearer)
        ]


async def _control_ports_open(task: Task, scene: Scene) -> bool:
    """Tell whether two ports that nobody needs accept connections too."""
    ports = port_sets.normalise((port, port) for port in CONTROL_PORTS[:2])
    answers = await scene.prober.ask(task, "tcp", ports, look_ms=CHECK_MS)
    return bool(answers) and all(one.answer is not None for _, one in answers)


async def _count_hops(task: Task, scene: Scene) -> int | None:
    """Find the smallest TTL that reaches the address: by echo, else by a closed UDP port."""
    agent = scene.fleet.agent(task.source)
    source = source_address(task)
    for protocol, port in (("icmp", 0), ("udp", CONTROL_PORTS[0])):
        walked = await agent.walk(protocol, task.address, port, source, MAX_TTL)
        hops = _find_distance(task.address, walked.hops)
        if hops is not None:
            return hops
    return None


def _find_distance(address: str, hops: Iterable[WalkHop]) -> int | None:
    """Find the TTL that reaches the address, as far as a router vouches for it.

    The last router's answer proves that one less does not reach it. Its own probe or answer may be
    lost, and then a larger TTL looks like the first that does.
    """
    known = [hop for hop in hops if hop.address is not None]
    reached = [hop.ttl for hop in known if hop.address == address]
    if not reached:
        return None
    routers = [hop.ttl for hop in known if hop.address != address and hop.ttl < min(reached)]
    if routers:
        return max(routers) + 1
    return 1 if min(reached) == 1 else None
