"""Captures of one more look: requests and answers at the destination, answers at the sources."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from netprobe.agent.wire.answers import Captured
from netprobe.agent.wire.orders import CaptureOrder
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Witness
from netprobe.model.ports import Ports
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.translated_sources import Origins, holds


@dataclass(frozen=True, slots=True)
class Saw:
    """Whether a capture saw a probe; ``sender`` where it came from another address than it was
    sent from. ``seen`` None: no capture ran, or it overflowed, or what it saw came from a
    ``stranger``, which may be the source's translated address. ``devices``: where it was seen.
    """

    seen: bool | None
    sender: str | None = None
    devices: tuple[str, ...] = ()
    stranger: str | None = None


NOTHING = Saw(None)

# Protocol and address; None: any address.
Spot = tuple[str, str | None]


class Capture:
    """What one agent captures; without permission it sees nothing and says so.

    One capture a protocol and address: what comes to one address of a host says nothing of another
    that is asked on the same port.
    """

    def __init__(
        self,
        agent: AgentMethods,
        fleet: Fleet,
        origins: Origins,
        *,
        answers: bool = False,
        outgoing: bool = False,
    ) -> None:
        self._agent = agent
        self._fleet = fleet
        self._origins = origins
        self._answers = answers
        self._outgoing = outgoing
        self._numbers: dict[Spot, int] = {}
        self._seen: dict[Spot, Captured] = {}

    @property
    def allowed(self) -> bool:
        """Whether the agent has the right to."""
        return self._agent.may_capture

    async def start(self, about: list[Observation]) -> None:
        """Capture what these observations' probes would be seen as. Never raises."""
        if not self.allowed:
            return
        for spot, ports in _group_by_spot(about).items():
            number = next(self._fleet.order_ids)
            try:
                capturing = await self._agent.capture(self._make_order(number, spot, ports))
            except AgentError:
                return  # the agent is gone: then the capture sees nothing that we could know of
            if capturing.failure is None:
                self._numbers[spot] = number

    async def stop(self) -> None:
        """End it, and keep what it saw. Never raises."""
        for spot, number in self._numbers.items():
            with contextlib.suppress(AgentError):
                self._seen[spot] = await self._agent.stop_capture(number)

    def saw(self, seen: Observation) -> Saw:
        """Tell whether it saw a probe of this seen (or its answer)."""
        captured = self._seen.get(_spot_of(seen))
        if captured is None:
            return NOTHING
        unsure = captured.truncated or self._may_overlook(seen)
        own = self._origins.own(seen.task.source)
        stranger = None
        for asker, sport, port, _, order, devices in captured.items:
            if seen.ports and not holds(seen.ports, port):
                continue
            is_of = order == seen.order or self._origins.is_of(seen.task, port, asker)
            if is_of and not self._is_others(seen, sport):
                return Saw(True, None if asker in own else asker, tuple(devices))
            unsure = unsure or bool(is_of)
            stranger = asker if is_of is None and order is None else stranger
        return Saw(None if unsure or stranger else False, stranger=stranger)

    def _is_others(self, seen: Observation, sport: int) -> bool:
        """Tell whether a datagram that came to the source answers another program of that host."""
        arrives = self._answers and not self._outgoing
        known = seen.task.protocol == "udp" and seen.sport is not None
        return arrives and known and sport != seen.sport

    def _may_overlook(self, seen: Observation) -> bool:
        """Whether the answer may be an ICMP error, which a capture of datagrams does not see."""
        told = seen.listener.state in ("ours", "live")
        return self._answers and seen.task.protocol == "udp" and not told

    def _make_order(self, number: int, spot: Spot, ports: Ports) -> CaptureOrder:
        protocol, address = spot
        name, _, ip_protocol = protocol.partition("/")
        return CaptureOrder(
            number,
            name,
            list(ports),
            int(ip_protocol) if ip_protocol else None,
            [] if address is None else [address],
            self._answers,
            self._outgoing,
        )


