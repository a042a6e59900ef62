"""Port sets as sorted, disjoint ranges; no object per port.

A ``Ports`` value is a tuple of ``(first, last)`` pairs, both ends included, sorted, a gap of at
least one port between neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import Generic, TypeVar

PortRange = tuple[int, int]
Ports = tuple[PortRange, ...]

Key = TypeVar("Key", bound=Hashable)
Label = TypeVar("Label")

# The protocols that have ports.
WITH_PORTS = ("tcp", "udp")
MIN_PORT = 1
MAX_PORT = 65535


def normalise(ranges: Iterable[PortRange]) -> Ports:
    """Sort ranges and join those that overlap or touch."""
    joined: list[PortRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def union(parts: Iterable[Ports]) -> Ports:
    """Give all ports of several sets."""
    return normalise(entry for ports in parts for entry in ports)


def union_by_key(parts: Iterable[tuple[Key, Iterable[PortRange]]]) -> dict[Key, Ports]:
    """Give all ports of each key. It joins them once: a union for each part takes the square."""
    ranges: dict[Key, list[PortRange]] = {}
    for key, ports in parts:
        ranges.setdefault(key, []).extend(ports)
    return {key: normalise(some) for key, some in ranges.items()}


def count(ports: Ports) -> int:
    """Tell how many ports these ranges hold."""
    return sum(last - first + 1 for first, last in ports)


def each(ports: Ports) -> Iterator[int]:
    """Give every single port, in order."""
    for first, last in ports:
        yield from range(first, last + 1)


def intersect(left: Ports, right: Ports) -> Ports:
    """Give the ports that both sets hold."""
    common: list[PortRange] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first = max(left[i][0], right[j][0])
        last = min(left[i][1], right[j][1])
        if first <= last:
            common.append((first, last))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def cut_entries(entries: Ports, wanted: Ports) -> Ports:
    """Cut each entry of a requirement by itself: neighbours stay two results."""
    return tuple(part for entry in entries for part in intersect((entry,), wanted))


def subtract(left: Ports, right: Ports) -> Ports:
    """Give the ports of ``left`` that ``right`` does not hold."""
    kept: list[PortRange] = []
    j = 0
    for first, last in left:
        while j and right[j - 1][1] >= first:
            j -= 1  # entries of a row may overlap
        start = first
        while j < len(right) and right[j][0] <= last:
            cut_first, cut_last = right[j]
            if cut_first > start:
                kept.append((start, cut_first - 1))
            start = max(start, cut_last + 1)
            if cut_last > last:
                break  # it may cut the next range too
            j += 1
        if start <= last:
            kept.append((start, last))
    return tuple(kept)


def find_near(ports: Ports, others: Ports) -> Ports:
    """Give the ranges of normalised ports that may hold any of the others, which are few.

    Bisection finds the first and the last one, so that thousands of ranges need no walk.
    """
    if not ports or not others:
        return ()
    first, last = others[0][0], max(last for _, last in others)
    begin = max(0, bisect_left(ports, (first + 1, 0)) - 1)
    return ports[begin : bisect_left(ports, (last + 1, 0))]


def divide(ports: Ports, others: Ports) -> tuple[Ports, Ports]:
    """Give the ports that the others hold, and the rest; the others are normalised, maybe many."""
    near = find_near(others, ports)
    return intersect(ports, near), subtract(ports, near)


def text(ports: Ports) -> str:
    """Ports as people write them: ``2379-2380, 6443``."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ports)


class LabelledPorts(Generic[Label]):
    """Ranges with a label each; a port of several has that of the first one given."""

    def __init__(self, labelled: Iterable[tuple[PortRange, Label]]) -> None:
        given = list(labelled)
        starts = sorted((first, place, last) for place, ((first, last), _) in enumerate(given))
        cuts = sorted({cut for (first, last), _ in given for cut in (first, last + 1)})
        self._labels: dict[PortRange, Label] = {}
        # Those that have begun, the first one given first.
        begun: list[tuple[int, int]] = []
        place = 0
        for here, following in pairwise(cuts):
            while place < len(starts) and starts[place][0] == here:
                heappush(begun, starts[place][1:])
                place += 1
            while begun and begun[0][1] < here:
                heappop(begun)
            if begun:
                self._labels[here, following - 1] = given[begun[0][0]][1]
        self._ranges: Ports = tuple(self._labels)

    def split(self, ports: Ports) -> Iterator[tuple[Label | None, PortRange]]:
        """Cut ports by their labels; those without one come last, with None."""
        near = find_near(self._ranges, ports)
        for part in intersect(ports, near):
            yield self._labels[find_near(near, (part,))[0]], part
        for part in subtract(ports, near):
            yield None, part
