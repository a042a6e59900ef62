"""Asks ports again, a few at a time, where a limit of new connections may have stopped them.

Everything is asked at once, so a firewall that lets 20 connections a second through, or 20 flows of
UDP, stops most of a range.
Two signs of a limit cost nothing: some ports answered only at a second look, or a port that was
rejected is not rejected when it is asked alone. Only then ports are asked slowly, one destination
at a time. Where a rule stops a range, four ports are asked twice and the result stays as it was.

What follows: a limit of new connections per second, if a few alone, all slowly over at most 60 s,
answer.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.agent.wire.questions import CHECK_MS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import ResetOrigin
from netprobe.model.notes import LimitNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.checks.forged_resets import is_forged, is_reset
from netprobe.probe.checks.held_addresses import find_second_holder
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.reachability import REFUSED_MS, is_host_unreachable
from netprobe.probe.settings import ROUND_TRIPS, Timing

# Fewer ports than this are hardly ever too many at once (nft's own burst is 5).
LEAST_ASKED, LEAST_REFUSED = 6, 3
# Ports that stand for the rest, and how long a limit of a few a second needs for one more.
SPOKESMEN = 4
REFILL_S = 0.4
SMALL_BATCH, MOST_BATCH = 2, 64
# Runs of fewer ports have no spokesmen: all of them are asked.
LEAST_RUN = 8
BATCH_S, SMALL_BATCH_S = 1.0, 2.0
# A limit alone does not explain a port that stays silent this often while a port that is known to
# answer does so before and after it.
TRIES = 2
BUDGET_S = 60.0
SHOWN = (
    "answered only when it was asked again slowly: something on the way lets only so many new "
    "connections a second through, or loses packets"
)

# A port with a listener does not reset connections, so the reset comes from a firewall.
TELLING = ("ours", "live")

# Conclusions of a host that is down.
DEAD = ("host-down", "router-gives-up")

# One port of one seen.
PartPort = tuple[int, int]


class RateLimits(Check):
    """Looks again at what limits of new connections may have stopped."""

    name = "rate-limit"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """TCP that was probed directly, and UDP to what is known to answer."""
        if seen.task.via is not None or seen.outcome is None:
            return False
        udp = seen.task.protocol == "udp" and seen.listener.state in TELLING
        return udp or seen.task.protocol == "tcp"

    def group(self, seen: Observation) -> Hashable:
        """All of a destination: late answers of one source tell of a limit for the others."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask slowly where a limit is likely; what answers then has that answer."""
        late = {seen.task.protocol for seen in group if _is_late(seen)}
        # A limit may be one of a protocol alone: then the other one's answers show nothing.
        pairs = group_by(group, lambda seen: (seen.task.pair, seen.task.protocol))
        # What lets nothing through is no limit.
        through = {seen.task.source.name for seen in group if not _is_stopped(seen)}
        pairs = [
            pair
            for pair in pairs
            if pair[0].task.source.name in through
            or scene.prober.answered.came_through(pair[0].task.source.name)
        ]
        pairs = [pair for pair in pairs if _may_be_limited(pair, pair[0].task.protocol in late)]
        # Of two machines with one address now the one answers, and now the other.
        twice = {one.task.address: await find_second_holder(one.task.address, scene)
                 for one, *_ in pairs}  # fmt: skip
        pairs = [pair for pair in pairs if twice[pair[0].task.address] is None]
        limited = await asyncio.gather(*(_is_limited(pair, scene) for pair in pairs))
        slow = [pair for pair, is_limited in zip(pairs, limited, strict=True) if is_limited]
        if not slow:
            return group
        found: list[Observation] = []
        async with scene.fleet.phases.turn(scene.fleet.slowly, "for a turn to ask slowly"):
            left_s = BUDGET_S
            for pair in slow:
                pending = _Pending(pair)
                left_s = await _ask_slowly(pending, scene, left_s)
                found += pending.result()
        found = [seen.noting(self.name, LimitNote(seen.limited)) for seen in found]
        if scene.round is not None:
            found = await with_witnesses(found, scene.round)
        asked = {id(seen) for pair in slow for seen in pair}
        return [seen for seen in group if id(seen) not in asked] + found


async def _is_limited(group: list[Observation], scene: Scene) -> bool:
    """Tell whether a stopped port answers when it is asked alone."""
    refused = [seen for seen in group if _is_refused(seen)]
    for spot in _choose_spots(group, refused, SPOKESMEN - 1):
        if any(await _ask_spots(group, [spot], 0.0, scene, strict=True)):
            return True
        await asyncio.sleep(REFILL_S)
    silent = [seen for seen in group if _is_silent(seen)]
    spots = _choose_spots(group, silent, SPOKESMEN)
    for _ in range(TRIES if any(_is_late(seen) for seen in group) else 0):
        if any(await _ask_spots(group, spots, BATCH_S, scene, strict=True)):
            return True
    return False


