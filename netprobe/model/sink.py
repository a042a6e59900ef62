"""How a running stage tells its caller about results and progress."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from netprobe.model.packets import FlowPackets
from netprobe.model.result import HostReport, Result


class Sink(Protocol):
    """Takes results. They come in any order; each is final, and none comes twice."""

    def add(self, result: Result) -> None:
        """Take one final result."""


@runtime_checkable
class PacketSink(Protocol):
    """A sink that also takes the packets of flows that did not pass, before their results."""

    def keep(self, found: FlowPackets) -> None:
        """Take the packets that agents kept of some flows."""


class Events(Protocol):
    """Takes progress for a person at a terminal, as opposed to results."""

    def host(self, report: HostReport) -> None:
        """Tell that a host's agent started, could not be started or was lost."""

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        """Tell how many flows (ports) are final of how many, and what it waits for."""


class Silent:
    """Takes events, and tells nobody."""

    def host(self, report: HostReport) -> None:
        """Forget a host's report."""

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        """Forget how far it is."""
