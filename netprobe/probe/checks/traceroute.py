"""Where silent flows end: one more look while both ends capture, the way back, and a TTL walk.

Only for what failed. The further look is also a further try: what was only lost may be answered.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.agent.wire.answers import Walked
from netprobe.errors import AgentError
from netprobe.model.evidence import Trace, Witness
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.captures import Capture
from netprobe.probe.checks.half_open import with_half_open
from netprobe.probe.checks.return_path import with_ways_back
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Prober, Sighting, source_address
from netprobe.probe.flows.translated_sources import Origins
from netprobe.probe.settings import MAX_TTL

WALKED = ("tcp", "udp", "icmp")


class Localiser:
    """Looks again at one destination's silence, from both ends."""

    def __init__(self, fleet: Fleet, agent: AgentMethods, prober: Prober, origins: Origins) -> None:
        self._fleet = fleet
        self._origins = origins
        self._agent = agent
        self._prober = prober

    async def localise(self, sightings: list[Sighting], round_: Round | None) -> list[Sighting]:
        """The sightings with witness and trace as far as they can be had; ``round_`` is None where
        the destination has no agent."""
        lost = [sighting for sighting in sightings if _wants_look(sighting)]
        found = [sighting for sighting in sightings if not _wants_look(sighting)]
        found += await self._look_again(lost, round_)
        if round_ is not None:
            found = await with_half_open(found, self._prober, round_)
            silent = [sighting for sighting in found if is_lost(sighting)]
            found = [sighting for sighting in found if not is_lost(sighting)]
            found += await with_ways_back(silent, sightings, self._agent, self._fleet)
        return await self._walked(found)

    async def _look_again(self, lost: list[Sighting], round_: Round | None) -> list[Sighting]:
        """Send the unanswered probes once more while whoever may captures."""
        requests = self._capture(self._agent)
        leaving = self._capture(self._agent, answers=True, outgoing=True)
        hosts = {sighting.task.source.name: sighting.task.source for sighting in lost}
        arriving = {
            name: self._capture(self._fleet.agent(host), answers=True)
            for name, host in hosts.items()
        }
        running = [requests, leaving, *arriving.values()]
        if not any(capture.allowed for capture in running):
            return lost
        for capture in (requests, leaving):
            await capture.start(lost)
        for name, capture in arriving.items():
            await capture.start([s for s in lost if s.task.source.name == name])
        again = await asyncio.gather(*(self._prober.again(sighting) for sighting in lost))
        await asyncio.gather(*(capture.stop() for capture in running))
        found = []
        for first, second in zip(lost, again, strict=True):
            looked = second if round_ is None else await with_witnesses(second, round_)
            arrived = arriving[first.task.source.name]
            found += [_joined(first, one, (requests, leaving, arrived)) for one in looked]
        return found

    def _capture(
        self, agent: AgentMethods, *, answers: bool = False, outgoing: bool = False
    ) -> Capture:
        return Capture(agent, self._fleet, self._origins, answers=answers, outgoing=outgoing)

    async def _walked(self, sightings: list[Sighting]) -> list[Sighting]:
        """Walk once for each source, address and protocol, on the first silent port."""
        keys = {_walk_key(one): one for one in reversed(sightings) if _wants_walk(one)}
        traces = await asyncio.gather(*(self._walk(sighting) for sighting in keys.values()))
        by_key = dict(zip(keys, traces, strict=True))
        return [
            replace(one, trace=by_key.get(_walk_key(one))) if _wants_walk(one) else one
            for one in sightings
        ]

    async def _walk(self, sighting: Sighting) -> Trace | None:
        task = sighting.task
        agent = self._fleet.agent(task.source)
        if agent.walks_left <= 0:
            return None
        agent.walks_left -= 1
        await agent.quiet()
        try:
            walked = await agent.walk(
                task.protocol,
                task.address,
                sighting.ports[0][0] if sighting.ports else 0,
                source_address(task),
                MAX_TTL,
                sighting.part.template,
            )
        except AgentError:
            # The source is gone; what it saw before stands, only its walk is missing.
            return None
        return _trace(walked, task.address)


def _trace(walked: Walked, address: str) -> Trace | None:
    if walked.failure is not None:
        return None
    hops = [hop for _, hop in walked.hops if hop is not None and hop != address]
    return Trace(hops[-1] if hops else None, len(hops), walked.reached)


def is_lost(sighting: Sighting) -> bool:
    """Whether the source got no word, and the packet is not known to have stayed at home."""
    outcome = sighting.outcome
    if outcome is None or outcome.left_host is False or _proven(sighting):
        return False
    return sighting.silent or (outcome.failure is None and outcome.answer is None)


def _wants_look(sighting: Sighting) -> bool:
    """Silence, and every answer that our own listener should have given and did not."""
    if is_lost(sighting):
        return True
    outcome = sighting.outcome
    if outcome is None or sighting.listener.state != "ours" or _arrived(sighting):
        return False
    refused = outcome.failure == "refused" and outcome.icmp is None and not outcome.forged
    return refused or outcome.answer in ("silent", "closed", "reset", "other")


def _wants_walk(sighting: Sighting) -> bool:
    """A walk shows how far requests come; where they arrived there is nothing to ask."""
    return is_lost(sighting) and not _arrived(sighting) and sighting.task.protocol in WALKED


def _arrived(sighting: Sighting) -> bool:
    return sighting.witness is not None and sighting.witness.socket


def _proven(sighting: Sighting) -> bool:
    """One-way packets need no answer: the listener's word is all there is to have."""
    outcome = sighting.outcome
    one_way = outcome is not None and outcome.failure is None
    return one_way and _arrived(sighting)


def _walk_key(sighting: Sighting) -> tuple[str, str, str]:
    return (sighting.task.source.name, sighting.task.address, sighting.task.protocol)


def _joined(
    first: Sighting, second: Sighting, captures: tuple[Capture, Capture, Capture]
) -> Sighting:
    """The later look, with the packets of both counted, and what the captures saw of it."""
    outcome = second.outcome
    if outcome is None or first.outcome is None:
        return replace(first, ports=second.ports)
    counted = replace(
        outcome,
        attempts=outcome.attempts + first.outcome.attempts,
        packets=_sum(outcome.packets, first.outcome.packets),
        forged=first.outcome.forged if outcome.failure == first.outcome.failure else None,
    )
    second = replace(second, outcome=counted, limited=first.limited)
    if not _wants_look(second):
        return second
    request, left, arrived = (capture.saw(second) for capture in captures)
    witness = replace(
        second.witness or Witness(),
        capture=request.seen,
        answer_left=left.seen,
        answer_arrived=arrived.seen,
        seen_from=request.sender,
        maybe_from=request.stranger,
        devices=request.devices,
    )
    return replace(second, witness=witness)


def _sum(left: int | None, right: int | None) -> int | None:
    return left + right if left is not None and right is not None else left or right
