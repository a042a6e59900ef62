"""A plan that covers a larger one: every host to and from every zone, every port between zones.

Firewalls differ by zone and by host. So each host is probed to and from each zone, in about hosts
× zones pairs, and a range of ports is sliced over the pairs of two zones: each pair asks the first
and the last port, and a slice of its own (docs/reach.md). Deterministic, as ``pairing`` is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.coverage import Coverage
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import PortRange, Ports, normalise, subtract
from netprobe.model.result import PORTLESS, Result
from netprobe.plan.cover.pairing import PlacePair, pair_up
from netprobe.plan.cover.zones import zone_of_end, zone_of_source

# Ranges are not cut into smaller slices than this.
LEAST_SLICE = 4
# How sure the figure of hidden blocks is.
CHANCE_TO_MISS = 0.05

# Two zones, whether the destinations have no agent, and whether a host meets itself: what is
# measured in another way stands for nothing else.
Between = tuple[str, str, bool, bool]

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Relation:
    """The hosts of two zones as places in a block, and the pairs of them that are probed."""

    between: Between
    sources: tuple[int, ...]
    ends: tuple[int, ...]
    pairs: tuple[PlacePair, ...]
    all_pairs: int

    @cached_property
    def place_of(self) -> Mapping[PlacePair, int]:
        """The place of each pair that is probed among all of them."""
        return {pair: at for at, pair in enumerate(self.pairs)}

    @property
    def itself(self) -> bool:
        """Whether these are hosts that probe their own address."""
        return self.between[3]


class Layout(Struct):
    """The relations of blocks with the same sources and destinations, and where each host is."""

    relations: dict[Between, Relation]
    source_zones: tuple[str, ...]
    end_zones: tuple[str, ...]
    chosen: tuple[tuple[int, ...], ...]

    def relation_of(self, block: Block, source: int, end: int) -> Relation:
        """Give the relation that a pair of the block belongs to."""
        return self.relations[self.between(block, source, end)]

    def between(self, block: Block, source: int, end: int) -> Between:
        """Give the key of a pair's relation."""
        host = block.destinations[end][0]
        itself = block.sources[source].name == host.name
        bare = not host.may_start
        return (self.source_zones[source], self.end_zones[end], bare, itself)


class Cover(Struct, frozen=True):
    """The covering plan, the plan that it covers, and the layout of each block of that."""

    plan: Plan
    whole: Plan
    layouts: tuple[Layout, ...]


def cover(plan: Plan, copies: int = 1, seed: int = 0) -> Cover:
    """Choose the pairs and the ports to probe."""
    layouts = _Layouts(copies, seed)
    found = tuple(layouts.layout(block) for block in plan.blocks)
    parts = [
        part
        for block, layout in zip(plan.blocks, found, strict=True)
        for part in _parts_of_block(block, layout)
    ]
    covering = replace(plan, blocks=tuple(parts))
    about = Coverage(
        copies=copies,
        seed=seed,
        zones={zone: tuple(names) for zone, names in sorted(layouts.zones.items())},
        pairs=layouts.count_pairs(),
        all_pairs=_count_pairs(plan),
        required=plan.flow_count(),
        probed=covering.flow_count(),
        **_word_chance(found),  # type: ignore[arg-type]
    )
    return Cover(replace(covering, coverage=about), plan, found)


