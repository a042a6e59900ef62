"""Whether the destination has a route back to who was not answered: its own kernel says.

A listener's own datagram tells by its errno; an answer that the kernel gives (SYN-ACK, echo reply)
disappears without a word, so the routing table is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Witness
from netprobe.probe.fleet import Agent, Fleet
from netprobe.probe.sighting import Sighting, source_address

# What a kernel says of a blackhole, and of an answering address that it does not have.
AMBIGUOUS = "invalid-route"


async def with_routes_back(
    silent: list[Sighting], round_: Iterable[Sighting], agent: Agent, fleet: Fleet
) -> list[Sighting]:
    """The silent sightings, with ``reply_failure`` where the destination cannot route an answer.

    ``round_`` are all sightings of the round: where a listener of ours is bound to an address, the
    host has it.
    """
    own = {
        sighting.task.address
        for sighting in round_
        if sighting.listener.state == "ours" and not sighting.listener.nat
    }
    return list(await asyncio.gather(*(_asked(one, own, agent, fleet) for one in silent)))


async def _asked(sighting: Sighting, own: set[str], agent: Agent, fleet: Fleet) -> Sighting:
    witness = sighting.witness or Witness()
    # Where a capture proves that nothing came, there was nothing to answer.
    if witness.capture is False or witness.reply_failure is not None:
        return sighting
    try:
        failure = await _failure(sighting, own, agent, fleet)
    except AgentError:
        return sighting  # either end is gone; what was seen before stands
    if failure is None:
        return sighting
    return replace(sighting, witness=replace(witness, reply_failure=failure))


async def _failure(sighting: Sighting, own: set[str], agent: Agent, fleet: Fleet) -> str | None:
    """The failure of the route to the address that the source sends from; None: there is one."""
    task = sighting.task
    asker = source_address(task)
    if asker is None:
        asker = (await fleet.agent(task.source).route(task.address, None)).get("source")
    if asker is None:
        return None
    # Routes may depend on the address that answers.
    failure: str | None = (await agent.route(asker, task.address)).get("failure")
    return None if failure == AMBIGUOUS and task.address not in own else failure
