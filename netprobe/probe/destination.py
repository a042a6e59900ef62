"""Does all work at one destination: names, denied ports, rounds of listeners, checks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import ANSWERING, Evidence, facts_of
from netprobe.model.inventory import Host
from netprobe.model.plan import PATH_MTU
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks import DENIED_CHECKS, choose_checks
from netprobe.probe.checks.arrivals import is_heard, with_witnesses
from netprobe.probe.checks.check import Scene, run_checks
from netprobe.probe.checks.packets import fetch_packets
from netprobe.probe.checks.port_owners import check_holders, tasks_of, undecided
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.listeners import (
    CLOSED,
    LOST,
    UNKNOWN,
    Listeners,
    Origins,
    Round,
    Spot,
    look_at_denied,
    restrict,
    rounds,
    spots,
)
from netprobe.probe.flows.mtu_ladder import PathWidths
from netprobe.probe.flows.names import ResolvedNames, resolve_names
from netprobe.probe.flows.pauses import PatientProber
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.proxied import Proxied, ways
from netprobe.probe.flows.rationed import probe_tasks
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.room import gather_some
from netprobe.probe.flows.senders import find_own, find_senders
from netprobe.probe.flows.told_ports import interrupted, unprobed
from netprobe.probe.flows.vanishing import look_until_lost
from netprobe.probe.flows.work import (
    PlanPlace,
    Task,
    Want,
    is_left,
    join,
    list_left,
    pick_wants,
)
from netprobe.probe.pairs import probe_pair
from netprobe.probe.settings import ProbeSettings

Emit = Callable[[Want, list[Evidence]], None]

# How often ports are probed again whose holder changes from look to look.
HOLDER_LOOKS = 3
# Any route will do.
LOOPBACK = "127.0.0.1"


class Destination:
    """One destination's flows, from the first packet to the evidence of every want.

    ``origins``: where packets to it come from, which holds for later sources, too.
    """

    def __init__(
        self,
        host: Host,
        fleet: Fleet,
        settings: ProbeSettings,
        answered: Answered,
        alone: Alone,
        emit: Emit,
    ) -> None:
        self._host = host
        self._fleet = fleet
        self._agent: AgentMethods = fleet.agent(host)
        self._settings = settings
        self._answered = answered
        self._alone = alone
        self._emit = emit
        self._prober = PatientProber(fleet, settings, answered)
        self.origins = Origins(fleet.hosts(), fleet.own_addresses)
        self._proxied = Proxied(fleet)
        self._widths = PathWidths(fleet, self._prober.chance)
        self._checks, self._final_checks = choose_checks(places=settings.places)
        self._own: set[str] = set()
        self._senders: dict[tuple[str, str], str] = {}
        self._resolved = ResolvedNames({}, {}, {})
        self._round: Round | None = None
        self._is_recorded = False
        # The flows that ``run`` holds back, also by their ways, and what it observed of them.
        self._held: tuple[list[Want], list[Want], list[Observation]] = [], [], []

    async def run(self, wants: Sequence[Want], *, holds: bool = False) -> None:
        """Probe every want, then emit the evidence of each, once.

        Meanwhile ``emit_proven`` may emit a part of it. ``holds``: other sources come later, and
        whom a server answers is evidence about its silence; that waits for ``emit_held``.
        """
        by_way = [one for want in wants for one in ways(want)]
        self._resolved = await resolve_names(by_way, self._fleet)
        tasks = join(by_way, self._resolved.addresses)
        try:
            lock = self._alone.at(self._list_places(tasks))
            about = f"for another host with an address of {self._host.name}"
            async with self._fleet.phases.turn(lock, about):
                await self._agent_is_ready()
                scene = self._make_scene(None)
                # Ports that must not answer, before any listener of ours is open.
                denied = [task for task in tasks if task.denied]
                self.origins.expect(denied)
                held = await look_at_denied(denied, self._agent, self._fleet.order_ids)
                observations = await probe_tasks(denied, held, self._prober)
                observations = await run_checks(DENIED_CHECKS, observations, scene)
                observations += await self._probe_allowed(
                    [task for task in tasks if not task.denied]
                )
                observations = await run_checks(self._final_checks, observations, scene)
                self._own |= await find_own(observations, self._agent)
                self._senders = await find_senders(observations, self._fleet)
                if (keep := self._settings.keep) is not None:
                    await fetch_packets(observations, scene, keep)
        except asyncio.CancelledError:
            self._widths.close()
            finished = interrupted(tasks, self._prober.proven, self._prober.unchecked())
            self._emit_all(wants, by_way, finished)
            raise
        for seen in observations:
            if seen.outcome is not None and seen.task.via is None:
                source, address = seen.task.source.name, seen.task.address
                outcome, forged = seen.heard or seen.outcome, seen.reset.forged
                self._answered.note(source, address, outcome, seen.conclusion, forged)
                if outcome.answer == "service":
                    self._answered.note_served(seen.task)
        quiet = [one for one in observations if one.silent and one.task.probe in ANSWERING]
        later = {want.order for one in quiet if holds for want in one.task.wants}
        self._held = pick_wants(wants, later), by_way, observations if later else []
        now = {want.order for want in wants} - later
        self._emit_all(pick_wants(wants, now), by_way, observations)

    def emit_held(self) -> None:
        """Emit what ``run`` has held back, once."""
        held, self._held = self._held, ([], [], [])
        self._emit_all(*held)

    def _list_places(self, tasks: Iterable[Task]) -> set[str]:
        """Give the addresses of the tasks, and the machine behind them, as far as it is known.

        Every loopback address is its own: hosts that have nothing else do not meet.
        """
        addresses = {task.address for task in tasks if not task.is_name}
        hello = self._agent.hello
        if (
            hello is None
            or not hello.machine
            or all(ip_address(text).is_loopback for text in addresses)
        ):
            return addresses
        return addresses | {hello.machine}

    async def emit_proven(self) -> None:
        """Emit what is proven by now, as far as the listeners have seen it too.

        Where they are gone nothing is final: their flows are probed again.
        """
        fresh = list(self._prober.proven)
        looked = [one for one in fresh if one.order not in self._prober.asked_again]
        looked = [one for one in self._find_known_machines(looked) if self._is_wide_enough(one)]
        if self._round is not None:
            with contextlib.suppress(AgentError):
                looked = await with_witnesses(looked, self._round)
        heard = [one for one in looked if one.listener.state != "ours" or is_heard(one)]
        if not heard:
            return
        for seen in heard:
            if self._fleet.agent(seen.task.source).refused is None:
                for want in seen.task.wants:
                    self._emit_early(want, self._make_evidence(want, seen))
        # More may have come meanwhile.
        self._prober.proven[: len(fresh)] = [one for one in fresh if is_left(one.task, one.ports)]

    def _is_wide_enough(self, seen: Observation) -> bool:
        """Tell whether full-sized segments get through, where the flow needs them; look else."""
        if seen.task.protocol != "tcp" or seen.listener.state != "ours":
            return True
        self._widths.begin(seen)
        return self._widths.is_wide(seen.task.pair)

    def _find_known_machines(self, heard: list[Observation]) -> list[Observation]:
        """Give the flows that their own host answered; the last checks doubt the others.

        An echo reply may be anybody's; of a host that is declared without a way it counts.
        """
        has_way = self._host.vantage.kind != "none"
        return [
            one
            for one in heard
            if (one.outcome is not None and one.outcome.answer == "nonce")
            or (not has_way and not _is_at_home(self._fleet.agent(one.task.source), one))
        ]

    def _emit_early(self, want: Want, found: list[Evidence]) -> None:
        if found:
            want.note_evidence(found)
            self._emit(want, found)

    async def _probe_allowed(self, tasks: list[Task]) -> list[Observation]:
        named = [task for task in tasks if task.is_name]
        tasks = [task for task in tasks if not task.is_name]
        found = await self._proxied.probe(named, Listeners(UNKNOWN))
        return found + await self._probe_in_rounds(tasks) if tasks else found

    async def _probe_in_rounds(self, tasks: list[Task]) -> list[Observation]:
        if not await self._agent_is_ready():
            return await self._probe_and_check(tasks, Listeners(UNKNOWN), None)
        hello = self._agent.hello
        descriptors = hello.nofile if hello is not None else 0
        found: list[Observation] = []
        for number, spots_now in enumerate(rounds(spots(tasks), descriptors) or [[]]):
            some = restrict(tasks, spots_now, first=number == 0)
            found += await self._settle_holders(await self._run_round(some, spots_now))
        return found

    async def _settle_holders(self, observations: list[Observation]) -> list[Observation]:
        """Probe refused ports again, with listeners of ours, where their holder has gone."""
        checked = await check_holders(self._fleet, self._agent, observations)
        found = checked.standing
        for _ in range(HOLDER_LOOKS):
            if not checked.moved:
                break
            again = tasks_of(checked.moved)
            observations = await self._run_round(again, spots(again))
            checked = await check_holders(self._fleet, self._agent, observations)
            found += checked.standing
        return found + [undecided(one, self._host.name) for one in checked.moved]

    async def _agent_is_ready(self) -> bool:
        """Tell whether the destination has an agent; a slow start holds nobody up (design 6.1).

        What comes before its recorder runs would look as if it had not come. Orders are done in
        turn, and the recorder's own came first.
        """
        await self._agent.settle(self._settings.ready_s)
        self._is_recorded = self._agent.records
        if self._is_recorded:
            with contextlib.suppress(AgentError):
                await self._agent.route(LOOPBACK, None)
        return self._agent.alive

    async def _run_round(self, tasks: list[Task], wanted: list[Spot]) -> list[Observation]:
        """Probe with one round of listeners, or again without them where the agent is lost."""
        number = next(self._fleet.order_ids)
        round_ = self._round = Round(self._agent, number, self.origins)
        self.origins.expect(tasks)
        try:
            listeners = await self._open_listeners(round_, wanted)
            found = await self._probe_and_check(tasks, listeners, round_)
        except AgentError:
            found = await self._probe_without_listeners(tasks)
        # Not where the run is stopped: agents close everything when they end, and this one may be
        # one that does not answer.
        is_closed = await round_.close()
        if not is_closed and any(one.listener.state == "ours" and not one.proven for one in found):
            # Nobody knows until when its listeners were there.
            found = await self._probe_without_listeners(tasks)
        return found

    async def _probe_without_listeners(self, tasks: list[Task]) -> list[Observation]:
        """Probe once more what had no result when the destination's agent was lost."""
        return await self._probe_and_check(list_left(tasks), Listeners(LOST), None)

    async def _probe_and_check(
        self, tasks: list[Task], listeners: Listeners, round_: Round | None
    ) -> list[Observation]:
        """Probe everything once, then run the checks; ``round_`` is None without an agent here.

        Raises AgentError where this destination's agent is lost meanwhile.
        """
        flows = [task for task in tasks if task.probe != PATH_MTU]
        scene = self._make_scene(round_)
        direct = self._prober.cut([task for task in flows if task.via is None], listeners)
        pairs: dict[tuple[str, str], list[Part]] = {}
        for part in direct:
            pairs.setdefault(part.task.pair, []).append(part)
        look = asyncio.gather(
            gather_some([partial(probe_pair, parts, scene) for parts in pairs.values()]),
            self._proxied.probe([task for task in flows if task.via is not None], listeners),
        )
        looked, through = await look_until_lost(look, direct, self._agent)
        seen = [one for some in looked for one in some]
        # The check of the path MTU measures these.
        seen += [unprobed(task, ()) for task in tasks if task.probe == PATH_MTU]
        return await run_checks(self._checks, seen, scene) + through

    def _make_scene(self, round_: Round | None) -> Scene:
        own = (self._fleet, self._agent, self._prober, self.origins, self._widths)
        return Scene(*own, round_, self._is_recorded)

    async def _open_listeners(self, round_: Round, wanted: list[Spot]) -> Listeners:
        listeners = Listeners(CLOSED)
        to_open = [spot for spot in wanted if self._settings.listen and not spot.existing]
        to_look_at = [spot for spot in wanted if spot not in to_open]
        if to_open:
            listeners.include(await round_.open(to_open))
        if to_look_at:
            listeners.include(await round_.held(to_look_at))
        return listeners

    def _emit_all(
        self,
        wants: Sequence[Want],
        by_way: Iterable[Want],
        observations: Iterable[Observation],
    ) -> None:
        by_want: dict[PlanPlace, list[Evidence]] = {want.order: [] for want in wants}
        for seen in observations:
            for want in pick_wants(seen.task.wants, by_want):
                by_want[want.order].extend(self._make_evidence(want, seen))
        for want in pick_wants(by_way, by_want):
            by_want[want.order].extend(self._resolved.evidence(want))
        for want in wants:
            want.ledger.is_final = True
        for want in wants:
            if want.is_left:
                found = want.with_untold(self._drop_refused(want, by_want[want.order]))
                if found:
                    self._emit(want, found)

    def _drop_refused(self, want: Want, found: list[Evidence]) -> list[Evidence]:
        """Give the evidence; of a source that broke the rules of the wire nothing is known."""
        refused = self._fleet.agent(want.flow.source).refused
        if refused is None:
            return found
        why = (refused.reason, str(refused))
        return [replace(one, outcome=None, mtu=None, untested=why) for one in found]

    def _make_evidence(self, want: Want, seen: Observation) -> list[Evidence]:
        """Give the evidence of what is left to be told; nothing where that is nothing."""
        ports = want.left_of(seen.ports, seen.task.address)
        if ports is None:
            return []
        pair = (want.flow.source.name, seen.task.address)
        has_address = self._has_address(seen)
        is_up = has_address or self._is_up(*pair)
        facts = facts_of(seen)
        facts["warnings"] = want.notes + seen.warnings
        facts["trail"] = (*self._resolved.entries(want), *seen.trail)
        made = Evidence(
            want.flow,
            seen.task.address,
            ports,
            control_answered=self._answered.has(*pair),
            host_down=None if has_address else self._answered.asked_in_vain(*pair),
            given_up_by=self._answered.given_up_by(*pair, or_any=is_up),
            host_up=is_up,
            platform_runs=runs_platform(self._agent),
            served=self._answered.list_served(seen.task),
            sent_from=self._senders.get(pair),
            sudo_failed=tuple(
                host.name
                for host in (want.flow.source, self._host)
                if self._fleet.agent(host).sudo_failed
            ),
            **facts,
        )
        return [made]

    def _is_up(self, source: str, address: str) -> bool:
        """Whether the address answered anybody, or somebody refuses the source in its name."""
        known = self._answered
        return known.refuses(source, address) or known.has(source, address) or known.is_up(address)

    def _has_address(self, seen: Observation) -> bool:
        """Whether the destination is up, by its agent's word, and has the probed address itself."""
        if seen.listener.state == "ours" and not seen.listener.nat:
            return True
        return self._agent.alive and seen.task.address in self._own


def runs_platform(agent: AgentMethods) -> bool:
    """Tell whether a host's agent says that the platform runs there already."""
    return agent.hello is not None and agent.hello.kubelet


def _is_at_home(source: AgentMethods, seen: Observation) -> bool:
    """Tell whether the source has the address itself."""
    return source.hello is not None and seen.task.address in source.hello.addresses
