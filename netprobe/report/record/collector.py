"""The results of a run as reports read them: counted at once, kept in plan order, memory flat."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from netprobe.model.evidence import UNDIALLED
from netprobe.model.firewall import FirewallRule
from netprobe.model.matrix import Weight
from netprobe.model.reasons import find_reason
from netprobe.model.result import VERDICTS, Finding, Result, Summary
from netprobe.model.run import RunInfo
from netprobe.report.page.flow_groups import EndAddress, Survey
from netprobe.report.page.wording import EXCUSES, excuse_of
from netprobe.report.record.changes import Changes
from netprobe.report.record.merge import PlannedPorts, merge_neighbours
from netprobe.report.record.spool import Spool, place


class Warned(Struct):
    """How many flows carry one warning, and the first of them."""

    first: Result
    flows: int = 0


@dataclass(slots=True)
class Collector:
    """A sink that keeps everything that reports need.

    ``ranges`` are those of the plan: neighbouring ports are merged within them, nowhere without.
    Passes and the rest lie apart, because the terminal report and the findings read only the rest.
    ``warned`` are all warnings, ``warned_beside`` those that no flow's
    own sentence says already.
    ``refused``: the passes that rest on a refusal, by destination and address. ``stopped``: the
    required flows that fail, whether or not a baseline has them too, by what they stop.
    ``waiting``: flows that nobody looked at because what stops their row comes first.
    ``measured``: the ways of which samples were taken, whatever they show.
    """

    ranges: PlannedPorts = field(default_factory=dict)
    warned: dict[str, Warned] = field(default_factory=dict)
    warned_beside: dict[str, Warned] = field(default_factory=dict)
    refused: dict[EndAddress, Survey] = field(default_factory=dict)
    stopped: Counter[Weight | None] = field(default_factory=Counter)
    waiting: int = 0
    measured: list[Result] = field(default_factory=list)
    _passes: Spool = field(default_factory=Spool)
    _others: Spool = field(default_factory=Spool)
    _counts: Counter[str] = field(default_factory=Counter)
    _deciding: Counter[str] = field(default_factory=Counter)
    _extra: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Count and keep one result."""
        flows = result.port_count
        self._counts[result.verdict] += flows
        if result.decides:
            self._deciding[result.verdict] += flows
        if result.verdict == "pass":
            # With ``expect: denied`` a refusal is the wanted answer, not a weak proof.
            if result.proof == "refusal" and result.expect == "allowed":
                self._extra["refusals"] += flows
                end = (result.destination, result.address)
                self.refused.setdefault(end, Survey(result)).add(result)
            self._passes.add(result)
        else:
            self._count_failure(result)
            self._others.add(result)
        if result.quality is not None:
            self.measured.append(result)
        for text in result.warnings:
            self.warned.setdefault(text, Warned(result)).flows += flows
            if not _is_said(text, result):
                self.warned_beside.setdefault(text, Warned(result)).flows += flows

    def _count_failure(self, result: Result) -> None:
        flows = result.port_count
        excuse = excuse_of(result)
        if excuse is not None:
            self._extra[excuse] += flows
        is_failure = result.verdict in ("blocked", "exposed")
        if is_failure and not (result.optional or result.is_excused):
            self.stopped[result.stops] += flows
        if find_reason(result.reason).waits:
            self.waiting += flows

    def results(self) -> Iterator[Result]:
        """Give every result in plan order, neighbouring ports with one fate merged."""
        everything = heapq.merge(self._passes, self._others, key=place)
        return merge_neighbours(everything, self.ranges)

    def failures(self) -> Iterator[Result]:
        """Give every result that is not ``pass``, in plan order, neighbours merged."""
        return merge_neighbours(self._others, self.ranges)

    def passes(self) -> Iterable[Result]:
        """Give every pass in plan order, ports of a range as they came."""
        return self._passes

    def summary(self, skipped: int) -> Summary:
        """Give the counts, in flows; ``skipped`` is in requirements, as the plan lists them."""
        return Summary(
            counts={verdict: self._counts[verdict] for verdict in VERDICTS},
            skipped=skipped,
            refusals=self._extra["refusals"],
            deciding={verdict: self._deciding[verdict] for verdict in VERDICTS},
            **{excuse: self._extra[excuse] for excuse in EXCUSES},
        )

    def close(self) -> None:
        """Give the disk space back."""
        self._passes.close()
        self._others.close()


def _is_said(warning: str, result: Result) -> bool:
    """Tell whether what became of a flow says its warning already.

    Records of 0.1.0 warn of what a firewall of the destination stops, too.
    """
    stopped_there = result.where == ("destination",)
    return warning in result.because or (stopped_there and warning.endswith(UNDIALLED))


class Report(Struct, frozen=True):
    """One run, ready to be printed in any format; ``changes`` since the run that it retries.

    ``rules`` are the firewall rules that would mend its findings; None: nobody has made them.
    ``title``: what the page is of, in the words of whoever asked for it.
    """

    info: RunInfo
    collector: Collector
    findings: tuple[Finding, ...] = ()
    changes: Changes | None = None
    rules: tuple[FirewallRule, ...] | None = None
    title: str = ""

    @property
    def deciding_findings(self) -> list[Finding]:
        """The findings that count for the exit status."""
        return [one for one in self.findings if any(member.decides for member in one.members)]

    @property
    def summary(self) -> Summary:
        """The counts of the run."""
        summary = self.collector.summary(len(self.info.skipped))
        for group in self.info.coverage.unprobed if self.info.coverage else ():
            summary.counts[group.verdict] += group.flows
            # Who accepts a failure accepts no flow that it stands for.
            is_open = summary.accepted and group.by_verdict != "pass"
            if group.decides:
                summary.deciding["not-tested" if is_open else group.verdict] += group.flows
        return summary


def count_missing(report: Report) -> int:
    """Count the planned flows that have no result."""
    return max(0, report.info.planned_flows - sum(report.summary.counts.values()))


def collect(results: Iterable[Result], ranges: PlannedPorts | None = None) -> Collector:
    """Give a collector that holds these results."""
    collector = Collector(ranges or {})
    for result in results:
        collector.add(result)
    return collector