def _group_by_spot(about: Iterable[Observation]) -> dict[Spot, Ports]:
    wanted: dict[Spot, list[tuple[int, int]]] = {}
    for seen in about:
        wanted.setdefault(_spot_of(seen), []).extend(seen.ports)
    return {spot: port_sets.normalise(ranges) for spot, ranges in wanted.items()}


def _spot_of(seen: Observation) -> Spot:
    # Where the host lacks the probed address, packets arrive at one that we do not know.
    translated = seen.listener.nat
    return (seen.task.protocol, None if translated else seen.task.address)


class Captures(Check):
    """One more look at silence while both ends capture; it is also a further try."""

    name = "captures"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """Silence, and every answer that our own listener should have given and did not."""
        return _wants_look(seen)

    def group(self, seen: Observation) -> Hashable:
        """All at once: a capture is one for each protocol and address."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Send the unanswered probes once more while every agent captures that may."""
        requests = Capture(scene.agent, scene.fleet, scene.origins)
        leaving = Capture(scene.agent, scene.fleet, scene.origins, answers=True, outgoing=True)
        hosts = {seen.task.source.name: seen.task.source for seen in group}
        arriving = {
            name: Capture(scene.fleet.agent(host), scene.fleet, scene.origins, answers=True)
            for name, host in hosts.items()
        }
        running = [requests, leaving, *arriving.values()]
        if not any(capture.allowed for capture in running):
            return group
        for capture in (requests, leaving):
            await capture.start(group)
        for name, capture in arriving.items():
            await capture.start([seen for seen in group if seen.task.source.name == name])
        again = await asyncio.gather(*(scene.prober.again(seen) for seen in group))
        await asyncio.gather(*(capture.stop() for capture in running))
        found = []
        for first, second in zip(group, again, strict=True):
            looked = second
            if scene.round is not None:
                looked = await with_witnesses(second, scene.round)
            arrived = arriving[first.task.source.name]
            found += [_join_looks(first, one, (requests, leaving, arrived)) for one in looked]
        return found


def is_lost(seen: Observation) -> bool:
    """Tell whether the source got no word, and nobody knows yet where the packet stayed."""
    outcome = seen.outcome
    if (
        outcome is None
        or seen.conclusion is not None
        or outcome.left_host is False
        or _is_proven(seen)
    ):
        return False
    return seen.silent or (outcome.failure is None and outcome.answer is None)


def _wants_look(seen: Observation) -> bool:
    """Silence, and every answer that our own listener should have given and did not."""
    if is_lost(seen):
        return True
    outcome = seen.outcome
    if outcome is None or seen.listener.state != "ours" or _has_arrived(seen):
        return False
    refused = outcome.failure == "refused" and outcome.icmp is None and not outcome.forged
    return refused or outcome.answer in ("silent", "closed", "reset", "other")


def _has_arrived(seen: Observation) -> bool:
    return seen.witness is not None and seen.witness.socket


def _is_proven(seen: Observation) -> bool:
    """Tell whether a one-way packet arrived: the listener's word is all there is to have."""
    outcome = seen.outcome
    one_way = outcome is not None and outcome.failure is None
    return one_way and _has_arrived(seen)


def _join_looks(
    first: Observation, second: Observation, captures: tuple[Capture, Capture, Capture]
) -> Observation:
    """Give the later look, with the packets of both counted, and what the captures saw of it."""
    outcome = second.outcome
    if outcome is None or first.outcome is None:
        return replace(first, ports=second.ports)
    counted = replace(
        outcome,
        attempts=outcome.attempts + first.outcome.attempts,
        packets=_add_counts(outcome.packets, first.outcome.packets),
        forged=first.outcome.forged if outcome.failure == first.outcome.failure else None,
    )
    second = replace(
        second, outcome=counted, limited=first.limited, conclusion=first.conclusion,
        warnings=first.warnings,
    )  # fmt: skip
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


def _add_counts(left: int | None, right: int | None) -> int | None:
    return left + right if left is not None and right is not None else left or right
