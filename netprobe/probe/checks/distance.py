"""How many hops away a destination is, as its own answers show."""

from __future__ import annotations

from collections.abc import Iterable

from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS, MAX_TTL
from netprobe.probe.checks.check import Scene
from netprobe.probe.flows.prober import source_address
from netprobe.probe.flows.work import Task


async def count_hops(task: Task, scene: Scene) -> int | None:
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
