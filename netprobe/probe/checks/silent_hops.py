"""Finds routes of the source whose next hop forwards nothing: no router behind it ever answers.

Such a next hop answers ARP and swallows the rest, as a host does that does not forward; so does a
firewall that says nothing and has no rule for the source yet. Only where a neighbour of the
destination answers by another next hop, the route is odd.
A next hop by which any other host answers forwards: what is silent then is behind it. Hosts that
have not answered so far are asked, one of each network, so that it does not matter in which order
the run asks.

What follows: the next hop is at fault (``next-hop-silent``) where its route is odd.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from netprobe.agent.wire.questions import MAX_TTL
from netprobe.model.evidence import CheckConclusion
from netprobe.model.inventory import Host
from netprobe.model.notes import SilentHopNote
from netprobe.probe.agents.neighbours import distance
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task

# Hosts whose addresses differ in no more than these bits count as neighbours.
NEIGHBOUR_BITS = {4: 8, 6: 64}
MOST_NEIGHBOURS = 3
# One host each of so many other networks is asked: nothing of them may have answered so far.
MOST_NETWORKS = 4

HostAt = tuple[Host, str]


class NeighbourRoute(NamedTuple):
    """The source's route to a neighbour of the destination, and whether anything answers by it."""

    host: Host
    gateway: str | None
    answers: bool


class SilentHops(Check):
    """Compares the route of a pair that heard nothing at all with those to its neighbours."""

    name = "route"

    def concerns(self, seen: Observation) -> bool:
        """All flows: one that heard anything shows that the next hop forwards."""
        return seen.outcome is not None and seen.has_left is not False

    def is_due(self, group: list[Observation], scene: Scene) -> bool:
        """Only a pair that heard nothing at all."""
        return _is_mute(group) and not scene.prober.answered.has(*group[0].task.pair)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Conclude for the pair where no neighbour answers by the same next hop."""
        task = group[0].task
        agent, source = scene.fleet.agent(task.source), source_address(task)
        gateway = (await agent.route(task.address, source)).gateway
        if gateway is None:
            return group
        near, far = _find_comparisons(task, scene)
        looks = [_look_at_route(task, host, address, scene) for host, address in near]
        looks += [_look_at_route(task, *one, scene, only_by=gateway) for one in far]
        found = await asyncio.gather(*looks)
        if any(route.answers and route.gateway == gateway for route in found):
            return group
        routes = found[: len(near)]
        other = [route for route in routes if route.gateway not in (None, gateway)]
        note = SilentHopNote(gateway)
        if not any(route.answers for route in other):
            return [seen.noting(self.name, note) for seen in group]
        conclusion = CheckConclusion("next-hop-silent", _word_routes(other), gateway)
        return [
            replace(seen, conclusion=conclusion).noting(self.name, note, "bad") for seen in group
        ]


def _is_mute(group: list[Observation]) -> bool:
    """Tell whether nothing came back to any flow, no router answered a walk, and nothing came."""
    traces = [seen.trace for seen in group if seen.trace is not None]
    return (
        all(seen.lost and not seen.arrived for seen in group)
        and bool(traces)
        and not any(trace.hops or trace.reached for trace in traces)
    )


def _find_comparisons(task: Task, scene: Scene) -> tuple[list[HostAt], list[HostAt]]:
    """Find the hosts that are nearest to the task's address, and some of those farther away, whose
    next hop may be the same; each with its address.

    Of the latter the nearest that have answered the source come first, then one of each network.
    """
    known = [
        (distance(task.address, {address.text}), host, address.text)
        for host in scene.fleet.hosts()
        if host.name != task.source.name
        for address in host.addresses
        if address.family == task.family and address.text != task.address
    ]
    known.sort(key=lambda one: one[0])
    bits = NEIGHBOUR_BITS[task.family]
    near = [one[1:] for one in known if one[0] <= bits][:MOST_NEIGHBOURS]
    far = [one[1:] for one in known if one[0] > bits]
    answered = scene.prober.answered
    answering = (one for one in far if answered.has(task.source.name, one[1]))
    networks: dict[int, HostAt] = {}
    for one in far:
        networks.setdefault(int(ip_address(one[1])) >> bits, one)
    chosen = [*islice(answering, MOST_NEIGHBOURS), *islice(networks.values(), MOST_NETWORKS)]
    return near, [one for number, one in enumerate(chosen) if one not in chosen[:number]]


async def _look_at_route(
    task: Task, host: Host, address: str, scene: Scene, *, only_by: str | None = None
) -> NeighbourRoute:
    """Ask for the route to a host, and walk it unless that host has answered already.

    ``only_by``: a walk by another next hop than this would say nothing.
    """
    agent, source = scene.fleet.agent(task.source), source_address(task)
    known = scene.prober.answered
    route = await agent.route(address, source)
    answers = known.has(task.source.name, address) or known.walked(task.source.name, address)
    if answers is None and agent.walks_left > 0 and only_by in (None, route.gateway):
        agent.walks_left -= 1
        walked = await agent.walk("icmp", address, 0, source, MAX_TTL)
        answers = walked.reached or any(hop.address is not None for hop in walked.hops)
        known.note_walk(task.source.name, address, answers)
    return NeighbourRoute(host, route.gateway, bool(answers))


def _word_routes(routes: list[NeighbourRoute]) -> str:
    """Word the other routes: ``its route to p goes by 10.0.0.1, which answers``."""
    said: dict[tuple[str | None, bool], list[str]] = {}
    for route in routes:
        said.setdefault((route.gateway, route.answers), []).append(route.host.name)
    return "".join(
        f"; its route to {', '.join(names)} goes by {gateway}, "
        + ("where routers or hosts answer" if answers else "where nothing answers either")
        for (gateway, answers), names in said.items()
    )
