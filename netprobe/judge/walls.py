"""Walls: pairs of hosts between which nothing gets through, and which of them are one.

What passes beside the failures tells one rule of a firewall from another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from netprobe.model.ports import PortRange
from netprobe.model.result import Place, Result

Pair = tuple[str, str]  # source and destination
FlowEnds = tuple[str, str, str]  # with the address that was probed: families differ
ProtocolPort = tuple[str, PortRange | None]
Zones = Mapping[str, str]  # of the hosts that have one
DeadPair = tuple[object, set[FlowEnds]]  # its rule, and its ways


def way_of(result: Result) -> FlowEnds:
    """Give the hosts and the address of a result."""
    return (result.source, result.destination, result.address)


def port_of(result: Result) -> ProtocolPort:
    """Give the protocol of a result and its range of ports, None where it has none."""
    if result.port is None or result.end_port is None:
        return result.protocol, None
    return result.protocol, (result.port, result.end_port)


class Passing:
    """What passes, as far as it says something of the failures."""

    def __init__(self, failures: Sequence[Result], passes: Iterable[Result], zones: Zones) -> None:
        wanted = set(map(way_of, failures))
        self.ways: dict[FlowEnds, list[ProtocolPort]] = {}
        self.zones: set[tuple[str | None, str | None]] = set()
        self.sources: set[str] = set()
        self.destinations: set[str] = set()
        for one in passes if wanted else ():
            # That a port is closed for others, as it must be, shows no way.
            if one.expect == "denied" or one.source == one.destination:
                continue
            way = way_of(one)
            if way in wanted:
                self.ways.setdefault(way, []).append(port_of(one))
            self.sources.add(one.source)
            self.destinations.add(one.destination)
            if zones:
                self.zones.add((zones.get(one.source), zones.get(one.destination)))

    def has_any(self, ports: Iterable[ProtocolPort], ways: Iterable[FlowEnds]) -> bool:
        """Tell whether one of these ports passes on one of these ways."""
        wanted = list(ports)
        passing = (one for way in ways for one in self.ways.get(way, ()))
        return any(_have_common(one, other) for one in passing for other in wanted)


def _have_common(one: ProtocolPort, other: ProtocolPort) -> bool:
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return one == other
    return one[1][0] <= other[1][1] and other[1][0] <= one[1][1]


def find_dead_pairs(
    failures: Sequence[Result], passing: Passing, zones: Zones
) -> dict[Pair, DeadPair]:
    """Find the pairs between which nothing gets through; give each its rule, and its ways."""
    ports: dict[FlowEnds, set[ProtocolPort]] = {}
    places: dict[FlowEnds, set[Place]] = {}
    for result in failures:
        way = way_of(result)
        if way not in passing.ways and result.source != result.destination:
            ports.setdefault(way, set()).add(port_of(result))
            places.setdefault(way, {*result.where}).intersection_update(result.where)
    ways: dict[Pair, set[FlowEnds]] = {}
    for way in ports:
        ways.setdefault(way[:2], set()).add(way)
    found = _find_dead_zones(ways, passing, zones)
    # One port alone, and nothing else that is required, says nothing of the other ports; and what
    # fails at several places is not one rule's.
    strong = (way[:2] for way, some in ports.items() if len(some) > 1 and places[way])
    boxes = _make_boxes({pair: None for pair in strong if pair not in found})
    found.update((pair, box) for box in boxes for pair in box.pairs)
    for pair in ways:
        box = next((one for one in boxes if one.takes(pair, passing)), None)
        if pair not in found and box is not None:
            found[pair] = box
    return {pair: (rule, ways[pair]) for pair, rule in found.items()}


def _find_dead_zones(pairs: Iterable[Pair], passing: Passing, zones: Zones) -> dict[Pair, object]:
    """Find the pairs of hosts in two zones between which nothing at all passes one way."""
    found: dict[Pair, object] = {}
    for source, destination in pairs if zones else ():
        two = (zones.get(source), zones.get(destination))
        if None not in two and two[0] != two[1] and two not in passing.zones:
            found[source, destination] = frozenset(two)
    sizes: dict[object, int] = {}
    for key in found.values():
        sizes[key] = sizes.get(key, 0) + 1
    return {pair: key for pair, key in found.items() if sizes[key] > 1}


def split_into_boxes(pairs: Mapping[Pair, None]) -> list[list[Pair]]:
    """Split pairs as few "all of these to all of those"; both directions of one are one."""
    return [box.pairs for box in _make_boxes(pairs)]


def group_by_box(
    members: Iterable[Result], pair_of: Callable[[Result], Pair]
) -> list[list[Result]]:
    """Group failures by as few "all of these with all of those" as their pairs make."""
    of_pair: dict[Pair, list[Result]] = {}
    for one in members:
        of_pair.setdefault(pair_of(one), []).append(one)
    boxes = split_into_boxes(dict.fromkeys(of_pair))
    return [[one for pair in box for one in of_pair[pair]] for box in boxes]


class _Box:
    """Pairs of hosts that one rule explains."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self._sources = {one for one, _ in pairs}
        self._destinations = {other for _, other in pairs}

    def takes(self, pair: Pair, passing: Passing) -> bool:
        """Tell whether a pair of which one port is required shares the fate of the hosts."""
        source, destination = pair
        if source in self._sources and destination in self._destinations:
            return True
        if self._destinations == {destination}:
            return destination not in passing.destinations
        return self._sources == {source} and source not in passing.sources

    def leads_back(self, other: _Box) -> bool:
        """Tell whether one of the two leads back where the other comes from."""
        there = other._sources <= self._destinations and other._destinations <= self._sources
        return there or (
            self._sources <= other._destinations and self._destinations <= other._sources
        )


def _make_boxes(pairs: Mapping[Pair, None]) -> list[_Box]:
    """Split pairs as few "all of these to all of those"; both directions of one are one."""
    ways = [_group_by_ends(pairs, by, own) for by, own in product((0, 1), (False, True))]
    fewest = min(map(len, ways))
    boxes: list[_Box] = []
    for box in map(_Box, next(groups for groups in ways if len(groups) == fewest)):
        mirror = next((one for one in boxes if one.leads_back(box)), None)
        if mirror is None:
            boxes.append(box)
        else:
            boxes[boxes.index(mirror)] = _Box(mirror.pairs + box.pairs)
    return boxes


def _group_by_ends(pairs: Iterable[Pair], by: int, own: bool) -> list[list[Pair]]:
    """Group pairs whose sources (``by`` 0) have equal destinations, or the other way round.

    ``own``: a host counts among its own ends, where it never fails: so all hosts of a mesh have
    equal ones.
    """
    ends: dict[str, set[str]] = {}
    for pair in pairs:
        ends.setdefault(pair[by], {pair[by]} if own else set()).add(pair[1 - by])
    keys = {one: frozenset(others) for one, others in ends.items()}
    groups: dict[frozenset[str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(keys[pair[by]], []).append(pair)
    return list(groups.values())
