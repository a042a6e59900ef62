"""Packets that never left: the source's own firewall, or no room in its kernel for them.

A neighbour table that is full (net.ipv4.neigh.default.gc_thresh3) and a queue that drops look like
an OUTPUT firewall to TCP; a datagram's errno tells them apart.
"""

from __future__ import annotations

from dataclasses import replace

from netprobe.agent.wire.host_messages import (
    Egress,
)
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model.evidence import NO_BUFFERS, CheckConclusion
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address


class EgressLook(Check):
    """Asks the source's kernel why packets never left."""

    name = "egress"

    def concerns(self, seen: Observation) -> bool:
        """Flows whose packets are known not to have left, and no errno said why."""
        return _has_stayed_home(seen)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask once for the pair; what had no room says so, and why."""
        task = group[0].task
        agent = scene.fleet.agent(task.source)
        egress = await agent.egress(task.address, source_address(task), CONTROL_PORTS[0])
        return [_conclude_room(seen, egress) for seen in group]


def _has_stayed_home(seen: Observation) -> bool:
    """Tell whether the packets are known not to have left, and no errno said why."""
    outcome = seen.outcome
    if outcome is None or outcome.operation == "bind":
        return False
    return outcome.failure == NO_BUFFERS or (seen.silent and outcome.left_host is False)


def _conclude_room(seen: Observation, egress: Egress) -> Observation:
    assert seen.outcome is not None
    if NO_BUFFERS not in (seen.outcome.failure, egress.failure):
        return seen.noting(EgressLook.name)
    conclusion = CheckConclusion("no-room", _describe_egress(egress))
    return replace(seen, conclusion=conclusion).noting(EgressLook.name, status="bad")


def _describe_egress(egress: Egress) -> str:
    if egress.next_hop is None:
        return "its neighbour table is full, or a queue of its interface drops what it sends"
    if egress.neighbour is None:
        return (
            f"its neighbour table is full (gc_thresh3): there is no entry for {egress.next_hop} "
            "and none can be made"
        )
    return f"the queue of its interface {egress.dev} (tc) drops what it sends"
