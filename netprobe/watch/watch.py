"""Rounds over a fleet that stays, suspects between them, and pauses."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import NetprobeError
from netprobe.history.ledger import HistoryFile
from netprobe.judge.verdict import Rules
from netprobe.model.maintenance import MaintenanceWindow
from netprobe.model.outage import RunLook
from netprobe.model.plan import Plan
from netprobe.model.required import RequiredFlows, require_flows
from netprobe.model.result import Result
from netprobe.probe.agents.fleet import TellHost
from netprobe.probe.agents.live_fleet import LiveFleet, open_fleet
from netprobe.probe.collect import list_hosts
from netprobe.probe.settings import ProbeSettings
from netprobe.report.record.collector import Collector
from netprobe.report.record.merge import ranges_of
from netprobe.vantage.launch import Launcher
from netprobe.watch.blind import BlindHosts, blind_results, find_blind, find_dead, hide
from netprobe.watch.clock import LabelClock, Stillness
from netprobe.watch.flows import flows_of, is_bad, leave, pick
from netprobe.watch.held import HeldLedger, PortsHeld, find_held, without_listeners
from netprobe.watch.keeping import LookKeeper
from netprobe.watch.looking import LookEnd, Looker
from netprobe.watch.maintenance import Maintenance
from netprobe.watch.round import RoundSeen, look_of_results, settle
from netprobe.watch.suspects import Suspects, choose_controls, says_something

# Suspects are asked so often, and outages too, for so long; later they are asked less.
ASK_S: Final = 1.0
LONG_S: Final = 3.0
YOUNG_S: Final = 60.0
# So long a round waits for agents that start again; those that need longer are blind in it.
AGAIN_S: Final = 3.0


class WatchRequest(Struct, frozen=True, kw_only=True):
    """What a watch is asked for. ``load`` reads the plan and ``load_maintenance`` the windows, also
    later; both raise NetprobeError."""

    every_s: float
    settings: ProbeSettings
    rules: Rules
    load: Callable[[], Plan]
    load_maintenance: Callable[[], Sequence[MaintenanceWindow]]
    make_launcher: Callable[[], Launcher]
    tell_host: TellHost
    tell: Callable[[str], None]


class Watch:
    """A watch over one plan after another. ``seen``: gets each round's results."""

    def __init__(
        self,
        request: WatchRequest,
        ledger: HistoryFile,
        keeper: LookKeeper,
        seen: Callable[[RoundSeen], None] = lambda _: None,
    ) -> None:
        self._request = request
        self._ledger = ledger
        self._keeper = keeper
        self._seen = seen
        self._stillness = Stillness()
        clock = LabelClock(keeper.history.end)
        self._clock = clock
        self._looker = Looker(request.settings, request.rules, clock, self._stillness)
        self._held = HeldLedger(ledger.held())
        self._reload = asyncio.Event()
        self._reached: set[str] = set()
        self._maintenance = Maintenance(request.tell)
        # Flows that are outages, with the results that found them; and healthy ones beside them.
        self._open: list[Result] = []
        self._controls: list[Result] = []
        self._pause_s = ASK_S
        self._young_until = 0.0
        self._asked_at = 0.0
        self._took_s = 0.0
        self._served: tuple[Plan, PortsHeld, Plan] | None = None
        self._last: RunLook | None = None
        self._required: tuple[Plan, RequiredFlows] | None = None

    async def run(self, plan: Plan, windows: Sequence[MaintenanceWindow] = ()) -> None:
        """Watch until it is cancelled; ``windows``: the times of maintenance, as they are now."""
        self._maintenance.take(windows, _name_hosts(plan))
        ticking = asyncio.create_task(self._stillness.watch())
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload.set)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        fleets = AsyncExitStack()
        try:
            fleet = await self._open_fleet(fleets, plan)
            while True:
                plan = await self._watch_fleet(fleet, plan)
                before, fleets = fleets, AsyncExitStack()
                async with before:
                    fleet = await self._open_fleet(fleets, plan)
        finally:
            ticking.cancel()
            self._keeper.flush()
            await fleets.aclose()

    async def _open_fleet(self, fleets: AsyncExitStack, plan: Plan) -> LiveFleet:
        request = self._request
        opened = open_fleet(list_hosts(plan), request.make_launcher(), request.tell_host)
        fleet = await fleets.enter_async_context(opened)
        await fleet.settled()
        return fleet

    async def _watch_fleet(self, fleet: LiveFleet, plan: Plan) -> Plan:
        """Watch, and give the next plan where that has other hosts."""
        now = asyncio.get_running_loop().time
        due = now()
        while True:
            whole = await self._go_round(fleet, plan)
            due = max(due + self._request.every_s, now()) if whole else now()
            await self._wait_round(fleet, plan, due)
            if self._reload.is_set():
                self._reload.clear()
                before, plan = plan, self._load_again(plan)
                self._load_windows(plan)
                if list_hosts(plan) != list_hosts(before):
                    return plan

    def _load_again(self, plan: Plan) -> Plan:
        """Load the plan; what cannot be read leaves the old one."""
        try:
            plan = self._request.load()
        except NetprobeError as error:
            self._request.tell(f"the old inventory and matrices stay: {_word_first(error)}")
            return plan
        self._request.tell(f"read again: {plan.flow_count():,} flows of {len(plan.hosts())} hosts")
        return plan

    def _load_windows(self, plan: Plan) -> None:
        """Load the times of maintenance; what cannot be read leaves the old ones."""
        try:
            self._maintenance.take(self._request.load_maintenance(), _name_hosts(plan))
        except NetprobeError as error:
            self._request.tell(f"the old times of maintenance stay: {_word_first(error)}")

    async def _wait_round(self, fleet: LiveFleet, plan: Plan, due: float) -> None:
        """Ask open outages until the next round is due, or a signal comes."""
        now = asyncio.get_running_loop().time
        while (left := due - now()) > 0 and not self._reload.is_set():
            ask_at = self._asked_at + self._choose_pause(now())
            pause = min(left, max(0.0, ask_at - now())) if self._open else left
            with suppress(TimeoutError):
                await asyncio.wait_for(self._reload.wait(), pause)
                return
            if self._open and now() < due:
                await self._ask_open(fleet, self._serve_plan(plan))

    async def _find_blind(self, fleet: LiveFleet) -> BlindHosts:
        return {**await find_blind(fleet, self._reached), **self._find_maintained(fleet)}

    def _find_maintained(self, fleet: LiveFleet) -> BlindHosts:
        return self._maintenance.find({agent.host.name for agent in fleet.agents()})

    def _choose_pause(self, now: float) -> float:
        """Choose the pause before outages are asked again: it grows when the youngest is old."""
        if now < self._young_until:
            self._pause_s = ASK_S
        # What takes long, such as thousands of flows, is not asked without a pause.
        rest_s = 2 * self._took_s if self._took_s > LONG_S else 0.0
        return min(max(self._pause_s, rest_s), self._request.every_s)

    def _serve_plan(self, plan: Plan) -> Plan:
        """Give the plan without listeners at held ports.

        Where it is another one than before, the next round asks outages like all other flows.
        """
        held = self._held.left_alone()
        before = self._served
        if before is None or before[0] is not plan or before[1] != held:
            self._served = before = plan, held, without_listeners(plan, held)
            self._open = []
        return before[2]

    async def _ask_open(self, fleet: LiveFleet, plan: Plan) -> None:
        """Ask the flows that are outages whether they still are."""
        self._open = [one for one in hide(self._open, self._find_maintained(fleet)) if is_bad(one)]
        if not self._open:
            return
        begun = asyncio.get_running_loop().time()
        end, seen = await self._looker.look_quickly(plan, fleet, [*self._open, *self._controls])
        self._take_open(end, seen)
        self._took_s = asyncio.get_running_loop().time() - begun
        if begun >= self._young_until:
            self._pause_s = min(2 * self._pause_s, self._request.every_s)
        self._asked_at = begun

    def _take_open(self, end: LookEnd, seen: Sequence[Result]) -> None:
        if not (self._open and end.whole and says_something(seen, self._controls)):
            return
        now = list(pick(seen, flows_of(self._open)))
        passed = flows_of(one for one in now if one.verdict == "pass")
        make = partial(look_of_results, end, now)
        if not passed:
            self._keeper.hold(make)
            return
        self._open = list(leave(self._open, passed))
        self._keeper.keep(make())

    async def _go_round(self, fleet: LiveFleet, plan: Plan) -> bool:
        """Look at the whole plan; False where this process stood still, so that it was no look."""
        asked_at = self._clock.now()
        await self._ask_open(fleet, self._serve_plan(plan))
        fleet.start_again()
        await asyncio.gather(*(agent.settle(AGAIN_S) for agent in fleet.agents()))
        for place, ports in self._held.note(await find_held(plan, fleet)).items():
            with suppress(NetprobeError):  # this watch knows it anyhow
                self._ledger.keep_held(place, ports)
        served = self._serve_plan(plan)
        await self._looker.ways.look_up(plan, fleet)
        blind = await self._find_blind(fleet)
        # What nobody can look at is open in the history, and a suspect when it is seen again.
        self._open = [one for one in hide(self._open, blind) if is_bad(one)]
        kept = [*self._open, *blind_results(served, blind, self._request.rules)]
        ranges = ranges_of(plan)
        with closing(Collector(ranges)) as seen, closing(Collector(ranges)) as settled:
            end = await self._looker.look(served, fleet, seen, kept)
            if not end.whole:
                self._request.tell("this process stood still: its look is thrown away")
                return False
            suspects, blind = await self._ask_suspects(fleet, served, seen)
            ends = {end for one in suspects.hard for end in (one.source, one.destination)}
            await self._looker.ways.look_up(plan, fleet, ends)
            known = settle(seen, suspects, blind, settled)
            self._keep_round(RoundSeen(plan, end, known, blind, {}), suspects, asked_at)
        return True

    async def _ask_suspects(
        self, fleet: LiveFleet, plan: Plan, seen: Collector
    ) -> tuple[Suspects, BlindHosts]:
        """Ask new failures every second until each is an outage or good; gives whom it is blind
        for by then."""
        now = asyncio.get_running_loop().time
        blind = await self._find_blind(fleet)
        failures = filter(is_bad, hide(seen.failures(), blind))
        suspects = Suspects(leave(failures, flows_of(self._open)))
        asked = [*suspects.waiting, *self._open]
        self._controls = list(choose_controls(seen.passes(), asked)) if asked else []
        while suspects.waiting:
            begun = now()
            asked = [*suspects.waiting, *self._open, *self._controls]
            end, again = await self._looker.look_quickly(plan, fleet, asked)
            self._take_open(end, again)
            told = end.whole and says_something(again, self._controls)
            suspects.note(again if told else ())
            await asyncio.sleep(max(0.0, begun + ASK_S - now()) if suspects.waiting else 0.0)
        ends = {end for one in suspects.hard for end in (one.source, one.destination)}
        dead = await find_dead(fleet, ends, self._reached)
        return suspects, {**blind, **dead, **self._find_maintained(fleet)}

    def _keep_round(self, seen: RoundSeen, suspects: Suspects, asked_at: float) -> None:
        """Keep the look. Open outages are a part of it only where new ones may join them."""
        hard = [one for one in hide(suspects.hard, seen.blind) if is_bad(one)]
        uncounted = flows_of([*suspects.undecided(), *([] if hard else self._open)])
        seen = RoundSeen(seen.plan, seen.end, seen.results, seen.blind, uncounted)
        look = seen.make_look(asked_at if hard and self._open else seen.end.begun)
        marks = self._looker.ways.take_marks()
        look = replace(look, required=self._require_flows(seen.plan))
        last = self._last
        if last is not None and self._is_same(look):
            # What is one object costs nothing to keep in mind.
            look = replace(last, begun=look.begun, decided=look.decided, marks=marks)
            run = None
        else:
            look = replace(look, marks=marks)
            run = seen.make_record()
        if hard:
            self._young_until = asyncio.get_running_loop().time() + YOUNG_S
            self._open += hard
        self._seen(seen)
        self._keeper.keep(look, run)
        self._last = look

    def _require_flows(self, plan: Plan) -> RequiredFlows:
        if self._required is None or self._required[0] is not plan:
            self._required = plan, require_flows(plan)
        return self._required[1]

    def _is_same(self, look: RunLook) -> bool:
        """Whether it saw what the last round saw, so that one report holds for both."""
        last = self._last
        return last is not None and _list_seen(look) == _list_seen(last)


def _list_seen(look: RunLook) -> tuple[object, ...]:
    return look.findings, look.blind, look.unasked, look.asked, look.required


def _name_hosts(plan: Plan) -> set[str]:
    return {host.name for host in list_hosts(plan)}


def _word_first(error: NetprobeError) -> str:
    """A file may have many problems; a watch prints a line."""
    return str(error).partition("\n")[0]
