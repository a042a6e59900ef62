"""Which failures become outages: those that quick looks see again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netprobe.model.ports import Ports
from netprobe.model.result import Result, ResultKey
from netprobe.watch.flows import flows_of, is_bad, leave, pick

# How many looks must see a failure, the first one too: loss makes silence, and rejects nothing.
SILENT_LOOKS = 3
REJECTED_LOOKS = 2
# After so many quick looks that decided nothing, the next round has to see it.
MOST_LOOKS = 12


class Suspects:
    """Failures of a round, while quick looks ask them again.

    ``hard``: they are outages. ``good``: the results of those that passed instead.
    """

    def __init__(self, failures: Iterable[Result]) -> None:
        self._waiting = [(one, 1) for one in failures]
        self.hard: list[Result] = []
        self.good: list[Result] = []
        self._looks = 0

    @property
    def waiting(self) -> list[Result]:
        """Those that are neither."""
        return [one for one, _ in self._waiting] if self._looks < MOST_LOOKS else []

    def undecided(self) -> list[Result]:
        """Give those that no look decided, also at the end."""
        return [one for one, _ in self._waiting]

    def note(self, seen: Iterable[Result]) -> None:
        """Take a quick look at them."""
        self._looks += 1
        seen = list(seen)
        passed = flows_of(one for one in seen if one.verdict == "pass")
        failed = flows_of(filter(is_bad, seen))
        waiting: list[tuple[Result, int]] = []
        for suspect, looks in self._waiting:
            self.good += pick(seen, _intersect_flows(suspect, passed))
            for part in leave([suspect], passed):
                waiting += ((again, looks + 1) for again in pick([part], failed))
                waiting += ((other, looks) for other in leave([part], failed))
        self.hard += (one for one, looks in waiting if looks >= count_needed(one))
        self._waiting = [(one, looks) for one, looks in waiting if looks < count_needed(one)]


def count_needed(result: Result) -> int:
    """Tell how many looks must see a failure."""
    return SILENT_LOOKS if "filtered" in result.state else REJECTED_LOOKS


def says_something(seen: Iterable[Result], controls: Iterable[Result]) -> bool:
    """Tell whether a quick look may be believed: at least half of the healthy flows pass."""
    flows = flows_of(controls)
    asked = list(pick(seen, flows))
    failed = sum(one.port_count for one in asked if one.verdict != "pass")
    return 2 * failed <= sum(one.port_count for one in asked)


def choose_controls(passes: Iterable[Result], suspects: Iterable[Result]) -> Iterator[Result]:
    """Choose as many healthy flows, one port each: first those between hosts of the suspects."""
    suspects = list(suspects)
    hosts = {end for one in suspects for end in (one.source, one.destination)}
    near: list[Result] = []
    far: list[Result] = []
    for one in passes:
        is_near = one.source in hosts and one.destination in hosts
        some = near if is_near else far
        if len(some) < len(suspects):
            some.append(one)
        if len(near) == len(suspects):
            break
    for one in [*near, *far][: len(suspects)]:
        yield one if one.port is None else one.cut((one.port, one.port))


def _intersect_flows(suspect: Result, flows: dict[ResultKey, Ports]) -> dict[ResultKey, Ports]:
    return flows_of(pick([suspect], flows))
