"""Where silent flows end: a capture at the destination and a TTL walk, only for what failed.

Both look at silence a third time, so what was only lost before may be answered now.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Trace, Witness
from netprobe.model.ports import Ports
from netprobe.probe.fleet import Agent, Fleet
from netprobe.probe.listening import Round
from netprobe.probe.settings import MAX_TTL, ProbeSettings
from netprobe.probe.sighting import Prober, Sighting, own_addresses, source_address
from netprobe.probe.wayback import with_routes_back
from netprobe.probe.witnesses import with_witnesses

WALKED = ("tcp", "udp", "icmp")

# Protocol and address of one capture; None: any address.
Spot = tuple[str, str | None]


class Localiser:
    """Looks again at silence, from both ends."""

    def __init__(self, fleet: Fleet, agent: Agent, settings: ProbeSettings, prober: Prober) -> None:
        self._fleet = fleet
        self._agent = agent
        self._settings = settings
        self._prober = prober

    async def without_agent(self, sightings: list[Sighting]) -> list[Sighting]:
        """Nobody is at the other end: the walk is all there is."""
        return await self._walked(sightings)

    async def with_agent(self, sightings: list[Sighting], round_: Round) -> list[Sighting]:
        """An agent is at the other end: with the right to, it captures what arrives."""
        if self._agent.link is not None and self._agent.link.hello.get("net_raw"):
            sightings = await self._captured(sightings, round_)
        sightings = await with_routes_back(sightings, self._agent, self._fleet)
        return await self._walked(sightings)

    async def _captured(self, sightings: list[Sighting], round_: Round) -> list[Sighting]:
        """Send the silent probes once more while the destination captures."""
        lost = [sighting for sighting in sightings if _wants_capture(sighting)]
        if not lost:
            return sightings
        captures = await self._start(lost)
        again = await asyncio.gather(*(self._prober.again(sighting) for sighting in lost))
        seen = await self._stop(captures)
        found = [sighting for sighting in sightings if not _wants_capture(sighting)]
        for sighting, second in zip(lost, again, strict=True):
            looked = await with_witnesses(second, round_)
            found += [_joined(sighting, one, seen) for one in looked]
        return found

    async def _start(self, lost: list[Sighting]) -> dict[Spot, int]:
        """One capture a protocol and address; gives the capture ids of those that run.

        What arrives at one address of a host says nothing of another with the same port.
        """
        wanted: dict[Spot, list[tuple[int, int]]] = {}
        for sighting in lost:
            wanted.setdefault(_spot(sighting), []).extend(sighting.ports)
        captures = {}
        for (protocol, address), ranges in wanted.items():
            number = next(self._fleet.order_ids)
            name, _, ip_protocol = protocol.partition("/")
            reply = await self._agent.request({
                "t": "capture", "id": number, "proto": name,
                "addrs": [] if address is None else [address],
                "number": int(ip_protocol) if ip_protocol else None,
                "ports": [list(entry) for entry in port_sets.normalise(ranges)],
            })  # fmt: skip
            if reply.get("failure") is None:
                captures[protocol, address] = number
        return captures

    async def _stop(self, captures: dict[Spot, int]) -> dict[Spot, dict[str, Any]]:
        return {
            spot: await self._agent.request({"t": "captured", "id": number})
            for spot, number in captures.items()
        }

    async def _walked(self, sightings: list[Sighting]) -> list[Sighting]:
        """Walk once for each source, address and protocol, on the first silent port."""
        keys = {
            _walk_key(sighting): sighting for sighting in reversed(sightings) if _lost(sighting)
        }
        traces = await asyncio.gather(*(self._walk(sighting) for sighting in keys.values()))
        by_key = dict(zip(keys, traces, strict=True))
        return [
            replace(sighting, trace=by_key.get(_walk_key(sighting)))
            if _lost(sighting)
            else sighting
            for sighting in sightings
        ]

    async def _walk(self, sighting: Sighting) -> Trace | None:
        task = sighting.task
        if task.protocol not in WALKED:
            return None
        message = {
            "t": "walk", "proto": task.protocol, "dst": task.address,
            "port": sighting.ports[0][0] if sighting.ports else 0,
            "src": source_address(task), "max_ttl": MAX_TTL, "template": sighting.part.template,
        }  # fmt: skip
        try:
            reply = await self._fleet.agent(task.source).request(message)
        except AgentError:
            # The source is gone; what it saw before stands, only its walk is missing.
            return None
        return _trace(reply, task.address)


def _trace(reply: dict[str, Any], address: str) -> Trace | None:
    if reply.get("failure") is not None:
        return None
    hops = [hop for _, hop in reply["hops"] if hop is not None and hop != address]
    return Trace(hops[-1] if hops else None, len(hops), bool(reply.get("reached")))


def _lost(sighting: Sighting) -> bool:
    """Whether the source got no word, and the packet is not known to have stayed at home."""
    outcome = sighting.outcome
    if outcome is None or outcome.left_host is False or _arrived(sighting):
        return False
    return sighting.silent or (outcome.failure is None and outcome.answer is None)


def _wants_capture(sighting: Sighting) -> bool:
    """Silence, and every answer that our own listener should have given and did not."""
    if _lost(sighting):
        return True
    outcome = sighting.outcome
    if outcome is None or sighting.listener.state != "ours" or _arrived(sighting):
        return False
    refused = outcome.failure == "refused" and outcome.icmp is None and not outcome.forged
    return refused or outcome.answer in ("silent", "closed", "reset", "other")


def _arrived(sighting: Sighting) -> bool:
    return sighting.witness is not None and sighting.witness.socket


def _walk_key(sighting: Sighting) -> tuple[str, str, str]:
    return (sighting.task.source.name, sighting.task.address, sighting.task.protocol)


def _spot(sighting: Sighting) -> Spot:
    # Where the host lacks the probed address, packets arrive at one that we do not know.
    translated = sighting.listener.nat
    return (sighting.task.protocol, None if translated else sighting.task.address)


def _joined(first: Sighting, second: Sighting, seen: dict[Spot, dict[str, Any]]) -> Sighting:
    """The later look with the packets of both counted, and what the capture saw of it."""
    outcome = second.outcome
    if outcome is None or first.outcome is None:
        return replace(first, ports=second.ports)
    counted = replace(
        outcome,
        attempts=outcome.attempts + first.outcome.attempts,
        packets=_sum(outcome.packets, first.outcome.packets),
        forged=first.outcome.forged if outcome.failure == first.outcome.failure else None,
    )
    captured = seen.get(_spot(first))
    if captured is None or _arrived(second) or not _wants_capture(second):
        return replace(second, outcome=counted)
    saw, sender = _saw(second, captured)
    witness = replace(second.witness or Witness(), capture=saw, seen_from=sender)
    return replace(second, outcome=counted, witness=witness)


def _sum(left: int | None, right: int | None) -> int | None:
    return left + right if left is not None and right is not None else left or right


def _saw(sighting: Sighting, captured: dict[str, Any]) -> tuple[bool | None, str | None]:
    """Whether the capture saw this probe, and from which address where that is a strange one."""
    own = own_addresses(sighting.task.source)
    for sender, _, port, _, order in captured["items"]:
        if sighting.ports and not _holds(sighting.ports, port):
            continue
        if order == sighting.order or sender in own:
            return True, None if sender in own else sender
    if captured.get("truncated"):
        return None, None
    return False, None


def _holds(ports: Ports, port: int) -> bool:
    return any(first <= port <= last for first, last in ports)
