"""Which changes of routes belong to an outage: between its hosts, and shortly before it began."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from netprobe.model.outage import Interval, OutageMember, RouteMark

# What changed longer before an outage is no part of its report.
NEAR_S: Final = 600.0
# The last ones: an outage of a whole estate has thousands of marks, which say the same.
MOST_MARKS: Final = 20


def find_marks(
    marks: Iterable[RouteMark], times: Interval, members: Sequence[OutageMember]
) -> tuple[RouteMark, ...]:
    """Find those of an outage with these times and flows."""
    near = [one for one in marks if _is_near(one, times)]
    if not near:
        return ()
    pairs = {one.key[2:4] for one in members}
    found = (one for one in near if any(one.concerns(*pair) for pair in pairs))
    return tuple(deque(found, MOST_MARKS))


def _is_near(mark: RouteMark, times: Interval) -> bool:
    """Whether it may have changed before the outage began, or as it did."""
    begun = times.first_bad if times.last_good is None else times.last_good
    return mark.first_now > begun - NEAR_S and mark.last_before < times.first_bad
