"""Cases into batches, one run each, so that no run asks one host for more ICMP than it may say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.lab.accuracy.cases import RESET, Case

# A host answers one prober 6 times at once and then once a second (network-facts section 4); some
# of it is for TTL walks.
MOST_REJECTS = 4
# Of its silent flows a source walks 20 a run.
MOST_WALKS = 20

# What a case costs whom: (who answers, family), and the walks of the source.
Cost = Counter[tuple[str, int]]
WALKS = ("walks", 0)


def cost(case: Case) -> Cost:
    """How many ICMP errors the probes of a case draw, from whom, and how many walks it may need."""
    found = _rejects(case)
    rejected = case.place == "destination-in" and case.action != RESET
    if case.action in ("drop", "blackhole") or rejected or _on_the_way_back(case):
        found[WALKS] = len(case.protocols)
    return found


def _rejects(case: Case) -> Cost:
    by = {
        "router-1": "router-1",
        "route-router-1": "router-1",
        "router-2": "router-2",
        "destination-in": "destination",
        "down": "router-2",
    }.get(case.place)
    found: Cost = Counter()
    if by and case.action not in ("drop", "blackhole", RESET):
        control = case.listener == "closed" and case.place == "route-router-1"
        found[by, case.family] = len(case.protocols) + control
    elif case.place == "open" and case.listener == "closed":
        found["destination", case.family] = 1
    return found


def _on_the_way_back(case: Case) -> bool:
    return case.place in ("destination-out", "back-router-2", "back-router-1", "source-in",
                          "route-destination", "route-back-router-2")  # fmt: skip


def pack(cases: Iterable[Case], least: int) -> list[list[Case]]:
    """Batches within the limits, evenly filled; at least ``least`` if there are so many cases."""
    batches: list[list[Case]] = [[] for _ in range(least)]
    sums: list[Cost] = [Counter() for _ in range(least)]
    for case in sorted(cases, key=lambda case: (-cost(case)[WALKS], case)):
        wanted = cost(case)
        fitting = [number for number, so_far in enumerate(sums) if _fits(so_far, wanted)]
        if not fitting:
            fitting = [len(batches)]
            batches.append([])
            sums.append(Counter())
        number = min(fitting, key=lambda number: (sums[number][WALKS], len(batches[number])))
        batches[number].append(case)
        sums[number].update(wanted)
    return [batch for batch in batches if batch]


def _fits(so_far: Cost, more: Cost) -> bool:
    limits = {WALKS: MOST_WALKS}
    return all(so_far[key] + count <= limits.get(key, MOST_REJECTS) for key, count in more.items())
