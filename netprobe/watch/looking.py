"""One look of a watch: a request over the fleet, and what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.judge.verdict import Rules
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from netprobe.model.run import RunInfo, Sink
from netprobe.plan.asked import keep_asked
from netprobe.plan.choices import PlanPart
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.settings import ProbeSettings, QuickSettings
from netprobe.session import RunRequest, Session
from netprobe.watch.clock import LabelClock, Stillness
from netprobe.watch.ways import Ways

# How long a quick look waits for an answer, unless the user says it.
QUICK_S = 0.5


class LookEnd(Struct, frozen=True):
    """When a look began and ended. ``whole``: this process ran all the time."""

    begun: float
    decided: float
    whole: bool
    info: RunInfo


class ListedResults:
    """A sink that keeps results as they come."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def add(self, result: Result) -> None:
        """Keep one result."""
        self.results.append(result)


class Looker:
    """Carries out looks over a fleet, one after the other."""

    def __init__(
        self, settings: ProbeSettings, rules: Rules, clock: LabelClock, stillness: Stillness
    ) -> None:
        self.rules = rules
        self._settings = settings
        self._quick = QuickSettings(
            timeout_s=settings.timeout_s or QUICK_S,
            looks=1,
            rate=settings.rate,
            forks=settings.forks,
            listen=settings.listen,
            live=settings.live,
            record=False,
            ready_s=0.0,
        )
        self.ways = Ways(clock.now)
        self._clock = clock
        self._stillness = stillness

    async def look(
        self, plan: Plan, fleet: Fleet, sink: Sink, kept: Sequence[Result] = ()
    ) -> LookEnd:
        """Look at the whole plan, but for what is kept; the sink gets that first."""
        self.ways.begin_round()
        for one in kept:
            sink.add(one)
        settings = replace(self._settings, ready_s=0.0)
        part = PlanPart(plan, plan)
        request = RunRequest(
            part=part, settings=settings, rules=self.rules, kept=lambda: kept, heard=self.ways.hear
        )
        end = await self._carry_out(request, fleet, [sink, self.ways])
        if end.whole:
            self.ways.end_round(end.begun, end.decided)
        return end

    async def look_quickly(
        self, plan: Plan, fleet: Fleet, asked: Iterable[Result]
    ) -> tuple[LookEnd, list[Result]]:
        """Ask these flows again: once each, and without a look at where they end."""
        sink = ListedResults()
        part = keep_asked(plan, asked, "the watch")
        request = RunRequest(part=PlanPart(part, part), settings=self._quick, rules=self.rules)
        return await self._carry_out(request, fleet, [sink]), sink.results

    async def _carry_out(self, request: RunRequest, fleet: Fleet, sinks: Sequence[Sink]) -> LookEnd:
        still = self._stillness.note()
        begun = self._clock.now()
        info = await Session().run(request, fleet, sinks)
        decided = self._clock.now()
        return LookEnd(begun, decided, still == self._stillness.note(), info)