async def _ask_slowly(pending: _Pending, scene: Scene, left_s: float) -> float:
    """Ask every stopped port of a group again, as fast as the limit lets it through.

    Only the time over which ports are asked counts, so a busy machine asks as many as an idle one.
    Gives what is left of it.
    """
    size = SMALL_BATCH
    while left_s > 0 and pending.waits():
        batch = pending.take(size)
        small = len(batch) <= SMALL_BATCH
        controls = [pending.control] if small and pending.control else []
        over_s = SMALL_BATCH_S if small else BATCH_S
        began_s = _now_s()
        answers = await _ask_spots(pending.group, [*controls, *batch, *controls], over_s, scene)
        mine = answers[len(controls) : len(controls) + len(batch)]
        pending.note(batch, mine, fair=bool(controls) and bool(answers[0] and answers[-1]))
        size = _next_size(size, mine)
        left_s -= over_s
        await asyncio.sleep(max(0.0, began_s + over_s - _now_s()))
    return left_s


async def _ask_spots(
    group: list[Observation],
    spots: list[PartPort],
    over_s: float,
    scene: Scene,
    *,
    strict: bool = False,
) -> list[Observation | None]:
    """Ask these ports once more, evenly over a time; the answers in their order.

    ``strict``: loss must not hide a forged reset, nor bring one that passes for an answer.
    """
    step_s = over_s / max(1, len(spots))

    async def ask(number: int, spot: PartPort) -> Observation | None:
        await asyncio.sleep(step_s * number)
        return await _ask_spot(group, spot, scene, strict=strict)

    return await asyncio.gather(*(ask(number, spot) for number, spot in enumerate(spots)))


async def _ask_spot(
    group: list[Observation], spot: PartPort, scene: Scene, *, strict: bool
) -> Observation | None:
    at, port = spot
    seen = replace(group[at], ports=((port, port),))
    told = seen.listener.state in TELLING
    forged = seen.reset.forged and not told
    if forged:
        if await is_forged(seen, group, scene, None if strict else 1) is not False:
            return None
        await asyncio.sleep(BATCH_S)
    (again,) = await scene.prober.again(seen, _choose_timing(seen, scene))
    if again.outcome is None or again.silent or _is_stopped(again):
        return None
    if strict and not forged and is_reset(again) and await is_forged(again, group, scene):
        return None
    return replace(again, reset=ResetOrigin(forged=False)) if forged else again


def _choose_timing(seen: Observation, scene: Scene) -> Timing | None:
    """Choose how long to wait: the host has answered, so it is known how far away it is."""
    slowest_ms = scene.prober.slowest_ms(seen.task)
    if slowest_ms is None:
        return None
    look_ms = max(CHECK_MS, round(ROUND_TRIPS * slowest_ms))
    return Timing(look_ms, look_ms, 1)


