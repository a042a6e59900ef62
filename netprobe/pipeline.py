"""The stages, in order: load, plan, probe, judge; the caller reports."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from netprobe.errors import FAULT, bug_words
from netprobe.judge.holder import say_held
from netprobe.judge.verdict import Rules, judge
from netprobe.load.manifest.manifests import NO_MANIFESTS, GivenManifests
from netprobe.load.request import load_request
from netprobe.model.coverage import Coverage
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.ports import count as count_ports
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo, info_before
from netprobe.model.sink import Events, Sink
from netprobe.plan import expand
from netprobe.plan.choices import CoverChoice
from netprobe.plan.cover.completion import Completion
from netprobe.plan.cover.conclusion import conclude
from netprobe.plan.cover.cover import with_flows
from netprobe.plan.cover.zones import zone_by_groups
from netprobe.plan.sample import sample
from netprobe.plan.select import Selection, select
from netprobe.probe import preflight
from netprobe.probe.agents.fleet import Fleet, Tell
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.agents.phases import Phases
from netprobe.probe.collect import collect, list_hosts
from netprobe.probe.flows.work import STOPPED, Key, Want
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.probe.settings import ProbeSettings
from netprobe.signals import MakeLoop, run_to_end, run_until_signal
from netprobe.vantage.launch import Launcher

# A search for cycles visits everything that a run works on: begun after Python's own 700 new
# objects it takes half of the coordinator's time.
GARBAGE_OBJECTS = 100_000

# Makes the fleet of a run: its hosts, and who is told of each.
MakeFleet = Callable[[Sequence[Host], Tell], AbstractAsyncContextManager[Fleet]]


def make_plan(  # noqa: PLR0913  # all that a user may name
    matrices: Sequence[str],
    inventories: Sequence[str],
    sets: Sequence[str],
    selection: Selection,
    role_options: Sequence[str] = (),
    zone_groups: Sequence[str] = (),
    *,
    manifests: GivenManifests = NO_MANIFESTS,
    probing: bool = False,
) -> Plan:
    """Load and plan; no inventories: found as docs/design.md says (section 3).

    ``probing``: the plan will be sent, so that no address may be one that ``init`` wrote.
    Raises RequestError with every problem of every file.
    """
    chosen, inventory, notes = load_request(
        matrices, inventories, sets, role_options, manifests=manifests, probing=probing
    )
    inventory = zone_by_groups(inventory, zone_groups)
    plan = expand.make_plan(chosen, inventory, date.today(), notes)
    return select(plan, selection, chosen, inventory)


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The plan to probe, and the plan that reports are of.

    ``sample``: the words for a sample. ``completion`` follows a plan that covers a larger one.
    """

    plan: Plan
    whole: Plan
    sample: str | None = None
    completion: Completion | None = None


def choose_part(
    plan: Plan,
    choice: CoverChoice,
    sample_size: int | None = None,
    earlier: Iterable[Result] | None = None,
) -> PlanPart:
    """Choose what of the plan to probe.

    ``earlier``: results of an earlier run that a covering plan holds as well.
    """
    if sample_size is not None:
        part, words = sample(plan, sample_size)
        return PlanPart(part, plan, words)
    covering = choice.cover(plan)
    if covering is None:
        return PlanPart(plan, plan)
    covering = with_flows(covering, earlier or ())
    return PlanPart(covering.plan, covering.plan, completion=Completion(covering))


