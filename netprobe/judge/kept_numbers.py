"""Numbers of findings belong to the file: failures of a file that keeps them have these again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netprobe.judge.cut_off import find_cut_off_proof
from netprobe.judge.rules import Stopped
from netprobe.judge.ways import find_proof, find_wall_proof
from netprobe.model.kept_finding import KeptFinding
from netprobe.model.ports import intersect, subtract
from netprobe.model.result import Result

FlowName = tuple[str, str, str, str, str]


class KeptNumbers:
    """The numbers that a file gives to its failures."""

    def __init__(self, kept: Sequence[KeptFinding]) -> None:
        self._kept = {one.number: one for one in kept}
        self.last = max(self._kept, default=0)
        self._numbers: dict[FlowName, list[tuple[int, int, str | None, int]]] = {}
        for finding in kept:
            for one in finding.members:
                name = (one.requirement, one.source, one.destination, one.address, one.protocol)
                span = (one.port or 0, one.end_port or one.port or 0, one.matrix, finding.number)
                self._numbers.setdefault(name, []).append(span)

    def take(
        self, failures: Iterable[Result]
    ) -> tuple[list[tuple[KeptFinding, Stopped]], list[Result]]:
        """Give the findings of the file with their failures, and the failures without a number.

        What does not count as the rest of its finding any more, since somebody has accepted it, has
        none.
        """
        named: dict[int, list[Result]] = {}
        rest = []
        for failure in failures:
            for number, part in self._split_by_number(failure):
                if number is None:
                    rest.append(part)
                else:
                    named.setdefault(number, []).append(part)
        found = []
        for number in sorted(named):
            first, *others = _split_by_weight(named[number])
            kept = self._kept[number]
            proof = _find_proof_of_all(first) if kept.everything else None
            found.append((kept, Stopped(first, kept.everything, proof or find_proof(first))))
            rest += [one for some in others for one in some]
        return found, rest

    def _split_by_number(self, result: Result) -> Iterator[tuple[int | None, Result]]:
        name = (
            result.requirement, result.source, result.destination, result.address, result.protocol,
        )  # fmt: skip
        spans = [one for one in self._numbers.get(name, ()) if one[2] in (None, result.matrix)]
        if not result.ports:
            yield (spans[0][3] if spans else None), result
            return
        left = result.ports
        for first, last, _, number in spans:
            for part in intersect(left, ((first, last),)):
                yield number, result.cut(part)
            left = subtract(left, ((first, last),))
        for part in left:
            yield None, result.cut(part)


def _find_proof_of_all(members: Sequence[Result]) -> Result | None:
    """Give the member that shows why nothing gets through between hosts, where one does."""
    return find_cut_off_proof(members) or find_wall_proof(members)


def _split_by_weight(failures: Sequence[Result]) -> list[list[Result]]:
    """Split what decides from what does not, and by verdict; what decides first."""
    parts: dict[tuple[bool, str], list[Result]] = {}
    for one in failures:
        parts.setdefault((not one.decides, one.verdict), []).append(one)
    return [parts[key] for key in sorted(parts)]