class _Layouts:
    """Makes the layouts of all blocks; those of equal hosts share one, others share pairs."""

    def __init__(self, copies: int, seed: int) -> None:
        self.zones: dict[str, dict[str, None]] = {}
        self._copies = copies
        self._seed = seed
        self._known: dict[object, Layout] = {}
        self._pairs: dict[Between, dict[tuple[str, str], None]] = {}

    def layout(self, block: Block) -> Layout:
        """Give the layout of a block."""
        starts = tuple(host.name for host in block.sources)
        ends = tuple((host.name, address.text) for host, address in block.destinations)
        key = (starts, ends, block.family, block.local)
        if key not in self._known:
            self._known[key] = self._make_layout(block)
        return self._known[key]

    def count_pairs(self) -> int:
        """Tell how many pairs of two different hosts probe each other."""
        return sum(len(pairs) for key, pairs in self._pairs.items() if not key[3])

    def _make_layout(self, block: Block) -> Layout:
        starts = [zone_of_source(host, block.family) for host in block.sources]
        ends = [zone_of_end(*end) for end in block.destinations]
        for host, zone in (
            *zip(block.sources, starts, strict=True),
            *((end[0], zone) for end, zone in zip(block.destinations, ends, strict=True)),
        ):
            self.zones.setdefault(zone, {})[host.name] = None
        by_start = _group_items((zone, at) for at, zone in enumerate(starts))
        bare = [not host.may_start for host, _ in block.destinations]
        by_end = _group_items((zone, at) for at, zone in enumerate(zip(ends, bare, strict=True)))
        relations = {
            one.between: one
            for start, sources in by_start.items()
            for (end, is_bare), places in by_end.items()
            for one in self._relate_zones(block, (start, end, is_bare), sources, places)
        }
        peers: list[list[int]] = [[] for _ in block.sources]
        for relation in relations.values():
            for source, end in relation.pairs:
                peers[source].append(end)
        chosen = tuple(tuple(sorted(some)) for some in peers)
        return Layout(relations, tuple(starts), tuple(ends), chosen)

    def _relate_zones(
        self,
        block: Block,
        zones: tuple[str, str, bool],
        sources: tuple[int, ...],
        ends: tuple[int, ...],
    ) -> Iterator[Relation]:
        places = _group_items((block.destinations[end][0].name, end) for end in ends)
        own = tuple((at, end) for at in sources for end in places.get(block.sources[at].name, ()))
        if block.local and own:
            starts, used = zip(*own, strict=True)
            yield Relation((*zones, True), starts, used, own, len(own))
        total = len(sources) * len(ends) - len(own)
        if total:
            pairs = self._pair_up(block, (*zones, False), sources, ends)
            yield Relation((*zones, False), sources, ends, pairs, total)

    def _pair_up(
        self, block: Block, between: Between, sources: tuple[int, ...], ends: tuple[int, ...]
    ) -> tuple[PlacePair, ...]:
        starts = {block.sources[at].name: at for at in sources}
        places = _group_items((block.destinations[end][0].name, end) for end in ends)
        known = self._pairs.setdefault(between, {})
        usable = [
            (starts[start], end)
            for start, name in known
            if start in starts
            for end in places.get(name, ())
        ]

        def may_pair(source: int, end: int) -> bool:
            return block.sources[source].name != block.destinations[end][0].name

        seed = f"{self._seed}/{between}"
        pairs = pair_up(sources, ends, self._copies, seed, may_pair, usable)
        for source, end in pairs:
            known[block.sources[source].name, block.destinations[end][0].name] = None
        return pairs


def _group_items(items: Iterable[tuple[_Key, _Item]]) -> dict[_Key, tuple[_Item, ...]]:
    """Give the items of each key, in their order."""
    found: dict[_Key, list[_Item]] = {}
    for key, item in items:
        found.setdefault(key, []).append(item)
    return {key: tuple(some) for key, some in found.items()}


def planned_ports(block: Block, relation: Relation, pair: PlacePair) -> Ports:
    """Give the ports that a pair of the relation is asked for; () where it is not chosen."""
    place = relation.place_of.get(pair)
    if place is None:
        return ()
    return slice_ports(block.ports, place, len(relation.pairs)) or PORTLESS


