"""Where silent flows end: the TTL walk and the capture at the destination, only for what failed."""

from __future__ import annotations

from netprobe.probe.fleet import Agent, Fleet
from netprobe.probe.listening import Round
from netprobe.probe.settings import ProbeSettings
from netprobe.probe.sighting import Prober, Sighting


class Localiser:
    """Looks again at silence, from both ends."""

    def __init__(self, fleet: Fleet, agent: Agent, settings: ProbeSettings, prober: Prober) -> None:
        self._fleet = fleet
        self._agent = agent
        self._settings = settings
        self._prober = prober

    async def without_agent(self, sightings: list[Sighting]) -> list[Sighting]:
        """Nobody is at the other end."""
        return sightings

    async def with_agent(self, sightings: list[Sighting], round_: Round) -> list[Sighting]:
        """An agent is at the other end."""
        return sightings
