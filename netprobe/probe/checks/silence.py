"""Asks silent flows again until it is unlikely that only loss kept them silent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.agent.wire.questions import DATAGRAMS, UNKNOWN_MS
from netprobe.model import ports as port_sets
from netprobe.model.notes import SilenceNote
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.chance import LEAST_LOSS
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.reachability import is_host_unreachable
from netprobe.probe.flows.room import gather_all
from netprobe.probe.settings import ROUND_TRIPS, Timing

# The looks are spread over so long at least: one burst of loss is not taken for a rule.
SPREAD_MS = 600
LEAST_LOOK_MS = 150
# Connects to one flow that are out at once begin this far apart: more than the 0.25 s for which
# orders of many destinations are gathered (``probe.agents.decode``).
STEP_S = 0.3
# On a connection that opened: the kernel sends lost data again after 200 and 400 ms.
OPENED_MS = 650
# The kernel repeats a SYN after a second, or up to 80 ms later (kernel/time/timer.c: its timers of
# that length end in steps of 32 to 80 ms).
SYNS_OF_REPEAT, REPEATED_MS = 2, 1080


class Silence(Check):
    """Repeats silent flows; the loss that the run has shown so far says how often."""

    name = "silence"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """Silent flows whose packets may have left, and that may be asked again at once."""
        stuck = seen.has_left is False
        return is_silent(seen) and not stuck and not seen.part.paced and seen.task.via is None

    def group(self, seen: Observation) -> Hashable:
        """What is asked alike: a source, an address and a protocol, and connections that opened."""
        return (*seen.task.pair, seen.task.protocol, seen.silent)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask until the chance of error is small; what answers has that answer."""
        chance = scene.prober.chance
        found: list[Observation] = []
        silent = group
        asked = _count_least(silent, _packets_of)
        again = [seen for seen in group if any(e.name == self.name for e in seen.trail)]
        if again and _count_more(silent, scene) <= 0:
            return group  # what the whole run has shown asks for no more than its part did
        while silent and (looks := _count_more(silent, scene)) > 0:
            orders = _choose_orders(silent[0], looks, scene)
            asking = (_ask_again(seen, orders, scene) for seen in silent)
            pieces = [piece for some in await gather_all(asking) for piece in some]
            found += [piece for piece in pieces if not is_silent(piece)]
            before = _count_least(silent, _attempts_of)
            silent = [piece for piece in pieces if is_silent(piece)]
            if silent:
                asked = _count_least(silent, _packets_of)
                if _count_least(silent, _attempts_of) == before:
                    break  # the source's agent is gone
        loss = round(chance.loss, 3)
        return [piece.noting(self.name, SilenceNote(asked, loss)) for piece in found + silent]


def _count_least(group: Iterable[Observation], count: Callable[[Observation], int]) -> int:
    return min(map(count, group))


def _count_more(silent: list[Observation], scene: Scene) -> int:
    """Tell how many looks are still to be taken; a number of the user's own counts as it is."""
    wanted = scene.prober.wanted_looks
    if wanted is not None:
        return wanted - _count_least(silent, _attempts_of)
    packets = scene.prober.chance.count_looks() - _count_least(silent, _packets_of)
    return math.ceil(packets / (1 if silent[0].task.protocol == "tcp" else DATAGRAMS))


class LookOrder(NamedTuple):
    """Looks of one order, which is sent so many seconds after the first one."""

    timing: Timing
    after_s: float = 0.0


def _choose_orders(seen: Observation, looks: int, scene: Scene) -> list[LookOrder]:
    """Choose what is asked side by side: connects that wait for their second SYN, and quick looks.

    A connect that waits sends two of the packets; quick looks send the others. Connects to a host
    that never answered wait so long that each begins before the one before has ended.
    """
    is_tcp = seen.task.protocol == "tcp"
    if is_tcp and scene.fleet.side_by_side and _is_unknown(seen, scene):
        return [LookOrder(_choose_timing(seen, 1, scene), at * STEP_S) for at in range(looks)]
    repeats = min(looks, max(0, _count_repeats(seen, scene)))
    quick = looks - SYNS_OF_REPEAT * repeats
    long_ms = REPEATED_MS + _choose_timing(seen, looks, scene).look_ms
    orders = [LookOrder(Timing(long_ms, long_ms, 1))] * repeats
    return [*orders, LookOrder(_choose_timing(seen, quick, scene))] if quick > 0 else orders


def _is_unknown(seen: Observation, scene: Scene) -> bool:
    """Tell whether nothing shows how long an answer takes, nor has the user said it."""
    return scene.prober.fixed_look_ms is None and scene.prober.slowest_ms(seen.task) is None


