"""The stages, in order: load, plan, probe, judge; the caller reports."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from netprobe.errors import FAULT, RequestError, bug_words
from netprobe.judge.holder import say_held
from netprobe.judge.verdict import Rules, judge
from netprobe.load.manifest.manifests import NO_MANIFESTS, GivenManifests
from netprobe.load.request import load_request
from netprobe.model.evidence import Evidence
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.ports import count as count_ports
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo, info_before
from netprobe.model.sink import Events, Sink
from netprobe.plan import expand
from netprobe.plan.sample import sample
from netprobe.plan.select import Selection, select
from netprobe.probe import preflight
from netprobe.probe.agents.phases import Phases
from netprobe.probe.collect import collect
from netprobe.probe.flows.work import STOPPED, Key, Want
from netprobe.probe.settings import ProbeSettings
from netprobe.signals import run_to_end, run_until_signal
from netprobe.vantage.launch import Launcher


def make_plan(  # noqa: PLR0913  # all that a user may name
    matrices: Sequence[str],
    inventories: Sequence[str],
    sets: Sequence[str],
    selection: Selection,
    role_options: Sequence[str] = (),
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
    plan = expand.make_plan(chosen, inventory, date.today(), notes)
    return select(plan, selection, chosen, inventory)


def choose_part(plan: Plan, sample_size: int | None, max_results: int) -> tuple[Plan, str | None]:
    """The part of the plan to probe, and the words for a sample. Raises RequestError for too much.

    Results are at least one a pair; ports of a range share one while they share their fate.
    """
    part, words = (plan, None) if sample_size is None else sample(plan, sample_size)
    results = sum(block.pair_count() * max(1, len(block.ports)) for block in part.blocks)
    if results > max_results:
        raise RequestError(
            f"the plan has {results:,} results, more than {max_results:,}: choose a part "
            "(--limit, --from, --to, --only), take a sample (--sample N), or raise --max-results"
        )
    return part, words


class PlanRun:
    """One run of a plan: evidence in, results out to the sink as they become final, progress told.

    ``done`` are ports of which an earlier run has final results; they are not probed again.
    """

    def __init__(
        self, plan: Plan, rules: Rules, sink: Sink, events: Events, done: Mapping[Key, Ports]
    ) -> None:
        self._plan = plan
        self._rules = rules
        self._sink = sink
        self._events = events
        self._done = done
        self._reports: dict[str, HostReport] = {}
        self._done_flows = sum(count_ports(ports) or 1 for ports in done.values())
        self._known_flows = self._done_flows
        self._total_flows = plan.flow_count()
        self._phases: dict[str, float] = {}
        self._waits_for = ""

    def probe(self, settings: ProbeSettings, launcher: Launcher) -> RunInfo:
        """Probe everything. SIGINT, SIGTERM and SIGHUP end it early."""
        started = datetime.now(UTC)
        begin = time.monotonic()
        stopped = run_until_signal(self._collect_all(settings, launcher))
        before = info_before(self._plan, started.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return replace(
            before,
            elapsed_s=round(time.monotonic() - begin, 3),
            phases=self._phases,
            complete=not stopped and self._known_flows >= self._total_flows,
            hosts=tuple(self._reports.get(host.name, host) for host in before.hosts),
            interrupted=stopped,
        )

    async def _collect_all(self, settings: ProbeSettings, launcher: Launcher) -> None:
        async with launcher:
            await collect(
                self._plan, settings, launcher, self._emit_all, self._tell_host, self._done,
                self._watch_phases,
            )  # fmt: skip

    def _emit_all(self, want: Want, found: list[Evidence]) -> None:
        results = [
            result for one in want.with_untold(found) for result in self._judge_one(want, one)
        ]
        for result in sorted(results, key=lambda result: (result.address, result.port or 0)):
            self._known_flows += result.port_count
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

    async def start_and_stop() -> tuple[HostReport, ...]:
        async with launcher:
            return await preflight.check_hosts(plan, launcher, events.host, say_held)

    return tuple(_add_roles(report, plan) for report in run_to_end(start_and_stop()))


def _add_roles(report: HostReport, plan: Plan) -> HostReport:
    return replace(report, roles=plan.roles.get(report.name, ()))
