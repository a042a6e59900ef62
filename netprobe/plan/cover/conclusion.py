"""What a covering run may say of the flows that it did not probe: who stands for them, or nobody.

Nobody stands for hosts with which nothing gets through, for what nobody could look at, and for what
would have taken too much to complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.coverage import Coverage, StandIn, Unprobed
from netprobe.model.names import names_text
from netprobe.model.ports import Ports, intersect, normalise, subtract, union
from netprobe.model.ports import count as count_ports
from netprobe.model.result import PORTLESS, VERDICTS, Verdict
from netprobe.plan.cover.completion import Completion, find_doubt
from netprobe.plan.cover.ledger import BlockFacts, Dead
from netprobe.plan.cover.pairing import PlacePair

MOST_NAMES = 3
NOT_COMPLETED = (
    "not-completed",
    "some of these hosts fail and others do not, and not all of them were probed: probe this part "
    "alone (--cover all with --only, --from, --to)",
)
NOT_SEEN = ("not-covered", "what was to stand for it could not be looked at, or does not pass")
_WORST: tuple[Verdict, ...] = ("blocked", "exposed", "inconclusive")


def conclude(completion: Completion) -> Coverage:
    """Give the coverage of a run that has come to its end, or was stopped."""
    ledger = completion.ledger
    dead = ledger.dead()
    sets: dict[tuple[str, ...], int] = {}
    groups = tuple(
        group
        for facts in ledger.all_facts()
        for group in _Rest(facts, dead, sets, completion).groups()
    )
    about = completion.cover.plan.coverage or Coverage()
    return replace(
        about,
        completed=completion.flows,
        probed=about.probed + completion.flows,
        mixed=tuple(completion.mixed),
        host_sets=tuple(sets),
        unprobed=groups,
    )


class _Rest(Struct):
    """What was not probed of a block between two zones. ``sets``: the number of each host list."""

    facts: BlockFacts
    dead: Dead
    sets: dict[tuple[str, ...], int]
    completion: Completion

    def groups(self) -> Iterator[Unprobed]:
        """Give the groups: hosts without a stand-in first, then ports by who stands for them."""
        facts = self.facts
        relation = facts.relation
        if relation.itself:
            yield from self._group_ports(relation.pairs, relation.sources, relation.ends)
            return
        dead_sources, dead_ends = self._list_unseen()
        sources = [at for at in relation.sources if at not in dead_sources]
        ends = [at for at in relation.ends if at not in dead_ends]
        if len(sources) < len(relation.sources):
            gone = [at for at in relation.sources if at in dead_sources]
            yield from self._make_group(
                gone, relation.ends, facts.entries, self._word_gone(gone, 0)
            )
        if sources and len(ends) < len(relation.ends):
            gone = [at for at in relation.ends if at in dead_ends]
            yield from self._make_group(sources, gone, facts.entries, self._word_gone(gone, 1))
        if sources and ends:
            kept, there = set(sources), set(ends)
            pairs = [one for one in facts.probed_pairs() if one[0] in kept and one[1] in there]
            yield from self._group_ports(pairs, sources, ends)

    def _list_unseen(self) -> tuple[set[int], set[int]]:
        """Give the sources and destinations of which nobody knows anything between these zones."""
        facts = self.facts
        if not facts.others:
            return set(), set()
        unknown = dict(facts.unknown())
        seen = [
            pair
            for pair in facts.probed_pairs()
            if self.dead.spares(facts, pair) and subtract(facts.asked(pair), unknown.get(pair, ()))
        ]
        starts, ends = {pair[0] for pair in seen}, {pair[1] for pair in seen}
        relation = facts.relation
        return set(relation.sources) - starts, set(relation.ends) - ends

    def _word_gone(self, places: Sequence[int], side: int) -> tuple[str, str]:
        block = self.facts.block
        names = [
            block.destinations[at][0].name if side else block.sources[at].name for at in places
        ]
        told = names_text(list(dict.fromkeys(names)), MOST_NAMES)
        way = "to" if side else "from"
        return (
            "host-not-covered",
            f"nothing is known to get through {way} {told}, so that no other host stands for it",
        )

    def _group_ports(
        self, pairs: Sequence[PlacePair], sources: Sequence[int], ends: Sequence[int]
    ) -> Iterator[Unprobed]:
        facts = self.facts
        entries = normalise(facts.entries)
        whole, doubt, failing = find_doubt(facts, self.dead)
        if (facts.block.index, facts.relation.between) in self.completion.given_up:
            doubt = entries
        yield from self._make_group(sources, ends, doubt, NOT_COMPLETED)
        entries = subtract(entries, doubt)
        by_worst: dict[Verdict, Ports] = {}
        left = whole
        for verdict in _WORST:
            found = union(facts.ports_of(pair, verdict) for pair in failing) if whole else ()
            by_worst[verdict] = intersect(left, found)
            left = subtract(left, found)
        known = normalise(facts.passed) if facts.others else entries
        by_worst["pass"] = subtract(intersect(entries, known), whole)
        for verdict, ports in by_worst.items():
            if ports:
                by = tuple(_stand_ins(facts, pairs, ports, verdict))
                why = ("covered", _word_covered(by, verdict))
                yield from self._make_group(sources, ends, ports, why, by, verdict)
        unknown = subtract(subtract(entries, known), whole)
        yield from self._make_group(sources, ends, unknown, NOT_SEEN)

    def _make_group(
        self,
        sources: Collection[int],
        ends: Collection[int],
        ports: Ports,
        why: tuple[str, str],
        by: tuple[StandIn, ...] = (),
        by_verdict: Verdict | None = None,
    ) -> Iterator[Unprobed]:
        """Make a group, with its reason in words, unless all of its flows were probed."""
        facts, block = self.facts, self.facts.block
        ports = normalise(ports)
        flows = self._count_left(set(sources), set(ends), ports)
        if not ports or flows <= 0:
            return
        requirement = block.requirement
        start, end, _, itself = facts.relation.between
        yield Unprobed(
            matrix=block.matrix,
            requirement=requirement.id,
            protocol=block.protocol,
            ports=() if ports == PORTLESS else ports,
            from_zone=start,
            to_zone=end,
            sources=self._number_hosts(tuple(block.sources[at].name for at in sources)),
            destinations=self._number_hosts(
                tuple(dict.fromkeys(block.destinations[at][0].name for at in ends))
            ),
            itself=itself,
            flows=flows,
            verdict="covered" if by else "not-tested",
            reason=why[0],
            because=why[1],
            by=by,
            by_verdict=by_verdict,
            optional=requirement.optional,
            waived=block.waiver.reason if block.waiver else None,
            expect=requirement.expect,
            also=block.also,
        )

    def _number_hosts(self, names: tuple[str, ...]) -> int:
        return self.sets.setdefault(names, len(self.sets))

    def _count_left(self, sources: set[int], ends: set[int], ports: Ports) -> int:
        """Count the flows that were not probed, without walking all pairs."""
        facts, relation = self.facts, self.facts.relation
        if relation.itself:
            total = len(relation.pairs)
        elif len(sources) == len(relation.sources) and len(ends) == len(relation.ends):
            total = relation.all_pairs
        else:
            names = [facts.block.destinations[at][0].name for at in ends]
            starts = {facts.block.sources[at].name for at in sources}
            total = len(sources) * len(ends) - sum(name in starts for name in names)
        probed = sum(
            count_ports(intersect(facts.asked(pair), ports))
            for pair in facts.probed_pairs()
            if pair[0] in sources and pair[1] in ends
        )
        return total * count_ports(ports) - probed


def _stand_ins(
    facts: BlockFacts, pairs: Sequence[PlacePair], ports: Ports, verdict: Verdict
) -> Iterator[StandIn]:
    """Give who stands for each of these ports: as few pairs as are there in plan order."""
    left = ports
    for pair in pairs:
        asked = facts.asked(pair)
        if verdict == "pass":
            others = facts.ports_of(pair, *VERDICTS) if pair in facts.others else ()
            seen = subtract(asked, others)
        else:
            seen = facts.ports_of(pair, verdict)
        mine = intersect(left, normalise(seen))
        for first, last in mine:
            yield facts.source_name(pair), facts.end_name(pair), first, last
        left = subtract(left, mine)
        if not left:
            return


def _word_covered(by: Sequence[StandIn], verdict: Verdict) -> str:
    if not by:
        return "nothing stands for it"
    source, destination, first, last = by[0]
    ports = "" if not first else f" at {first}" if first == last else f" at {first}-{last}"
    more = f", and {len(by) - 1} more for other ports" if len(by) > 1 else ""
    fate = "" if verdict == "pass" else f", which is {verdict}"
    return f"not probed: {source} → {destination}{ports} stands for it{more}{fate}"
