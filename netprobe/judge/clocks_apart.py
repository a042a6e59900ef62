"""Clocks that are minutes apart: each is held against the majority of hosts and time servers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from netprobe.judge.clock import word_ms
from netprobe.judge.of_hosts import make_fault
from netprobe.judge.words import join_some
from netprobe.model.evidence import ServerClock
from netprobe.model.plan import HostFlow
from netprobe.model.result import Result

# From here on TLS and tokens fail: certificates are made valid some minutes before they are used.
APART_S = 300.0
_ALONE = ", and no other clock tells which of them is wrong"


class ServerAnswer(NamedTuple):
    """What a time server told a source."""

    source: str
    server: str
    clock: ServerClock


class _Clock(NamedTuple):
    """``ahead_s``: of one clock that all are held against, which counts for nothing itself."""

    ahead_s: float
    name: str
    serves: bool


def judge_clocks(
    flows: Mapping[str, HostFlow], hosts_s: Mapping[str, float], answers: Iterable[ServerAnswer]
) -> Iterator[Result]:
    """Give a result for each host and time server whose clock is minutes from the majority's.

    ``hosts_s``: by how many seconds each host's clock is ahead of one that is the same for all.
    Where there is no majority, each clock that is apart from any other is held against that.
    """
    clocks = sorted((*_list_hosts(hosts_s), *_list_servers(hosts_s, answers)))
    majority = _find_majority(clocks)
    middle_s = median(one.ahead_s for one in majority) if majority else 0.0
    told = set()
    for one in clocks:
        others = majority or [max(clocks, key=partial(_measure_distance, one))]
        apart_s = one.ahead_s - (middle_s if majority else others[0].ahead_s)
        if abs(apart_s) >= APART_S and one.name in flows and one.name not in told:
            told.add(one.name)
            yield make_fault(flows[one.name], _word_apart(one, apart_s, others, clocks))


def _list_hosts(hosts_s: Mapping[str, float]) -> Iterator[_Clock]:
    for name, ahead_s in hosts_s.items():
        yield _Clock(ahead_s, name, False)


def _list_servers(
    hosts_s: Mapping[str, float], answers: Iterable[ServerAnswer]
) -> Iterator[_Clock]:
    """List the servers that say that they have the time; each source's own clock is known."""
    found: dict[str, list[float]] = {}
    for source, server, clock in answers:
        offset_ms = clock.offset_ms
        if clock.good and clock.kiss is None and offset_ms is not None and source in hosts_s:
            found.setdefault(server, []).append(hosts_s[source] - offset_ms / 1000)
    for name, some in found.items():
        yield _Clock(median(some), name, True)


def _find_majority(clocks: Sequence[_Clock]) -> Sequence[_Clock]:
    """Find the most clocks that agree with one of them; of as many, those with more servers.

    ``clocks`` are sorted. Nothing where two such groups are apart.
    """
    times = [one.ahead_s for one in clocks]
    servers = [0, *accumulate(one.serves for one in clocks)]
    groups = []
    for ahead_s in times:
        first = bisect_left(times, ahead_s - APART_S + 1e-6)
        last = bisect_left(times, ahead_s + APART_S)
        groups.append(((last - first, servers[last] - servers[first]), first, last))
    if not groups:
        return ()
    most = max(groups)[0]
    best = sorted({(first, last) for size, first, last in groups if size == most})
    middles = [median(times[first:last]) for first, last in best]
    first, last = best[0]
    return () if max(middles) - min(middles) >= APART_S else clocks[first:last]


def _measure_distance(one: _Clock, other: _Clock) -> float:
    return abs(one.ahead_s - other.ahead_s)


def _word_apart(
    one: _Clock, apart_s: float, others: Sequence[_Clock], clocks: Sequence[_Clock]
) -> str:
    whose = f"of the time server {one.name}" if one.serves else f"of {one.name}"
    way = "ahead of" if apart_s > 0 else "behind"
    names = join_some([_word_clock(other) for other in others])
    alone = _ALONE if len(clocks) == 2 else ""
    return f"the clock {whose} is {word_ms(abs(apart_s) * 1000)} {way} the clock of {names}{alone}"


def _word_clock(one: _Clock) -> str:
    return f"the time server {one.name}" if one.serves else one.name
