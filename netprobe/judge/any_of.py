"""Rows of which one is enough for a pair of hosts (``any_of``): what fails beside it is excused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.judge.rules import Stopped
from netprobe.model.plan import AnyOf, Block, Plan
from netprobe.model.ports import count
from netprobe.model.result import Result

# The group, and source, destination and address.
_GroupPair = tuple[AnyOf, str, str, str]


class AnyOfGroups:
    """Holds failures of such rows back until it is known whether another one passes.

    ``to_the_end``: flows are added to the plan on the way, so that only its end is an end.
    """

    def __init__(self, plan: Plan, *, to_the_end: bool = False) -> None:
        self._to_the_end = to_the_end
        self._blocks: dict[AnyOf, list[_Members]] = {}
        self._groups: dict[tuple[str, str], AnyOf] = {}
        self._open: dict[_GroupPair, _PairRows] = {}
        for block in plan.blocks:
            if block.any_of is not None:
                self._blocks.setdefault(block.any_of, []).append(_Members(block))
                self._groups[block.matrix, block.requirement.id] = block.any_of

    def note(self, result: Result) -> None:
        """Note a result of an earlier run that holds for this one."""
        key = self._key_of(result)
        if key is not None:
            self._open_pair(key).add(result)

    def settle(self, results: Iterable[Result]) -> Iterator[Result]:
        """Give the results that are final now, of these and of those that were held back."""
        for result in results:
            key = self._key_of(result)
            if key is None:
                yield result
                continue
            rows = self._open_pair(key)
            rows.add(result)
            if result.any_of is not None and result.verdict != "pass":
                rows.held.append(result)
            else:
                yield result
            if rows.seen >= rows.expected and not self._to_the_end:
                yield from self._open.pop(key).release()

    def finish(self) -> Iterator[Result]:
        """Give all that is held back: nothing more will be known."""
        for rows in self._open.values():
            yield from rows.release()
        self._open.clear()

    def _key_of(self, result: Result) -> _GroupPair | None:
        group = self._groups.get((result.matrix, result.requirement))
        if group is None:
            return None
        return (group, result.source, result.destination, result.address)

    def _open_pair(self, key: _GroupPair) -> _PairRows:
        if key not in self._open:
            group, *ends = key
            expected = sum(one.count_flows(*ends) for one in self._blocks[group])
            # A name has addresses that the plan does not know.
            self._open[key] = _PairRows(expected or 1 << 62)
        return self._open[key]


class _Members:
    """A block of the plan, and where its hosts stand in it."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._sources = {host.name: place for place, host in enumerate(block.sources)}
        ends = enumerate(block.destinations)
        self._ends = {(host.name, address.text): place for place, (host, address) in ends}

    def count_flows(self, source: str, destination: str, address: str) -> int:
        """Count the flows that the block has between these."""
        start, end = self._sources.get(source), self._ends.get((destination, address))
        if start is None or end is None or not self._block.has_pair(start, end):
            return 0
        return count(self._block.ports) or 1


class _PairRows(Struct):
    """What is known of the rows of a group for one pair: how many flows, and which rows pass."""

    expected: int
    seen: int = 0
    passing: dict[tuple[str, str], bool] = field(default_factory=dict)
    held: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Note one result."""
        self.seen += result.port_count
        passes, row = result.verdict == "pass", (result.matrix, result.requirement)
        self.passing[row] = passes and self.passing.get(row, True)

    def release(self) -> Iterator[Result]:
        """Give what was held back, with the row that is enough where one passes."""
        enough = next((row[1] for row, passes in sorted(self.passing.items()) if passes), None)
        yield from (replace(one, spared=enough) for one in self.held)


def set_apart(failures: Iterable[Result]) -> tuple[list[Result], dict[int, list[Result]]]:
    """Set apart all but one failure of each pair for which all rows of a group fail.

    They have its finding, and stand in the dictionary by its ``id``. It is the one that tells most
    of its place.
    """
    kept: list[Result] = []
    groups: dict[tuple[object, ...], list[Result]] = {}
    for one in failures:
        if one.any_of is None or one.spared is not None:
            kept.append(one)
        else:
            ends = (one.source, one.destination, one.address, one.verdict, one.decides)
            groups.setdefault((one.any_of, *ends), []).append(one)
    if not groups:
        return kept, {}
    followers: dict[int, list[Result]] = {}
    for some in groups.values():
        first = min(some, key=lambda one: (one.rejected_by is None, len(one.where)))
        kept.append(first)
        followers[id(first)] = [one for one in some if one is not first]
    return sorted(kept, key=lambda one: (one.order, one.address, one.port or 0)), followers


def join_again(causes: list[Stopped], followers: dict[int, list[Result]]) -> list[Stopped]:
    """Give the causes with the failures that were set apart."""
    for cause in causes:
        cause.members.extend(
            one for first in [*cause.members] for one in followers.get(id(first), ())
        )
    return causes
