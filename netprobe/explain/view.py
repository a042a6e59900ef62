"""Holds everything known of one address of the explained flow, for the steps to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from netprobe.explain.extra_checks import Further
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.result import HostReport, Result, Verdict
from netprobe.model.story import Story, TrailStatus

N = TypeVar("N")
NO_RECORDER = "no packet recorder ran (--no-recorder)"
BY_VERDICT: dict[Verdict, TrailStatus] = {
    "pass": "ok", "blocked": "bad", "exposed": "bad", "inconclusive": "doubt",
    "not-tested": "not-possible",
}  # fmt: skip


class View(Struct, frozen=True):
    """One address: its evidence with the trail, the judge's result, and the looks beside it.

    ``mtu`` is the path's evidence with its result; None where nobody measured. ``recorded``: packet
    recorders were wanted.
    """

    evidence: Evidence
    result: Result
    further: Further
    reports: Mapping[str, HostReport]
    mtu: tuple[Evidence, Result] | None = None
    recorded: bool = True

    @property
    def source(self) -> Host:
        """Where the flow starts."""
        return self.evidence.flow.source

    @property
    def destination(self) -> Host:
        """Where it goes."""
        return self.evidence.flow.destination

    @property
    def address(self) -> str:
        """The address that was probed."""
        return self.evidence.address

    @property
    def protocol(self) -> str:
        """``tcp``, ``udp``, ``icmp`` or ``ipproto/4``."""
        return self.evidence.flow.block.protocol

    @property
    def port(self) -> int | None:
        """The flow's port, if its protocol has ports."""
        ports = self.evidence.flow.block.ports
        return ports[0][0] if ports else None

    @property
    def wire(self) -> str:
        """``tcp/7000``, ``icmp``."""
        return self.protocol if self.port is None else f"{self.protocol}/{self.port}"

    @property
    def story(self) -> Story:
        """Where its packets were seen; nowhere, where nobody looked."""
        return self.evidence.story or Story()

    def has_agent(self, host: Host) -> bool:
        """Tell whether an agent ran there to the end."""
        report = self.reports.get(host.name)
        return report is not None and report.state == "agent"

    def captures(self, host: Host) -> bool:
        """Tell whether the agent there has the right to capture packets."""
        report = self.reports.get(host.name)
        return report is not None and bool(report.facts.net_raw)

    def no_agent(self, host: Host) -> str:
        """That nobody could look on a host; the first step says why."""
        report = self.reports.get(host.name)
        declared = report is None or report.state == "none"
        return f"{host.name} has no agent{' (vantage: none)' if declared else ', see above'}"

    def unasked(self) -> str:
        """Why nothing was asked from the source."""
        if not self.has_agent(self.source):
            return self.no_agent(self.source)
        return "there is no address to ask about"

    def note(self, kind: type[N]) -> N | None:
        """Find the last note of this kind; None where nobody looked."""
        found = self.evidence.notes(kind)
        return found[-1] if found else None
