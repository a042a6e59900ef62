"""Cases into batches, one run each, so that no run asks one host for more ICMP than it may say."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from tests.lab.accuracy.cases import RESET, Case

# A host answers one prober 6 times at once and then once a second (network-facts section 4).
MOST_REJECTS = 4

Cost = Counter[tuple[str, int]]


def rejects(case: Case) -> Cost:
    """How many ICMP errors the probes of a case draw, from whom; routers count by family."""
    by = {
        "router-1": "router-1",
        "route-router-1": "router-1",
        "router-2": "router-2",
        "destination-in": "destination",
        "down": "router-2",
    }.get(case.place)
    cost: Cost = Counter()
    if by and case.action not in ("drop", "blackhole", RESET):
        control = case.listener == "closed" and case.place == "route-router-1"
        cost[by, case.family] = len(case.protocols) + control
    elif case.place == "open" and case.listener == "closed":
        cost["destination", case.family] = 1
    return cost


def walks(case: Case) -> int:
    """How many TTL walks the case may need: the source starts one a second."""
    silent = case.action in ("drop", "blackhole") or _on_the_way_back(case)
    return len(case.protocols) if silent and not case.lan else 0


def _on_the_way_back(case: Case) -> bool:
    return case.place in ("destination-out", "back-router-2", "back-router-1", "source-in",
                          "route-destination", "route-back-router-2")  # fmt: skip


def pack(cases: Iterable[Case], least: int) -> list[list[Case]]:
    """Batches within the limits, at least ``least``, with as few walks each as possible."""
    ordered = sorted(cases, key=lambda case: (-walks(case), case))
    batches: list[list[Case]] = [[] for _ in range(least)]
    costs: list[Cost] = [Counter() for _ in range(least)]
    heap = [(0, number) for number in range(least)]
    for case in ordered:
        refused = []
        cost = rejects(case)
        while heap and not _fits(costs[heap[0][1]], cost):
            refused.append(heapq.heappop(heap))
        if heap:
            load, number = heapq.heappop(heap)
        else:
            load, number = 0, len(batches)
            batches.append([])
            costs.append(Counter())
        batches[number].append(case)
        costs[number].update(cost)
        for entry in (*refused, (load + walks(case) * 10 + 1, number)):
            heapq.heappush(heap, entry)
    return [batch for batch in batches if batch]


def _fits(sum_so_far: Cost, more: Cost) -> bool:
    return all(sum_so_far[key] + count <= MOST_REJECTS for key, count in more.items())
