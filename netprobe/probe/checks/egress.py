"""Packets that never left: the source's own firewall, or no room in its kernel for them.

A neighbour table that is full (net.ipv4.neigh.default.gc_thresh3) and a queue that drops look like
an OUTPUT firewall to TCP; a datagram's errno tells them apart.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.agent.wire.answers import Egress
from netprobe.errors import AgentError
from netprobe.model.evidence import NO_BUFFERS
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.suspects import CONTROL_PORTS
from netprobe.probe.flows.prober import Sighting, source_address

Pair = tuple[str, str]


async def with_room(sightings: list[Sighting], fleet: Fleet) -> list[Sighting]:
    """The sightings; what had no room says so, and why."""
    kept = {_pair(one): one for one in sightings if _stayed(one)}
    asked = await asyncio.gather(*(_ask(one, fleet) for one in kept.values()))
    rooms = dict(zip(kept, asked, strict=True))
    return [_told(one, rooms[_pair(one)]) if _stayed(one) else one for one in sightings]


def _stayed(sighting: Sighting) -> bool:
    """Whether the packets are known not to have left, and no errno said why."""
    outcome = sighting.outcome
    if outcome is None or outcome.operation == "bind":
        return False
    return outcome.failure == NO_BUFFERS or (sighting.silent and outcome.left_host is False)


def _pair(sighting: Sighting) -> Pair:
    return (sighting.task.source.name, sighting.task.address)


async def _ask(sighting: Sighting, fleet: Fleet) -> Egress | None:
    task = sighting.task
    agent = fleet.agent(task.source)
    try:
        return await agent.egress(task.address, source_address(task), CONTROL_PORTS[0])
    except AgentError:
        return None  # the source is gone; what it saw stands


def _told(sighting: Sighting, egress: Egress | None) -> Sighting:
    assert sighting.outcome is not None
    if egress is None or NO_BUFFERS not in (sighting.outcome.failure, egress.failure):
        return sighting
    outcome = replace(sighting.outcome, failure=NO_BUFFERS, said=_words(egress))
    return replace(sighting, outcome=outcome)


def _words(egress: Egress) -> str:
    if egress.next_hop is None:
        return "its neighbour table is full, or a queue of its interface drops what it sends"
    if egress.neighbour is None:
        return (
            f"its neighbour table is full (gc_thresh3): there is no entry for {egress.next_hop} "
            "and none can be made"
        )
    return f"the queue of its interface {egress.dev} (tc) drops what it sends"
