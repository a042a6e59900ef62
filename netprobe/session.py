"""One run over a fleet of agents: results go to their sinks as soon as they are final.

A program opens a fleet (``open_fleet``), and then runs as many requests over it as it wants, one
after the other. What reads options, opens files, prints and heeds signals is ``netprobe/cli``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.errors import FAULT, bug_words
from netprobe.judge.any_of import AnyOfGroups
from netprobe.judge.clocks_apart import ServerAnswer, judge_clocks
from netprobe.judge.of_hosts import judge_resolvers
from netprobe.judge.verdict import Rules, judge
from netprobe.model.coverage import Coverage
from netprobe.model.evidence import Evidence
from netprobe.model.plan import Flow, Plan, Skipped
from netprobe.model.ports import count as count_ports
from netprobe.model.result import Result
from netprobe.model.run import Events, PacketSink, RunInfo, Silent, Sink, info_before
from netprobe.plan.choices import PlanPart
from netprobe.plan.cover.completion import Completion
from netprobe.plan.cover.conclusion import conclude
from netprobe.plan.of_hosts import list_clocks, list_lookups
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.phases import Phases
from netprobe.probe.collect import collect
from netprobe.probe.flows.work import STOPPED, Want
from netprobe.probe.rehearsals.rehearsal import RowArrivals
from netprobe.probe.resolvers import look_at_resolvers
from netprobe.probe.settings import ProbeSettings
from netprobe.report.record.earlier import done_ports
from netprobe.report.record.open_passes import PortsFound

# Says of a result that it is accepted, or known of an earlier run; cuts it where its ports differ.
Mark = Callable[[Result], Iterable[Result]]


class RunRequest(Struct, frozen=True, kw_only=True):
    """What a run is asked for, in values: what to probe and how, and how to judge it.

    ``marks`` are put on every result in this order. ``kept`` gives the results of an earlier run
    that hold for this one: their ports are not probed again, and no sink gets them. Those of
    ``open_passes`` hold unless the run finds out something else of their ports; the sinks get them
    at the end. ``heard`` gets the evidence of each flow, for what no result tells.
    """

    part: PlanPart
    settings: ProbeSettings = field(default_factory=ProbeSettings)
    rules: Rules = field(default_factory=Rules)
    marks: tuple[Mark, ...] = ()
    kept: Callable[[], Iterable[Result]] = tuple
    open_passes: Callable[[], Iterable[Result]] = tuple
    heard: Callable[[Flow, Sequence[Evidence]], None] = lambda _flow, _found: None

    def mark(self, results: Iterable[Result]) -> Iterable[Result]:
        """Put the marks on results."""
        for mark in self.marks:
            results = chain.from_iterable(map(mark, results))
        return results


class Session:
    """Carries out requests, one after the other, and tells ``events`` how far each is.

    ``info`` is the last run as it ended, also where it was cancelled.
    """

    def __init__(self, events: Events | None = None) -> None:
        self.info = RunInfo()
        self._events = events or Silent()

    async def run(self, request: RunRequest, fleet: Fleet, sinks: Sequence[Sink]) -> RunInfo:
        """Probe over the agents of an open fleet, judge, and give every sink each final result.

        One of these may be a ``PacketSink``; without one agents keep no packets. The fleet has the
        hosts of the part, maybe more. Cancelled, it gives the sinks a result for every flow that is
        left, not tested; the fleet is of no further use then.
        """
        run = _Run(request, fleet, sinks, self._events)
        try:
            await run.probe()
        except asyncio.CancelledError:
            run.settle_rest()
            self.info = replace(run.conclude(), complete=False, interrupted=True)
            raise
        self.info = run.conclude()
        return self.info


class _Run:
    """One run: evidence in, results out to the sinks as they become final, progress told."""

    def __init__(
        self, request: RunRequest, fleet: Fleet, sinks: Sequence[Sink], events: Events
    ) -> None:
        part = request.part
        self._request = request
        keep = next((one.keep for one in sinks if isinstance(one, PacketSink)), None)
        self._settings = replace(request.settings, keep=keep)
        self._fleet = fleet
        self._sinks = sinks
        self._events = events
        self._completion = None if part.cover is None else Completion(part.cover)
        self._done_flows = self._known_flows = 0
        self._total_flows = part.plan.flow_count()
        self._started = datetime.now(UTC)
        self._begun_s = time.monotonic()
        self._work = ""
        self._clocks: list[ServerAnswer] = []
        self._ports_found = PortsFound()
        self._skipped: list[Skipped] = []
        self._skipped_flows = 0
        self._arrivals = RowArrivals()
        self._arrivals.expect(part.plan)
        self._any_of = AnyOfGroups(part.plan, to_the_end=self._completion is not None)

    async def probe(self) -> None:
        """Probe everything; each result is told once."""
        earlier = chain(self._request.kept(), self._request.open_passes())
        kept = done_ports(map(self._note_kept, earlier))
        self._done_flows = sum(count_ports(ports) or 1 for ports in kept.values())
        self._known_flows = self._done_flows
        await collect(
            self._request.part.plan, self._settings, self._fleet, self.emit, kept,
            self._watch_phases, self._next_plan, self._note_skipped, self._arrivals,
        )  # fmt: skip
        await self._judge_hosts()
        self.settle_rest()

    def settle_rest(self) -> None:
        """Tell what has become of the passes that were open, and what was held back."""
        for one in self._request.open_passes():
            self._tell_results(self._ports_found.settle(one))
        self._tell_settled(self._any_of.finish())

    async def _judge_hosts(self) -> None:
        """Tell the faults of hosts that are those of no flow."""
        plan, fleet = self._request.part.plan, self._fleet
        clocks = list_clocks(plan)
        agents = [fleet.agent(one.flow.source) for one in clocks.values()]
        hosts_s = {agent.host.name: agent.skew_s for agent in agents if agent.tells_skew}
        self._tell_results(judge_clocks(clocks, hosts_s, self._clocks))
        looked = await look_at_resolvers(list_lookups(plan), fleet)
        self._tell_results(judge_resolvers(looked))

    def conclude(self) -> RunInfo:
        """Give all that is known of the run beside its results."""
        plan = self._request.part.plan
        started_at = self._started.strftime("%Y-%m-%dT%H:%M:%SZ")
        before = info_before(plan, started_at, live=self._request.rules.live)
        reports = self._fleet.reports
        return replace(
            before,
            elapsed_s=round(time.monotonic() - self._begun_s, 3),
            phases=self._fleet.phases.times_s(),
            complete=self._known_flows >= self._total_flows,
            hosts=tuple(
                replace(reports.get(one.name, one), named=one.named, roles=one.roles)
                for one in before.hosts
            ),
            sample=self._request.part.sample,
            coverage=self._conclude_coverage(),
            skipped=(*before.skipped, *self._skipped),
            planned_flows=before.planned_flows - self._skipped_flows,
        )

    def emit(self, want: Want, found: list[Evidence]) -> None:
        """Judge the evidence of a flow, and give its results to the sinks."""
        self._request.heard(want.flow, found)
        results = [result for one in found for result in self._judge_one(want, one)]
        for result in sorted(results, key=lambda result: (result.address, result.port or 0)):
            self._known_flows += result.port_count
            if self._completion is not None:
                self._completion.add(result)
            self._ports_found.note(result)
            self._tell_results((result,))
        self._clocks += (
            ServerAnswer(one.flow.source.name, one.flow.destination.name, one.outcome.clock)
            for one in found
            if one.outcome is not None and one.outcome.clock is not None
        )
        probed = [one for one in found if one.untested is None or one.untested[0] != STOPPED[0]]
        self._done_flows += sum(count_ports(one.ports) or 1 for one in probed)
        self._tell_progress()

    def _tell_results(self, results: Iterable[Result]) -> None:
        self._tell_settled(self._any_of.settle(results))

    def _tell_settled(self, results: Iterable[Result]) -> None:
        for marked in self._request.mark(results):
            for sink in self._sinks:
                sink.add(marked)

    def _note_kept(self, result: Result) -> Result:
        self._arrivals.note_kept(result)
        self._any_of.note(result)
        if self._completion is not None:
            self._completion.add(result)
        return result

    def _conclude_coverage(self) -> Coverage | None:
        if self._completion is None:
            return None
        return replace(conclude(self._completion), strict=self._request.rules.strict)

    def _next_plan(self) -> Plan | None:
        further = None if self._completion is None else self._completion.next_plan()
        if further is not None:
            self._total_flows += further.flow_count()
        return further

    def _note_skipped(self, what: Skipped, ports: int) -> None:
        """Note what a rehearsal leaves out on purpose: it has no result, and none is missing."""
        self._skipped.append(what)
        self._skipped_flows += ports
        self._done_flows += ports
        self._known_flows += ports

    def _watch_phases(self, phases: Phases) -> None:
        self._work = phases.tell_work()
        self._tell_progress()

    def _tell_progress(self) -> None:
        # A name may have several addresses, whose flows nobody could count before.
        done = min(self._done_flows, self._total_flows)
        self._events.progress(done, self._total_flows, self._work)

    def _judge_one(self, want: Want, evidence: Evidence) -> list[Result]:
        """Judge; evidence that no table was made for is no result, and ends no run."""
        rules = self._request.rules
        try:
            return judge(evidence, want.order, rules)
        except Exception as error:
            words = f"what was seen cannot be judged ({bug_words(error)})"
            broken = replace(evidence, outcome=None, mtu=None, untested=(FAULT, words))
            return judge(broken, want.order, rules)
