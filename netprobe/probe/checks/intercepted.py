"""Finds devices nearer than the destination that accept connections in its name.

* A port that must be closed and opens nevertheless: something answers SYNs for everybody.
* A connection that opens with a TTL too small to reach the destination: something nearer answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.checks.distance import count_hops
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import CHECK_MS, CONTROL_PORTS

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
        hops = await count_hops(task, scene)
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