class PlanRun:
    """One run of a plan: evidence in, results out to the sink as they become final, progress told.

    ``done`` are ports of which an earlier run has final results; they are not probed again.
    """

    def __init__(
        self, part: PlanPart, rules: Rules, sink: Sink, events: Events, done: Mapping[Key, Ports]
    ) -> None:
        self._plan = part.plan
        self._completion = part.completion
        self._rules = rules
        self._sink = sink
        self._events = events
        self._done = done
        self._reports: dict[str, HostReport] = {}
        self._done_flows = sum(count_ports(ports) or 1 for ports in done.values())
        self._known_flows = self._done_flows
        self._total_flows = part.plan.flow_count()
        self._phases: dict[str, float] = {}
        self._waits_for = ""

    def probe(self, settings: ProbeSettings, launcher: Launcher) -> RunInfo:
        """Probe everything. SIGINT, SIGTERM and SIGHUP end it early."""

        def open_live(hosts: Sequence[Host], tell: Tell) -> AbstractAsyncContextManager[Fleet]:
            return open_fleet(hosts, launcher, tell)

        return self._run_work(self._collect_all(settings, open_live), None)

    def replay(self, settings: ProbeSettings, make_fleet: MakeFleet) -> RunInfo:
        """Do the same with agents that answer at once: no time is waited for."""
        return self._run_work(self._collect_all(settings, make_fleet), JumpingLoop)

    def _run_work(self, work: Coroutine[None, None, None], make_loop: MakeLoop | None) -> RunInfo:
        started = datetime.now(UTC)
        begin = time.monotonic()
        # What the plan holds stays; flows in work are many, and hardly ever in cycles.
        gc.freeze()
        gc.set_threshold(GARBAGE_OBJECTS)
        stopped = run_until_signal(work, make_loop)
        before = info_before(self._plan, started.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return replace(
            before,
            elapsed_s=round(time.monotonic() - begin, 3),
            phases=self._phases,
            complete=not stopped and self._known_flows >= self._total_flows,
            hosts=tuple(
                replace(self._reports.get(host.name, host), named=host.named)
                for host in before.hosts
            ),
            interrupted=stopped,
            coverage=self._conclude_coverage(),
        )

    def _conclude_coverage(self) -> Coverage | None:
        if self._completion is None:
            return None
        return replace(conclude(self._completion), strict=self._rules.strict)

    def _next_plan(self) -> Plan | None:
        further = None if self._completion is None else self._completion.next_plan()
        if further is not None:
            self._total_flows += further.flow_count()
        return further

    async def _collect_all(self, settings: ProbeSettings, make_fleet: MakeFleet) -> None:
        async with make_fleet(list_hosts(self._plan), self._tell_host) as fleet:
            await collect(
                self._plan, settings, fleet, self._emit_all, self._done,
                self._watch_phases, self._next_plan,
            )  # fmt: skip

    def _emit_all(self, want: Want, found: list[Evidence]) -> None:
        results = [
            result for one in want.with_untold(found) for result in self._judge_one(want, one)
        ]
        for result in sorted(results, key=lambda result: (result.address, result.port or 0)):
            self._known_flows += result.port_count
            if self._completion is not None:
                self._completion.add(result)
            self._sink.add(result)
        probed = [one for one in found if one.untested != STOPPED]
        self._done_flows += sum(count_ports(one.ports) or 1 for one in probed)
        self._tell_progress()

    def _watch_phases(self, phases: Phases) -> None:
        self._phases = phases.times_s()
        self._waits_for = phases.waits_for()
        self._tell_progress()

    def _tell_progress(self) -> None:
        # A name may have several addresses, whose flows nobody could count before.
        done = min(self._done_flows, self._total_flows)
        self._events.progress(done, self._total_flows, self._waits_for)

    def _judge_one(self, want: Want, evidence: Evidence) -> list[Result]:
        """Judge; evidence that no table was made for is no result, and ends no run."""
        try:
            return judge(evidence, want.order, self._rules)
        except Exception as error:
            words = f"what was seen cannot be judged ({bug_words(error)})"
            return judge(
                replace(evidence, outcome=None, mtu=None, untested=(FAULT, words)),
                want.order,
                self._rules,
            )

    def _tell_host(self, report: HostReport) -> None:
        self._reports[report.name] = _add_roles(report, self._plan)
        self._events.host(report)


def check_hosts(plan: Plan, launcher: Launcher, events: Events) -> tuple[HostReport, ...]:
    """Start and stop every agent of the plan, and say what each can do. Nothing is probed."""
    work = preflight.check_hosts(plan, launcher, events.host, say_held)
    return tuple(_add_roles(report, plan) for report in run_to_end(work))


def _add_roles(report: HostReport, plan: Plan) -> HostReport:
    return replace(report, roles=plan.roles.get(report.name, ()))
