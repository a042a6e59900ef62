"""Port sets as sorted, disjoint ranges; no object per port.

A ``Ports`` value is a tuple of ``(first, last)`` pairs, both ends included, sorted, a gap of at
least one port between neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
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
    """Give all ports of each key, joined once: thousands of parts one by one take the square."""
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
    i = _find_place(left, right[0][0]) if right else 0
    j = _find_place(right, left[0][0]) if left else 0
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
    j = _find_place(right, left[0][0]) if left else 0
    for first, last in left:
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


def find_range(ports: Ports, port: int) -> PortRange | None:
    """Give the range that holds a port, if any does."""
    around = ports[_find_place(ports, port)] if ports else (port, port - 1)
    return around if around[0] <= port <= around[1] else None


def _find_place(ports: Ports, port: int) -> int:
    """Tell which range may hold a port: the ones before it end before the port."""
    return max(0, bisect_left(ports, (port + 1, 0)) - 1)


def text(ports: Ports) -> str:
    """Ports as people write them: ``2379-2380, 6443``."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ports)


class LabelledPorts(Generic[Label]):
    """Ranges with a label each; a port of several has the label of the one that begins first."""

    def __init__(self, labelled: Iterable[tuple[PortRange, Label]]) -> None:
        self._labels: dict[PortRange, Label] = {}
        end = -1
        for (first, last), label in sorted(labelled, key=lambda one: one[0]):
            if last > end:
                self._labels[max(first, end + 1), last] = label
                end = last
        self._ranges: Ports = tuple(self._labels)

    def split(self, ports: Ports) -> Iterator[tuple[Label | None, PortRange]]:
        """Cut ports by their labels; those without one come last, with None."""
        for part in intersect(ports, self._ranges):
            around = find_range(self._ranges, part[0])
            assert around is not None
            yield self._labels[around], part
        for part in subtract(ports, self._ranges):
            yield None, part
