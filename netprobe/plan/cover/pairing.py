"""Which hosts of two zones probe each other: each at least K times, in as few pairs as possible.

Deterministic: the same hosts, K and seed give the same pairs.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence

PlacePair = tuple[int, int]  # places of a source and of a destination


def pair_up(
    sources: Sequence[int],
    ends: Sequence[int],
    copies: int,
    seed: str,
    may_pair: Callable[[int, int], bool],
    known: Iterable[PlacePair] = (),
) -> tuple[PlacePair, ...]:
    """Give pairs in which every source and every destination occurs ``copies`` times.

    Fewer times where it has fewer partners. Pairs of ``known`` are preferred.
    """
    design = _Pairing(sources, ends, copies, may_pair)
    known = list(known)
    for pair in known:
        if design.needs_both(pair):
            design.take(pair)
    for pair in known:
        if design.needs_one(pair):
            design.take(pair)
    chance = random.Random(seed)
    left = [list(sources), list(ends)]
    for side in left:
        chance.shuffle(side)
    design.match(*left)
    return tuple(sorted(design.pairs))


class _Pairing:
    def __init__(
        self,
        sources: Sequence[int],
        ends: Sequence[int],
        copies: int,
        may_pair: Callable[[int, int], bool],
    ) -> None:
        self.pairs: set[PlacePair] = set()
        self._may_pair = may_pair
        self._source_needs = dict.fromkeys(sources, copies)
        self._end_needs = dict.fromkeys(ends, copies)

    def needs_both(self, pair: PlacePair) -> bool:
        """Tell whether both of its hosts want one more partner."""
        return self._source_needs.get(pair[0], 0) > 0 and self._end_needs.get(pair[1], 0) > 0

    def needs_one(self, pair: PlacePair) -> bool:
        """Tell whether one of its hosts wants one more partner."""
        if pair in self.pairs or pair[0] not in self._source_needs:
            return False
        if pair[1] not in self._end_needs:
            return False
        return self._source_needs[pair[0]] > 0 or self._end_needs[pair[1]] > 0

    def take(self, pair: PlacePair) -> None:
        """Choose a pair."""
        self.pairs.add(pair)
        self._source_needs[pair[0]] -= 1
        self._end_needs[pair[1]] -= 1

    def match(self, sources: Sequence[int], ends: Sequence[int]) -> None:
        """Pair who still wants a partner with each other, and then with anybody."""
        waiting = [
            deque(one for one in some for _ in range(max(0, needs[one])))
            for some, needs in ((sources, self._source_needs), (ends, self._end_needs))
        ]
        anybody = [deque(sources), deque(ends)]
        while waiting[0]:
            source = waiting[0].popleft()
            end = self._find_partner(waiting[1], source, remove=True)
            if end is None:
                end = self._find_partner(anybody[1], source)
            if end is not None:
                self.pairs.add((source, end))
        while waiting[1]:
            end = waiting[1].popleft()
            found = self._find_partner(anybody[0], end, is_end=True)
            if found is not None:
                self.pairs.add((found, end))

    def _find_partner(
        self, some: deque[int], other: int, *, remove: bool = False, is_end: bool = False
    ) -> int | None:
        """Give the next of these that may be paired and is not yet; the queue is turned.

        ``other`` is the source that they are for, or, with ``is_end``, the destination.
        """
        for _ in range(len(some)):
            one = some.popleft()
            pair = (one, other) if is_end else (other, one)
            fits = pair not in self.pairs and self._may_pair(*pair)
            if not (fits and remove):
                some.append(one)
            if fits:
                return one
        return None
