"""What is known of each pair of zones while its plan is probed: memory grows with what fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from netprobe.model.plan import Block
from netprobe.model.ports import PortRange, Ports, normalise, subtract, union
from netprobe.model.result import PORTLESS, UNPROBED, Result, Verdict
from netprobe.plan.cover.cover import Between, Cover, Relation, planned_ports
from netprobe.plan.cover.pairing import PlacePair

# Fewer partners than these say nothing of a host, fewer hosts nothing of their zone.
LEAST_MEMBERS = 3


class BlockFacts(Struct):
    """What was seen between two zones for one block: ports that passed, and what did not by pair.

    ``extra`` are the ports of each pair that were probed beside the plan that covers.
    """

    block: Block
    relation: Relation
    passed: set[PortRange] = field(default_factory=set)
    others: dict[PlacePair, dict[Verdict, list[PortRange]]] = field(default_factory=dict)
    extra: dict[PlacePair, Ports] = field(default_factory=dict)

    @property
    def entries(self) -> Ports:
        """The ports that are required."""
        return self.block.ports or PORTLESS

    def source_name(self, pair: PlacePair) -> str:
        """Give the name of a pair's source."""
        return self.block.sources[pair[0]].name

    def end_name(self, pair: PlacePair) -> str:
        """Give the name of a pair's destination."""
        return self.block.destinations[pair[1]][0].name

    def asked(self, pair: PlacePair) -> Ports:
        """Give the ports of a pair that were probed."""
        planned = planned_ports(self.block, self.relation, pair)
        more = self.extra.get(pair)
        return planned if more is None else union((planned, more))

    def ports_of(self, pair: PlacePair, *verdicts: Verdict) -> Ports:
        """Give the ports of a pair that have one of these verdicts, of those that did not pass."""
        found = self.others.get(pair, {})
        return normalise(one for verdict in verdicts for one in found.get(verdict, ()))

    def failing(self) -> Iterator[tuple[PlacePair, Ports]]:
        """Give the pairs that something stops, or nobody can judge, with these ports."""
        for pair in self.others:
            ports = self.ports_of(pair, "blocked", "exposed", "inconclusive")
            if ports:
                yield pair, ports

    def unknown(self) -> Iterator[tuple[PlacePair, Ports]]:
        """Give the pairs at which nobody could look, with these ports."""
        for pair in self.others:
            ports = self.ports_of(pair, *UNPROBED)
            if ports:
                yield pair, ports

    def all_pairs(self) -> Iterator[PlacePair]:
        """Give every pair of the two zones, probed or not."""
        if self.relation.itself:
            yield from self.relation.pairs
            return
        for source in self.relation.sources:
            for end in self.relation.ends:
                if self.source_name((source, end)) != self.end_name((source, end)):
                    yield source, end

    def probed_pairs(self) -> Iterator[PlacePair]:
        """Give every pair that was probed."""
        yield from self.relation.pairs
        yield from (pair for pair in self.extra if pair not in self.relation.place_of)


class Dead(Struct, frozen=True):
    """Hosts with which nothing gets through, at either end: they are findings of their own."""

    sources: frozenset[str]
    ends: frozenset[str]

    def spares(self, facts: BlockFacts, pair: PlacePair) -> bool:
        """Tell whether both hosts of a pair live."""
        return facts.source_name(pair) not in self.sources and facts.end_name(pair) not in self.ends


class _Peers(Struct):
    """Of one host at one end: whether anything got through, and with whom nothing did."""

    passed: bool = False
    down: bool = False
    failed: set[str] = field(default_factory=set)
    untested: int = 0

    def is_dead(self, *, is_source: bool) -> bool:
        """Tell whether nothing got through with anybody, so that it says nothing of its zone."""
        if self.passed:
            return False
        unseen = is_source and self.untested > 0 and not self.failed
        return unseen or self.down or len(self.failed) >= LEAST_MEMBERS


class Ledger:
    """Takes every result of a covering run, in any order."""

    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        self._facts: dict[tuple[int, Between], BlockFacts] = {}
        self._sources: dict[str, _Peers] = {}
        self._ends: dict[str, _Peers] = {}

    def add(self, result: Result) -> None:
        """Take one final result."""
        index, source, end = result.order
        block = self._cover.whole.blocks[index]
        layout = self._cover.layouts[index]
        relation = layout.relation_of(block, source, end)
        facts = self.facts(index, relation)
        ports = result.ports or PORTLESS
        pair = (source, end)
        more = subtract(ports, planned_ports(block, relation, pair))
        if more:
            facts.extra[pair] = union((facts.extra.get(pair, ()), more))
        if result.verdict == "pass":
            facts.passed.update(ports)
        else:
            facts.others.setdefault(pair, {}).setdefault(result.verdict, []).extend(ports)
        self._note_hosts(result)

    def _note_hosts(self, result: Result) -> None:
        if result.source == result.destination:
            return  # what it says to itself never met a network
        heard = result.verdict == "exposed" or (
            result.verdict == "pass"
            and (result.expect == "allowed" or result.state in ("open", "closed"))
        )
        ends = (
            (self._sources, result.source, result.destination),
            (self._ends, result.destination, result.source),
        )
        for known, name, other in ends:
            peers = known.setdefault(name, _Peers())
            peers.passed = peers.passed or heard
            if result.verdict in UNPROBED:
                peers.untested += 1
            elif result.verdict != "pass":
                peers.failed.add(other)
        if result.verdict == "blocked" and result.where == ("host",):
            self._ends[result.destination].down = True

    def facts(self, index: int, relation: Relation) -> BlockFacts:
        """Give what is known of a block between two zones."""
        key = (index, relation.between)
        if key not in self._facts:
            self._facts[key] = BlockFacts(self._cover.whole.blocks[index], relation)
        return self._facts[key]

    def all_facts(self) -> Iterator[BlockFacts]:
        """Give what is known of every block between all zones, in plan order."""
        for index, layout in enumerate(self._cover.layouts):
            for relation in layout.relations.values():
                yield self.facts(index, relation)

    def told(self) -> Iterable[BlockFacts]:
        """Give those of which some result did not pass."""
        return [facts for facts in self._facts.values() if facts.others]

    def dead(self) -> Dead:
        """Give the hosts from which, and those to which, nothing got through."""
        return Dead(
            frozenset(name for name, one in self._sources.items() if one.is_dead(is_source=True)),
            frozenset(name for name, one in self._ends.items() if one.is_dead(is_source=False)),
        )
