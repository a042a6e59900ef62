"""Few rules from many flows: boxes of sources × destinations × ports.

The boxes together hold exactly the flows that were given. Only a host to itself is free: no
firewall on the way ever sees that, and without it "every host to every other" would take as many
boxes as there are hosts. The fewest boxes are hard to find (it is a covering problem), so there are
a few greedy ways, and the shortest result counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import product
from typing import NamedTuple, TypeVar

from netprobe.model.ports import Ports, normalise, union

Pair = tuple[str, str]
Pairs = frozenset[Pair]
# Tells which host an end belongs to: an end is a host at one of its addresses.
HostOf = Callable[[str], str]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Box(NamedTuple):
    """Every source to every destination, at all of these ports."""

    sources: frozenset[str]
    destinations: frozenset[str]
    ports: Ports


class _Ways(NamedTuple):
    """How one try groups: by whole pairs or by single ports, from which side, and what is free."""

    whole_pairs: bool
    by_source: bool
    itself_free: bool


def cover(flows: Mapping[Pair, Ports], host_of: HostOf) -> tuple[Box, ...]:
    """Give the boxes that hold these flows, of each pair of ends its ports.

    Equal flows give equal boxes, in whatever order they come.
    """
    sorted_flows = dict(sorted(flows.items()))
    ways = [_Ways(*way) for way in product((True, False), repeat=3)]
    tries = [_cover_in_one_way(sorted_flows, host_of, way) for way in ways]
    return min(tries, key=len) if flows else ()


def _cover_in_one_way(flows: Mapping[Pair, Ports], host_of: HostOf, ways: _Ways) -> tuple[Box, ...]:
    split = _split_by_ports if ways.whole_pairs else _split_into_segments
    boxes = [
        box
        for ports, pairs in split(flows)
        for box in _cover_pairs(ports, pairs, host_of if ways.itself_free else None, ways.by_source)
    ]
    return tuple(sorted(_merge_boxes(boxes), key=_key_of_box))


def _key_of_box(box: Box) -> tuple[list[str], list[str], Ports]:
    return (sorted(box.sources), sorted(box.destinations), box.ports)


def _split_by_ports(flows: Mapping[Pair, Ports]) -> Iterable[tuple[Ports, Pairs]]:
    """Group the pairs that have exactly the same ports."""
    return ((ports, frozenset(pairs)) for ports, pairs in _group_by(flows, flows.__getitem__))


def _split_into_segments(flows: Mapping[Pair, Ports]) -> Iterable[tuple[Ports, Pairs]]:
    """Cut the ports where any pair's ranges begin or end, and group equal pieces."""
    cuts = sorted({cut for ports in flows.values() for a, b in ports for cut in (a, b + 1)})
    place = {cut: index for index, cut in enumerate(cuts)}
    pairs_of: dict[int, list[Pair]] = {}
    for pair, ports in flows.items():
        for first, last in ports:
            for index in range(place[first], place[last + 1]):
                pairs_of.setdefault(index, []).append(pair)
    pieces: dict[Pairs, list[tuple[int, int]]] = {}
    for index, pairs in sorted(pairs_of.items()):
        pieces.setdefault(frozenset(pairs), []).append((cuts[index], cuts[index + 1] - 1))
    return ((normalise(ranges), pairs) for pairs, ranges in pieces.items())


def _cover_pairs(
    ports: Ports, pairs: Pairs, host_of: HostOf | None, by_source: bool
) -> Iterable[Box]:
    """Join the ends that are reached from the same other ends; seen from one of the two sides."""
    near, far = (0, 1) if by_source else (1, 0)
    others: dict[str, set[str]] = {}
    for pair in sorted(pairs):
        others.setdefault(pair[near], set()).add(pair[far])
    keys = _choose_keys(others, host_of)
    for key, ends in _group_by(keys, keys.__getitem__):
        sides = (frozenset(ends), key)
        yield Box(sides[near], sides[far], ports)


def _choose_keys(
    others: Mapping[str, set[str]], host_of: HostOf | None
) -> dict[str, frozenset[str]]:
    """Give for each end the set of others that most ends share; its own host may be added."""
    if host_of is None:
        return {end: frozenset(some) for end, some in others.items()}
    known = sorted({one for some in others.values() for one in some})
    by_host = dict(_group_by(known, host_of))
    choices = {
        end: (frozenset(some), frozenset(some.union(by_host.get(host_of(end), ()))))
        for end, some in others.items()
    }
    shared = Counter(key for two in choices.values() for key in set(two))
    return {end: max(two, key=lambda key: shared[key]) for end, two in choices.items()}


def _merge_boxes(boxes: list[Box]) -> list[Box]:
    """Merge boxes that agree in two of three, until nothing changes."""
    count = len(boxes) + 1
    while len(boxes) < count:
        count = len(boxes)
        boxes = [
            Box(*key, union(box.ports for box in some))
            for key, some in _group_by(boxes, lambda box: (box.sources, box.destinations))
        ]
        boxes = [
            Box(key[0], frozenset().union(*(box.destinations for box in some)), key[1])
            for key, some in _group_by(boxes, lambda box: (box.sources, box.ports))
        ]
        boxes = [
            Box(frozenset().union(*(box.sources for box in some)), *key)
            for key, some in _group_by(boxes, lambda box: (box.destinations, box.ports))
        ]
    return boxes


def _group_by(
    items: Iterable[Item], key_of: Callable[[Item], Key]
) -> Iterable[tuple[Key, list[Item]]]:
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key_of(item), []).append(item)
    return found.items()
