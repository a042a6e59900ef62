"""One run as reports see it: when, with what, on which hosts, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from netprobe.model.accepted import CheckedAcceptance
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.kept_finding import KeptFinding
from netprobe.model.plan import Plan, PlannedMatrix, PlannedRequirement, Skipped
from netprobe.model.result import HostReport, Result
from netprobe.model.story import FlowPackets


class RunInfo(Struct, frozen=True, kw_only=True):
    """Everything about a run that is not a result.

    ``started_at`` is UTC, ISO 8601 with ``Z``. ``complete``: every planned flow has its result, and
    nobody stopped the run. ``planned_flows`` counts ports, not pairs, and nothing that a rehearsal
    skipped. ``notes`` are for the reader.
    ``phases``: the seconds of each phase (``starts``, ``probes`` ...), together the run's time.
    ``selection`` names the filters and how many flows of the plan they left, else None.
    ``some_ports``: they may have left out ports between hosts that they kept.
    ``earlier`` is one sentence on what was taken over from an earlier run, else None.
    ``sample`` is one sentence with the coverage where only a sample was probed, else None.
    ``coverage`` is how a part of the plan covers the rest, else None.
    ``trust`` is one sentence where hosts could have written each other's results, else None.
    ``baseline`` is one sentence on what is new since another run, else None. ``accepted`` are the
    entries of the files of accepted flows, held against this run.
    ``live``: everything was supposed to run; None in files of an older netprobe.
    ``names_set`` counts the names that hosts look up; None in files of an older netprobe.
    ``quality_samples``: how many each measured way gets; None where ways get different numbers.
    ``findings`` are those that a file keeps, with their numbers; None where it keeps none, as those
    of an older netprobe. Such files have no ``requirements`` either, and their hosts no roles.
    """

    started_at: str = ""
    elapsed_s: float = 0.0
    complete: bool = False
    phases: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    planned_flows: int = 0
    selection: str | None = None
    some_ports: bool = False
    earlier: str | None = None
    sample: str | None = None
    coverage: Coverage | None = None
    trust: str | None = None
    baseline: str | None = None
    accepted: tuple[CheckedAcceptance, ...] = ()
    matrices: tuple[PlannedMatrix, ...] = ()
    hosts: tuple[HostReport, ...] = ()
    requirements: tuple[PlannedRequirement, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    live: bool | None = None
    names_set: int | None = None
    quality_samples: int | None = None
    findings: tuple[KeptFinding, ...] | None = None


def info_before(plan: Plan, started_at: str, *, live: bool | None = None) -> RunInfo:
    """Give what is known of a run before its first agent has started."""
    hosts = [
        HostReport(
            name=host.name,
            state="unknown",
            roles=plan.roles.get(host.name, ()),
            addresses=host.probing_addresses,
            zone=host.zone,
            named=any(address.family is None for address in host.addresses),
        )
        for host in plan.hosts().values()
    ]
    return RunInfo(
        started_at=started_at,
        planned_flows=plan.coverage.required if plan.coverage else plan.flow_count(),
        coverage=plan.coverage,
        selection=plan.selection,
        some_ports=plan.some_ports,
        matrices=plan.matrices,
        hosts=tuple(sorted(hosts, key=lambda host: host.name)),
        requirements=plan.requirements,
        notes=plan.notes,
        skipped=plan.skipped,
        live=live,
        names_set=plan.count_names(),
        quality_samples=plan.find_samples(),
    )


class RunIndex:
    """Looks up what a run knows of hosts and requirements, for reports that group results.

    What an older file does not tell is None, or the host's own name instead of a role.
    """

    def __init__(self, info: RunInfo) -> None:
        self.hosts = {host.name: host for host in info.hosts}
        self._requirements = {(one.matrix, one.id, one.protocol): one for one in info.requirements}

    def requirement(self, result: Result | Unprobed) -> PlannedRequirement | None:
        """Give the requirement that the result is of, or the flows without one."""
        return self._requirements.get((result.matrix, result.requirement, result.protocol))

    def requirements(self, result: Result | Unprobed) -> list[PlannedRequirement]:
        """Give the requirements of all names of the result, first that of the written one."""
        keys = ((*name, result.protocol) for name in result.names)
        return [self._requirements[key] for key in keys if key in self._requirements]

    def roles(self, host: str) -> tuple[str, ...]:
        """Give the roles of a host: its own first, then what they imply."""
        return self.hosts[host].roles if host in self.hosts else ()

    def zone(self, host: str) -> str | None:
        """Give the zone that the inventory says of a host."""
        return self.hosts[host].zone if host in self.hosts else None

    def source_role(self, result: Result) -> str:
        """Give the role that makes the requirement concern the source."""
        requirement = self.requirement(result)
        return self._first_role(result.source, requirement.from_ if requirement else ())

    def destination_role(self, result: Result) -> str:
        """Give the role that makes the requirement concern the destination."""
        requirement = self.requirement(result)
        return self._first_role(result.destination, requirement.to if requirement else ())

    def _first_role(self, host: str, wanted: Sequence[str]) -> str:
        """The host's own roles say more of it than those that they imply."""
        return next((role for role in self.roles(host) if role in wanted), host)


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
