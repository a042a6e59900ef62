"""Whether the destination has a route back to who was not answered: its own kernel says."""

from __future__ import annotations

from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Witness
from netprobe.probe.fleet import Agent, Fleet
from netprobe.probe.sighting import Sighting, source_address

# What connect() says of a routing table that has no way, as names of failures.
NO_ROUTE = frozenset(("network-unreachable", "host-unreachable", "access-denied", "invalid-route"))


async def with_routes_back(sightings: list[Sighting], agent: Agent, fleet: Fleet) -> list[Sighting]:
    """The sightings, with ``reply_failure`` where the destination cannot route an answer.

    A listener's own datagram says so by its errno; an answer that the kernel gives (SYN-ACK, echo
    reply) disappears without a word, so the routing table is asked. Raises AgentError.
    """
    # Asked about an address that it does not have, a kernel answers as for a blackhole.
    own = {
        sighting.task.address
        for sighting in sightings
        if sighting.listener.state == "ours" and not sighting.listener.nat
    }
    found = []
    for sighting in sightings:
        failure = None
        if sighting.silent and sighting.task.address in own and not _never_came(sighting):
            failure = await _failure(sighting, agent, fleet)
        found.append(_noted(sighting, failure) if failure is not None else sighting)
    return found


def _never_came(sighting: Sighting) -> bool:
    """Whether a capture proves that there was nothing to answer."""
    return sighting.witness is not None and sighting.witness.capture is False


async def _failure(sighting: Sighting, agent: Agent, fleet: Fleet) -> str | None:
    """The failure of the route from the probed address to the source's, None where there is one."""
    task = sighting.task
    source = source_address(task)
    if source is None:
        try:
            route = await fleet.agent(task.source).route(task.address, None)
        except AgentError:
            return None  # the source is gone; what it saw before stands
        source = route.get("source")
    if source is None:
        return None
    back = await agent.route(source, task.address)
    failure = back.get("failure")
    return failure if failure in NO_ROUTE else None


def _noted(sighting: Sighting, failure: str) -> Sighting:
    witness = sighting.witness or Witness()
    if witness.reply_failure is not None:
        return sighting
    return replace(sighting, witness=replace(witness, reply_failure=failure))