def slice_ports(entries: Ports, place: int, total: int) -> Ports:
    """Give the ports of a pair, by its place among all pairs between two zones.

    Of each range: the first, the last, and a slice; all slices together are the range.
    """
    found: list[PortRange] = []
    for first, last in entries:
        length = last - first + 1
        size = max(-(-length // total), LEAST_SLICE)
        begin = first + place * length // total
        cut = (begin, min(last, begin + size - 1))
        parts = ((first, first), cut, (last, last))
        found += [(first, last)] if size >= length else normalise(parts)
    return tuple(found)


def _parts_of_block(block: Block, layout: Layout) -> Iterator[Block]:
    """Split a block into parts whose pairs are asked for the same ports."""
    if not any(last - first >= LEAST_SLICE for first, last in block.ports):
        yield replace(block, chosen=layout.chosen)
        return
    by_place: dict[tuple[int, int], list[PlacePair]] = {}
    for relation in layout.relations.values():
        total = len(relation.pairs)
        for place, pair in enumerate(relation.pairs):
            by_place.setdefault((place, total), []).append(pair)
    by_ports: dict[Ports, list[PlacePair]] = {}
    for (place, total), pairs in by_place.items():
        by_ports.setdefault(slice_ports(block.ports, place, total), []).extend(pairs)
    for ports, pairs in by_ports.items():
        yield block.keep_pairs(ports, pairs)


def cut_blocks(block: Block, wanted: Mapping[PlacePair, Ports]) -> Iterator[Block]:
    """Give the parts of a block that ask these pairs for these ports."""
    by_ports = _group_items((ports, pair) for pair, ports in wanted.items())
    for ports, pairs in by_ports.items():
        yield block.keep_pairs(() if ports == PORTLESS else ports, pairs)


def with_flows(cover: Cover, results: Iterable[Result]) -> Cover:
    """Add what an earlier run has probed beside the plan that covers, to be asked again or kept."""
    places = _Places(cover.whole)
    wanted: dict[int, dict[PlacePair, list[PortRange]]] = {}
    for result in results:
        for index, pair in places.find(result):
            block, layout = cover.whole.blocks[index], cover.layouts[index]
            relation = layout.relation_of(block, *pair)
            planned = planned_ports(block, relation, pair)
            for part in subtract(result.ports or PORTLESS, planned):
                wanted.setdefault(index, {}).setdefault(pair, []).append(part)
    more = (
        block
        for index, pairs in wanted.items()
        for block in cut_blocks(
            cover.whole.blocks[index],
            {pair: normalise(ports) for pair, ports in pairs.items()},
        )
    )
    plan = replace(cover.plan, blocks=(*cover.plan.blocks, *more))
    about = plan.coverage and replace(plan.coverage, probed=plan.flow_count())
    return replace(cover, plan=replace(plan, coverage=about))


class _Places:
    """Finds the flows of a plan that an earlier result is of, at their places."""

    def __init__(self, plan: Plan) -> None:
        self._blocks: dict[tuple[str, str, str], list[Block]] = {}
        self._starts: dict[int, dict[str, int]] = {}
        self._ends: dict[int, dict[tuple[str, str | None], int]] = {}
        for block in plan.blocks:
            for name in block.names_of_rows:
                self._blocks.setdefault((*name, block.protocol), []).append(block)

    def find(self, result: Result) -> Iterator[tuple[int, PlacePair]]:
        """Give the block and the pair of a result, where the plan has them."""
        keys = ((*name, result.protocol) for name in result.names)
        blocks = {block.index: block for key in keys for block in self._blocks.get(key, ())}
        for block in blocks.values():
            if block.index not in self._starts:
                self._note_hosts(block)
            start = self._starts[block.index].get(result.source)
            address = None if block.family is None else result.address
            end = self._ends[block.index].get((result.destination, address))
            if start is not None and end is not None and block.has_flow(start, end):
                yield block.index, (start, end)

    def _note_hosts(self, block: Block) -> None:
        self._starts[block.index] = {host.name: at for at, host in enumerate(block.sources)}
        self._ends[block.index] = {
            (host.name, None if block.family is None else address.text): at
            for at, (host, address) in enumerate(block.destinations)
        }


def _count_pairs(plan: Plan) -> int:
    """Count the pairs of two different hosts; blocks of the same hosts are counted once."""
    ends_of: dict[frozenset[str], set[str]] = {}
    for block in plan.blocks:
        starts = frozenset(host.name for host in block.sources)
        ends_of.setdefault(starts, set()).update(host.name for host, _ in block.destinations)
    # Each host's own set of partners: those of all groups of sources that it is in.
    groups = list(ends_of)
    member_of: dict[str, tuple[int, ...]] = {}
    for number, group in enumerate(groups):
        for name in group:
            member_of[name] = (*member_of.get(name, ()), number)
    sizes: dict[tuple[int, ...], set[str]] = {}
    total = 0
    for name, numbers in member_of.items():
        if numbers not in sizes:
            sizes[numbers] = set().union(*(ends_of[groups[number]] for number in numbers))
        total += len(sizes[numbers]) - (name in sizes[numbers])
    return total


def _word_chance(layouts: Iterable[Layout]) -> dict[str, object]:
    """Give what chance says of the two zones with the most pairs that are not probed."""
    largest = max(
        (one for layout in layouts for one in layout.relations.values() if not one.itself),
        key=lambda one: one.all_pairs - len(one.pairs),
        default=None,
    )
    if largest is None or not largest.pairs:
        return {}
    share = len(largest.pairs) / largest.all_pairs
    # A block of so large a share is missed by all probed pairs with the chance to miss.
    needed = 1 - CHANCE_TO_MISS ** (1 / len(largest.pairs))
    sides = (len(largest.sources), len(largest.ends))
    hidden = tuple(min(side, -(-round(side * needed**0.5 * 1000) // 1000)) for side in sides)
    return {"hidden": hidden, "single": share}