def _choose_timing(seen: Observation, looks: int, scene: Scene) -> Timing:
    """Choose how long each of so many quick looks waits."""
    fixed_ms = scene.prober.fixed_look_ms
    if fixed_ms is not None:
        return Timing(fixed_ms, fixed_ms, looks)
    typical_ms = scene.prober.slowest_ms(seen.task)
    if typical_ms is None:
        return Timing(UNKNOWN_MS, UNKNOWN_MS, looks)
    records = scene.fleet.agent(seen.task.source).records
    if records:
        # Its recorder tells of answers that come later. Where this host is short of time, most
        # answers seem slow; the fastest one tells how far the other end is.
        typical_ms = scene.prober.answered.fastest_ms(*seen.task.pair) or typical_ms
    least_ms = OPENED_MS if seen.unanswered else max(LEAST_LOOK_MS, SPREAD_MS // looks)
    look_ms = max(least_ms, round(ROUND_TRIPS * typical_ms))
    long_ms = max(look_ms, UNKNOWN_MS)
    return Timing(look_ms if records or seen.task.protocol == "tcp" else long_ms, look_ms, looks)


def _count_repeats(seen: Observation, scene: Scene) -> int:
    """Tell how many repeated SYNs are still to be lost, each of a connect of its own.

    Some firewalls drop the first SYN of every connection. Where packets get lost, or little is
    known, one that is lost does not show that the second one is dropped, too.
    """
    known = scene.prober.slowest_ms(seen.task) is not None
    if not seen.silent or seen.task.protocol != "tcp" or not known:
        return 0
    if scene.prober.fixed_look_ms is not None:
        return 0
    chance = scene.prober.chance
    wanted = chance.count_looks() // (2 if chance.loss > LEAST_LOSS else 4)
    assert seen.outcome is not None
    return wanted - (_packets_of(seen) - seen.outcome.attempts)


async def _ask_again(seen: Observation, orders: list[LookOrder], scene: Scene) -> list[Observation]:
    """Ask one silent flow again by all these orders; what any of them answers is answered."""

    async def ask(order: LookOrder) -> list[Observation]:
        await asyncio.sleep(order.after_s)
        return await scene.prober.again(seen, order.timing)

    asked = await gather_all(map(ask, orders))
    found: list[Observation] = []
    rest = [seen]
    # An answer to any look counts before a refusal of another, and a router's word comes last.
    for is_wanted in (_is_answer_or_silence, _is_refusal, _is_unreachable):
        for pieces in asked:
            some = [one for one in pieces if is_wanted(one)]
            _note_lost(some, found, scene)
            counted = [one for before in rest for one in _add_looks(before, some, seen, scene)]
            found += [one for one in counted if not is_silent(one) and not _is_spoilt(one)]
            rest = [one for one in counted if is_silent(one) or _is_spoilt(one)]
    return found + rest


def _is_unreachable(seen: Observation) -> bool:
    return seen.outcome is not None and is_host_unreachable(seen.outcome)


def _is_answer_or_silence(seen: Observation) -> bool:
    nothing = is_silent(seen) or _is_spoilt(seen) or seen.outcome is None
    return nothing or (seen.outcome is not None and seen.outcome.answer is not None)


def _is_refusal(seen: Observation) -> bool:
    return not (_is_answer_or_silence(seen) or _is_unreachable(seen))


def _note_lost(looks: list[Observation], found: list[Observation], scene: Scene) -> None:
    """Note as lost the packets of silent looks at flows that another look has found."""
    for one in looks:
        if is_silent(one) and not _is_spoilt(one):
            there = [each for each in found if each.ports == one.ports == ()]
            ports = port_sets.union(port_sets.intersect(one.ports, each.ports) for each in found)
            flows = len(there) or port_sets.count(ports)
            scene.prober.chance.note_lost(flows * _packets_of(one))


def _add_looks(
    before: Observation, looks: list[Observation], seen: Observation, scene: Scene
) -> Iterator[Observation]:
    """Give a flow with the looks at its ports; ports without one stay as they are."""
    for one in looks:
        ports = port_sets.intersect(one.ports, before.ports)
        if ports or not before.ports:
            yield _add_look(before, replace(one, ports=ports), seen, scene)
    left = port_sets.subtract(before.ports, port_sets.union(one.ports for one in looks))
    if left or not (before.ports or looks):
        yield replace(before, ports=left)


def _add_look(
    before: Observation, one: Observation, seen: Observation, scene: Scene
) -> Observation:
    """Give a look at a flow that was ``seen`` silent, with all looks before it counted. One that
    a pause has spoilt says nothing, unless all are spoilt."""
    if one.outcome is None or before.outcome is None:
        return replace(before, ports=one.ports)
    if _is_spoilt(one) and not (before.outcome is seen.outcome or _is_spoilt(before)):
        return replace(before, ports=one.ports)
    if _is_spoilt(before):
        before = replace(seen, ports=one.ports)
    # Routers make about one ICMP error a second: nothing was lost.
    is_error = one.outcome.icmp is not None or _is_unreachable(one)
    if not (is_silent(one) or _is_spoilt(one) or is_error):
        scene.prober.chance.note_lost(_count_flows(one) * _packets_of(before))
    trail = before.trail + one.trail[len(seen.trail) :]
    return replace(one, earlier=before.orders, trail=trail).counting(before.outcome)


def is_silent(seen: Observation) -> bool:
    """Tell whether nothing answered: no SYN, or not the nonce on a connection that opened.

    A listener of ours that has no room left ends connections, too.
    """
    answer = seen.outcome and seen.outcome.answer
    return seen.silent or (seen.unanswered and answer != "other")


def _is_spoilt(seen: Observation) -> bool:
    """Tell whether a pause could have hidden the answer, also when the look was repeated."""
    return seen.outcome is not None and seen.outcome.failure == STOOD_STILL


def _count_flows(seen: Observation) -> int:
    return port_sets.count(seen.ports) or 1


def _attempts_of(seen: Observation) -> int:
    return 0 if seen.outcome is None else seen.outcome.attempts


def _packets_of(seen: Observation) -> int:
    """Tell how many packets have asked a silent flow so far: the kernel repeats SYNs, too."""
    assert seen.outcome is not None
    return max(seen.outcome.packets or 0, seen.outcome.attempts)
