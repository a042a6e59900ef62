"""The second stage of a covering run: where two zones do not treat their members alike.

A port that fails for some is probed between all hosts of the two zones, and a pair that fails where
others do not at all ports of its range, until nothing new fails: nothing is inferred. Where all
fail alike there is nothing to find out, and it would only wait for silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from netprobe.model.plan import Block, Plan
from netprobe.model.ports import Ports, intersect, normalise, subtract, union
from netprobe.model.ports import count as count_ports
from netprobe.model.result import Result
from netprobe.plan.cost import RESULTS_PER_S
from netprobe.plan.cover.cover import Between, Cover, cut_blocks
from netprobe.plan.cover.ledger import LEAST_MEMBERS, BlockFacts, Dead, Ledger
from netprobe.plan.cover.pairing import PlacePair

# What all completions of a run may take: five minutes of the coordinator, and so many flows.
MOST_RESULTS = 300 * RESULTS_PER_S
MOST_FLOWS = 5_000_000
# Each round needs a new failure; more than so many have never been needed.
MOST_ROUNDS = 8

Wanted = dict[PlacePair, Ports]


@dataclass(slots=True)
class Completion:
    """Follows a covering run: takes its results, and tells what is to be probed next.

    ``given_up`` are the blocks and zones that would have taken too much.
    """

    cover: Cover
    ledger: Ledger = field(init=False)
    given_up: set[tuple[int, Between]] = field(default_factory=set)
    mixed: dict[str, None] = field(default_factory=dict)
    flows: int = 0
    _results: int = 0
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.cover)

    def add(self, result: Result) -> None:
        """Take one final result."""
        self.ledger.add(result)

    def next_plan(self) -> Plan | None:
        """Give what is to be probed after all that was; None: that was all."""
        self._rounds += 1
        dead = self.ledger.dead()
        found = [(facts, self._list_wanted(facts, dead)) for facts in self.ledger.told()]
        wanted = [(facts, some) for facts, some in found if some]
        if self._rounds > MOST_ROUNDS:
            self.given_up.update(map(_key_of, (facts for facts, _ in wanted)))
            return None
        blocks = [
            block
            for facts, some in self._within_budget(wanted)
            for block in _cut_wanted(facts, some)
        ]
        if not blocks:
            return None
        plan = replace(self.cover.plan, blocks=tuple(blocks))
        self.flows += plan.flow_count()
        return plan

    def _list_wanted(self, facts: BlockFacts, dead: Dead) -> Wanted:
        """Give what is to be probed between two zones, less what was."""
        if _key_of(facts) in self.given_up:
            return {}
        wanted = dict(_find_partners(facts, dead))
        _, doubt, failing = find_doubt(facts, dead)
        if doubt:
            self.mixed[_word_zones(facts)] = None
        for pair in facts.all_pairs() if doubt else ():
            if dead.spares(facts, pair):
                wanted[pair] = union((wanted.get(pair, ()), doubt))
        for pair, ports in failing.items():
            if intersect(ports, doubt):
                wanted[pair] = normalise(facts.entries)
        left = {pair: subtract(ports, facts.asked(pair)) for pair, ports in wanted.items()}
        return {pair: ports for pair, ports in left.items() if ports}

    def _within_budget(
        self, wanted: Iterable[tuple[BlockFacts, Wanted]]
    ) -> Iterator[tuple[BlockFacts, Wanted]]:
        """Give the smallest first; what has no room is given up, and told."""
        for facts, some in sorted(wanted, key=lambda item: _count_flows(item[1])):
            flows = _count_flows(some)
            results = sum(map(len, some.values()))
            if self._results + results > MOST_RESULTS or self.flows + flows > MOST_FLOWS:
                self.given_up.add(_key_of(facts))
                continue
            self._results += results
            yield facts, some


def find_doubt(facts: BlockFacts, dead: Dead) -> tuple[Ports, Ports, dict[PlacePair, Ports]]:
    """Give the ports at which all hosts of two zones fail alike, those to complete between the
    zones, and the ports of each pair that fails.

    A pair that fails at a port to complete is to be asked for all ports.
    """
    failing = {pair: ports for pair, ports in facts.failing() if dead.spares(facts, pair)}
    whole = _find_whole(facts, failing) if failing else ()
    return whole, subtract(union(failing.values()), whole), failing


def _find_whole(facts: BlockFacts, failing: Mapping[PlacePair, Ports]) -> Ports:
    """Give the ports at which all hosts of two zones fail alike, as far as anybody asked.

    Three sources and three destinations must have failed at neighbouring ports: fewer say nothing
    of their zones, and neither do pairs that fail where others pass.
    """
    passed = normalise(facts.passed)
    silent = subtract(union(failing.values()), passed)
    plain = {pair: ports for pair, ports in failing.items() if not intersect(ports, passed)}
    found = []
    for part in silent:
        pairs = [pair for pair, ports in plain.items() if intersect(ports, (part,))]
        sources, ends = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        if min(len(sources), len(ends)) >= LEAST_MEMBERS or len(pairs) == facts.relation.all_pairs:
            found.append(part)
    return tuple(found)


def _find_partners(facts: BlockFacts, dead: Dead) -> Iterator[tuple[PlacePair, Ports]]:
    """Give new pairs for hosts whose only partners nobody could look at, or are dead.

    They ask what the old ones were to ask.
    """
    block, relation = facts.block, facts.relation
    if relation.itself:
        return
    unknown = {pair for pair, _ in facts.unknown()}
    probed = list(facts.probed_pairs())
    good = [pair for pair in probed if pair not in unknown and dead.spares(facts, pair)]
    starts = [at for at in relation.sources if block.sources[at].name not in dead.sources]
    ends = [at for at in relation.ends if block.destinations[at][0].name not in dead.ends]
    by_end, by_start = {pair[1]: pair for pair in probed}, {pair[0]: pair for pair in probed}
    seen_ends, seen_starts = {pair[1] for pair in good}, {pair[0] for pair in good}
    for end in ends:
        if end not in seen_ends:
            some = ((start, end) for start in (sorted(seen_starts) or starts))
            yield from _first_pair(facts, some, by_end.get(end))
    for start in starts:
        if start not in seen_starts:
            some = ((start, end) for end in (sorted(seen_ends) or ends))
            yield from _first_pair(facts, some, by_start.get(start))


def _first_pair(
    facts: BlockFacts, pairs: Iterable[PlacePair], old: PlacePair | None
) -> Iterator[tuple[PlacePair, Ports]]:
    """Give the first of these that was not asked, with the ports of the pair that it replaces."""
    for pair in pairs:
        asked = pair in facts.relation.place_of or pair in facts.extra
        if not asked and facts.source_name(pair) != facts.end_name(pair):
            yield pair, facts.entries if old is None else facts.asked(old)
            return


def _cut_wanted(facts: BlockFacts, wanted: Wanted) -> Iterator[Block]:
    entries = facts.block.ports
    by_entry = {
        # Neighbours that the requirement lists one by one stay two results.
        pair: tuple(part for entry in entries for part in intersect((entry,), ports)) or ports
        for pair, ports in wanted.items()
    }
    yield from cut_blocks(facts.block, by_entry)


def _key_of(facts: BlockFacts) -> tuple[int, Between]:
    return facts.block.index, facts.relation.between


def _count_flows(wanted: Wanted) -> int:
    return sum(map(count_ports, wanted.values()))


def _word_zones(facts: BlockFacts) -> str:
    start, end, _, _ = facts.relation.between
    return f"{start} to {end}"
