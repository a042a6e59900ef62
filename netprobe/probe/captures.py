"""Captures of one more look: requests and answers at the destination, answers at the sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.fleet import Agent, Fleet
from netprobe.probe.sighting import Sighting, own_addresses


@dataclass(frozen=True, slots=True)
class Saw:
    """Whether a capture saw a probe; ``sender`` where it came from another address than it was
    sent from. ``seen`` None: no capture ran, or it overflowed."""

    seen: bool | None
    sender: str | None = None


NOTHING = Saw(None)


class Capture:
    """What one agent captures, by protocol; without permission it sees nothing and says so."""

    def __init__(self, agent: Agent, fleet: Fleet, **options: Any) -> None:
        self._agent = agent
        self._fleet = fleet
        self._options = options
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, dict[str, Any]] = {}

    @property
    def allowed(self) -> bool:
        """Whether the agent has the right to."""
        return self._agent.alive and bool(self._agent.hello.get("net_raw"))

    async def start(self, about: list[Sighting]) -> None:
        """Capture what these sightings' probes would be seen as. Never raises."""
        if not self.allowed:
            return
        for protocol, ports in _by_protocol(about).items():
            number = next(self._fleet.order_ids)
            reply = await self._ask(self._order(number, protocol, ports, about))
            if reply is not None and reply.get("failure") is None:
                self._numbers[protocol] = number

    async def stop(self) -> None:
        """End it, and keep what it saw. Never raises."""
        for protocol, number in self._numbers.items():
            reply = await self._ask({"t": "captured", "id": number})
            if reply is not None:
                self._seen[protocol] = reply

    def saw(self, sighting: Sighting) -> Saw:
        """Whether it saw a probe of this sighting (or its answer)."""
        captured = self._seen.get(sighting.task.protocol)
        if captured is None:
            return NOTHING
        own = own_addresses(sighting.task.source)
        for asker, _, port, _, order in captured["items"]:
            if sighting.ports and not _holds(sighting.ports, port):
                continue
            if order == sighting.order or asker in own:
                return Saw(True, None if asker in own else asker)
        return NOTHING if captured.get("truncated") else Saw(False)

    def _order(
        self, number: int, protocol: str, ports: Ports, about: list[Sighting]
    ) -> dict[str, Any]:
        name, _, ip_protocol = protocol.partition("/")
        # Where the host lacks the probed address, packets arrive at one that we do not know.
        translated = any(sighting.listener.nat for sighting in about)
        addresses = {sighting.task.address for sighting in about}
        return {
            "t": "capture", "id": number, "proto": name,
            "number": int(ip_protocol) if ip_protocol else None,
            "addrs": [] if translated else sorted(addresses),
            "ports": [list(entry) for entry in ports],
            **self._options,
        }  # fmt: skip

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return await self._agent.request(message)
        except AgentError:
            # The agent is gone: then the capture saw nothing that we could know of.
            return None


def _by_protocol(about: Iterable[Sighting]) -> dict[str, Ports]:
    wanted: dict[str, list[tuple[int, int]]] = {}
    for sighting in about:
        wanted.setdefault(sighting.task.protocol, []).extend(sighting.ports)
    return {protocol: port_sets.normalise(ranges) for protocol, ranges in wanted.items()}


def _holds(ports: Ports, port: int) -> bool:
    return any(first <= port <= last for first, last in ports)