def _next_size(size: int, answers: list[Observation | None]) -> int:
    """Choose more while most answer, fewer where most do not, be it a limit or a rule."""
    heard = sum(1 for answer in answers if answer is not None)
    return min(MOST_BATCH, 2 * size) if 2 * heard >= len(answers) else max(1, size // 2)


class _Pending(Struct):
    """The ports of one group that wait, and what has become of the others.

    ``left`` are those that did not answer among many; when all have been asked, what is left waits
    again. ``runs`` says for each that waits who speaks for its neighbours.
    """

    group: list[Observation]
    spots: deque[PartPort] = field(default_factory=deque)
    left: set[PartPort] = field(default_factory=set)
    runs: dict[PartPort, tuple[PartPort, ...]] = field(default_factory=dict)
    answers: dict[PartPort, Observation] = field(default_factory=dict)
    silent: dict[PartPort, int] = field(default_factory=dict)
    control: PartPort | None = None

    def __post_init__(self) -> None:
        for at, seen in enumerate(self.group):
            if _is_stopped(seen):
                self.left |= {(at, port) for port in port_sets.each(seen.ports)}
            else:
                self.control = self.control or (at, seen.ports[0][0])

    def waits(self) -> bool:
        """Whether there is anything to ask; what is left waits again when nothing else does."""
        if not self.spots:
            self._begin_round()
        return bool(self.spots)

    def _begin_round(self) -> None:
        """Queue spokesmen of long runs first, then the rest in an order that no run dominates."""
        spots = sorted(self.left.union(self.spots))
        self.left = set()
        first: list[PartPort] = []
        rest: list[PartPort] = []
        self.runs = {}
        known = {spot for spot, tries in self.silent.items() if tries >= TRIES}
        for run in _find_runs(spots, known):
            speak = _choose_evenly(run, SPOKESMEN if len(run) >= LEAST_RUN else 0)
            first += speak
            rest += [spot for spot in run if spot not in speak]
            self.runs |= dict.fromkeys(run, tuple(speak))
        random.Random(len(rest)).shuffle(rest)
        self.spots = deque(first + rest)

    def take(self, size: int) -> list[PartPort]:
        """Take the next ports to ask; spokesmen are asked few at a time, to be believed.

        The others of their run are many at a time: where nothing answers, it gets new ones.
        """
        speak = self.runs[self.spots[0]]
        if self.spots[0] in speak:
            size = SMALL_BATCH
        elif speak:
            size = max(size, LEAST_RUN)
        return [self.spots.popleft() for _ in range(min(size, len(self.spots)))]

    def note(self, batch: list[PartPort], answers: list[Observation | None], *, fair: bool) -> None:
        """Note answers; ``fair``: a port known to answer did so before and after these."""
        again = []
        for spot, answer in zip(batch, answers, strict=True):
            if answer is not None:
                self.answers[spot] = answer
                self.control = self.control or spot
            elif len(batch) > SMALL_BATCH:
                self.left.add(spot)
            else:
                self.silent[spot] = self.silent.get(spot, 0) + fair
                if self.silent[spot] < TRIES:
                    again.append(spot)
        self.spots.extendleft(reversed(again))
        stopped = {self.runs[spot] for spot in batch if self._is_stopped_run(spot)}
        if stopped:
            self.spots = deque(spot for spot in self.spots if self.runs[spot] not in stopped)
        if not any(answers) and batch[0] not in self.runs[batch[0]]:
            # Others of the run have answered: what is left of it gets new spokesmen.
            self._begin_round()

    def _is_stopped_run(self, spot: PartPort) -> bool:
        """Tell whether all spokesmen of its run stay stopped: then the run is."""
        speak = self.runs[spot]
        return bool(speak) and all(self.silent.get(one, 0) >= TRIES for one in speak)

    def result(self) -> list[Observation]:
        """Give the group, cut by what has answered and what there was no time to ask."""
        unasked = self.left.union(self.spots)
        found = []
        for at, seen in enumerate(self.group):
            if not _is_stopped(seen):
                found.append(seen)
                continue
            answered = {port for spot_at, port in self.answers if spot_at == at}
            unknown = {port for spot_at, port in unasked if spot_at == at} - answered
            found += [_take_answer(seen, port, self.answers[at, port]) for port in sorted(answered)]
            rest = port_sets.subtract(seen.ports, _ports_of(answered))
            for limited, piece in replace(seen, ports=rest).cut(_ports_of(unknown)):
                found.append(replace(piece, limited=True) if limited else piece)
        return found


def _find_runs(spots: list[PartPort], known: set[PartPort]) -> list[list[PartPort]]:
    """Split ports into runs of neighbours, which ``known`` ones do not part."""
    runs: list[list[PartPort]] = []
    for at, port in sorted({*spots, *known}):
        if runs and runs[-1][-1] == (at, port - 1):
            runs[-1].append((at, port))
        else:
            runs.append([(at, port)])
    left = ([spot for spot in run if spot not in known] for run in runs)
    return [run for run in left if run]


def _choose_evenly(spots: list[PartPort], count: int) -> list[PartPort]:
    """Choose some of these, ends included."""
    last = len(spots) - 1
    places = {round(last * number / max(1, count - 1)) for number in range(count)}
    return [spots[place] for place in sorted(places)] if spots else []


def _take_answer(seen: Observation, port: int, again: Observation) -> Observation:
    warnings = (*seen.warnings, SHOWN)
    found = replace(again, ports=((port, port),), task=seen.task, warnings=warnings)
    return found.counting(seen.outcome, packets=False)


def _ports_of(single: Iterable[int]) -> Ports:
    return port_sets.normalise((port, port) for port in single)


def _may_be_limited(group: list[Observation], late: bool) -> bool:
    """Tell whether many ports were refused, or some silent where others answered late."""
    asked = sum(port_sets.count(one.ports) for one in group)
    refused = sum(port_sets.count(one.ports) for one in group if _is_refused(one))
    silent = late and any(_is_silent(one) for one in group)
    return asked >= LEAST_ASKED and (refused >= LEAST_REFUSED or silent)


def _is_late(seen: Observation) -> bool:
    """Tell whether it is an answer that only a second look brought."""
    outcome = seen.outcome
    return outcome is not None and outcome.attempts > 1 and not _is_stopped(seen)


def _is_stopped(seen: Observation) -> bool:
    # That there is no such host is never an answer, however late somebody says so.
    given_up = seen.outcome is not None and is_host_unreachable(seen.outcome)
    return given_up or _is_silent(seen) or _is_refused(seen)


def _is_silent(seen: Observation) -> bool:
    """Tell whether nothing answered what is known to have left the source."""
    return seen.silent and seen.has_left is True


def _is_refused(seen: Observation) -> bool:
    """Tell whether a firewall refused, and no closed port."""
    outcome = seen.heard
    if outcome is None or outcome.answer is not None or seen.has_left is False:
        return False
    if outcome.icmp is not None:
        slow = (outcome.elapsed_ms or 0) >= REFUSED_MS
        dead = slow if seen.conclusion is None else seen.concluded in DEAD
        return outcome.icmp.origin != "source" and not (is_host_unreachable(outcome) and dead)
    told = seen.listener.state in TELLING
    return outcome.failure == "refused" and (told or bool(seen.reset.forged))


def _choose_spots(group: list[Observation], some: list[Observation], count: int) -> list[PartPort]:
    """Choose some ports of these observations, evenly over all of theirs."""
    mine = {id(one) for one in some}
    places = [at for at, one in enumerate(group) if id(one) in mine]
    spots = [(at, port) for at in places for port in port_sets.each(group[at].ports)]
    return _choose_evenly(spots, count)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
