"""The stages, in order: load, plan, probe, judge; the caller reports."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from netprobe.errors import RequestError
from netprobe.judge.verdict import Rules, judge
from netprobe.load.request import load_request
from netprobe.model.evidence import Evidence
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.ports import count as count_ports
from netprobe.model.result import HostReport
from netprobe.model.run import RunInfo
from netprobe.model.sink import Events, Sink
from netprobe.plan import expand
from netprobe.plan.sample import sample
from netprobe.plan.select import Selection, select
from netprobe.probe import preflight as checkup
from netprobe.probe.collect import collect
from netprobe.probe.flows.work import STOPPED, Key, Want
from netprobe.probe.settings import LOOKS, ProbeSettings
from netprobe.vantage.launch import Launcher

MAX_RESULTS = 5_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. ``inventories`` empty: found as the design says (section 3)."""

    matrices: tuple[str, ...]
    inventories: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)


@dataclass(frozen=True, slots=True)
class Probing:
    """How to probe; see ``probe.settings`` for what the numbers mean."""

    timeout_s: float | None = None
    retries: int | None = None
    rate: int | None = None
    forks: int = 50
    listen: bool = True
    strict: bool = False
    live: bool = False
    sample: int | None = None
    max_results: int = MAX_RESULTS
    become_password: str | None = field(default=None, repr=False)

    def settings(self) -> ProbeSettings:
        """The probe stage's own settings."""
        looks = LOOKS if self.retries is None else self.retries + 1
        # Where everything is supposed to run, a listener of ours would stand in for a dead service.
        listen = self.listen and not self.live
        return ProbeSettings(self.timeout_s, looks, self.rate, self.forks, listen)


def make_plan(request: Request) -> Plan:
    """Load and plan. Raises RequestError with every problem of every file."""
    chosen, inventory, notes = load_request(request.matrices, request.inventories, request.sets)
    plan = expand.make_plan(chosen, inventory, date.today(), notes)
    return select(plan, request.selection, chosen, inventory)


def run(
    plan: Plan,
    probing: Probing,
    sink: Sink,
    events: Events,
    done: Mapping[Key, Ports] | None = None,
) -> RunInfo:
    """Probe a plan; results go to the sink as they become final. SIGINT and SIGTERM end it early.

    ``done`` are ports of which an earlier run has final results; they are not probed again.
    """
    words = None
    if probing.sample is not None:
        plan, words = sample(plan, probing.sample)
    _refuse_too_much(plan, probing)
    started = datetime.now(UTC)
    begin = time.monotonic()
    running = _Running(plan, probing, sink, events, done or {})
    stopped = asyncio.run(until_signal(running.go()))
    return RunInfo(
        started_at=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        elapsed_s=round(time.monotonic() - begin, 3),
        complete=not stopped,
        matrices=plan.matrices,
        hosts=running.hosts(),
        skipped=plan.skipped,
        notes=plan.notes,
        planned_flows=plan.flow_count(),
        interrupted=stopped,
        sample=words,
        selection=plan.selection,
    )


def check_hosts(plan: Plan, probing: Probing, events: Events) -> tuple[HostReport, ...]:
    """Start and stop every agent of the plan, and say what each can do. Nothing is probed."""
    found: list[HostReport] = []

    async def go() -> None:
        async with Launcher(become_password=probing.become_password) as launcher:
            found.extend(await checkup.check_hosts(plan, launcher, events.host))

    if asyncio.run(until_signal(go())):
        raise KeyboardInterrupt
    return tuple(found)


def _refuse_too_much(plan: Plan, probing: Probing) -> None:
    """Results are at least one a pair; ports of a range share one while they share their fate."""
    pairs = sum(block.pair_count() * max(1, len(block.ports)) for block in plan.blocks)
    if pairs > probing.max_results:
        raise RequestError(
            f"the plan has {pairs:,} results, more than {probing.max_results:,}: choose a part "
            "(--limit, --from, --to, --only), take a sample (--sample N), or raise --max-results"
        )


class _Running:
    """One run: evidence in, results out, progress told."""

    def __init__(
        self,
        plan: Plan,
        probing: Probing,
        sink: Sink,
        events: Events,
        kept: Mapping[Key, Ports],
    ) -> None:
        self._kept = kept
        self._plan = plan
        self._probing = probing
        self._sink = sink
        self._events = events
        self._rules = Rules(probing.strict, probing.live)
        self._reports: dict[str, HostReport] = {}
        self._done = sum(count_ports(ports) or 1 for ports in kept.values())
        self._total = plan.flow_count()

    async def go(self) -> None:
        """Probe everything."""
        async with Launcher(become_password=self._probing.become_password) as launcher:
            settings = self._probing.settings()
            await collect(self._plan, settings, launcher, self._emit, self._tell, self._kept)

    def hosts(self) -> tuple[HostReport, ...]:
        """What each host's agent could do, by name."""
        return tuple(self._reports[name] for name in sorted(self._reports))

    def _emit(self, want: Want, found: list[Evidence]) -> None:
        results = [result for one in found for result in judge(one, want.order, self._rules)]
        for result in sorted(results, key=lambda result: (result.address, result.port or 0)):
            self._sink.add(result)
        if any(one.untested == STOPPED for one in found):
            return
        self._done += count_ports(want.flow.block.ports) or 1
        self._events.progress(self._done, self._total, f"to {want.flow.destination.name}")

    def _tell(self, report: HostReport) -> None:
        self._reports[report.name] = report
        self._events.host(report)


async def until_signal(work: Coroutine[None, None, None]) -> bool:
    """Run the work; the first SIGINT or SIGTERM ends it in order, the second at once.

    Gives whether it was ended by a signal.
    """
    task = asyncio.ensure_future(work)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if stopped:
            raise KeyboardInterrupt
        stopped = True
        task.cancel()

    with _signals(asyncio.get_running_loop(), stop):
        try:
            await task
        except asyncio.CancelledError:
            if not stopped:
                raise
    return stopped


@contextmanager
def _signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    names = (signal.SIGINT, signal.SIGTERM)
    for name in names:
        loop.add_signal_handler(name, stop)
    try:
        yield
    finally:
        for name in names:
            loop.remove_signal_handler(name)
