"""Finds where silent flows end, with one TTL walk for each source, address and protocol."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.questions import MAX_TTL
from netprobe.model.evidence import Icmp, Trace
from netprobe.model.notes import WalkNote
from netprobe.probe.agents.decode import read_icmp
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address

WALKED = ("tcp", "udp", "icmp")
# What a router says of an address, whatever the port; other words are about the port that it saw.
_OF_ADDRESS = "net-unreach"
# That nobody answers for an address, or a firewall that says so: only the time of the word tells.
_BY_TIME = "host-unreach"


class Traceroute(Check):
    """Walks with the first silent port; the walk stands for all flows of its protocol."""

    name = "traceroute"

    def concerns(self, seen: Observation) -> bool:
        """Silent flows, except those whose requests arrived: a walk would show nothing new."""
        arrived = seen.witness is not None and seen.witness.socket
        return seen.lost and not arrived and seen.task.protocol in WALKED

    def group(self, seen: Observation) -> Hashable:
        """One walk for each source, address and protocol."""
        return (*seen.task.pair, seen.task.protocol)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Walk while the source has walks left."""
        seen = group[0]
        task = seen.task
        agent = scene.fleet.agent(task.source)
        if agent.walks_left <= 0:
            return group
        agent.walks_left -= 1
        route = await agent.route(task.address, source_address(task))
        if route.gateway is None:  # on the same network there is no router to find
            agent.walks_left += 1
            return group
        if scene.prober.answered.hears_routers(task.source.name):
            # The walk would take answers that what is still asked needs.
            await agent.quiet()
        port = seen.ports[0][0] if seen.ports else 0
        walked = await agent.walk(
            task.protocol, task.address, port, source_address(task), MAX_TTL, seen.part.template
        )
        refusal = walked.refusal and read_icmp(walked.refusal, task.address, agent.own_addresses)
        trace = _read_trace(walked, task.address, refusal)
        note = WalkNote(port, walked)
        return [_take_walk(one, port, trace).noting(self.name, note) for one in group]


def _read_trace(walked: Walked, address: str, refusal: Icmp | None) -> Trace | None:
    if walked.failure is not None:
        return None
    hops = [hop for _, hop in walked.hops if hop is not None and hop != address]
    return Trace(hops[-1] if hops else None, len(hops), walked.reached, refusal)


def _take_walk(seen: Observation, port: int, trace: Trace | None) -> Observation:
    """Give the flow with its walk. Routers ration their errors: one that ended the walk refused the
    flow, too, though it said that of no packet of it.

    What came to the destination, no router refused.
    """
    refusal = trace.refusal if trace is not None else None
    told = refusal is not None and _speaks_of(refusal, seen, port)
    came = seen.story is not None and seen.story.destination_in.seen == "yes"
    return replace(seen, trace=trace, refusal=refusal if told and not came else seen.refusal)


def _speaks_of(refusal: Icmp, seen: Observation, port: int) -> bool:
    """Tell whether a router's word to the walk, which was to this port, holds for the flow."""
    if refusal.origin != "router" or refusal.word == _BY_TIME or not seen.silent:
        return False
    is_walked = not seen.ports or any(first <= port <= last for first, last in seen.ports)
    return refusal.word == _OF_ADDRESS or is_walked
