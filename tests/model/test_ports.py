"""Port sets behave as sets of ports, whatever the ranges."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from netprobe.model import ports

ranges = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda one: (one[0], sum(one))),
    max_size=8,
)


def members(some: ports.Ports) -> set[int]:
    return set(ports.each(some))


@given(ranges)
def test_normalise_keeps_the_ports_and_joins_neighbours(some: list[tuple[int, int]]) -> None:
    """The same ports, sorted, disjoint, with gaps between."""
    normal = ports.normalise(some)

    assert members(normal) == {port for first, last in some for port in range(first, last + 1)}
    assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(normal))
    assert ports.count(normal) == len(members(normal))


@given(ranges, ranges)
def test_intersect_and_subtract_are_those_of_sets(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    """Against Python's own sets."""
    one, two = ports.normalise(left), ports.normalise(right)

    assert members(ports.intersect(one, two)) == members(one) & members(two)
    assert members(ports.subtract(one, two)) == members(one) - members(two)


@given(ranges, st.integers(1, 70))
def test_find_range_gives_the_one_that_holds_a_port(some: list[tuple[int, int]], port: int) -> None:
    """At most one does."""
    normal = ports.normalise(some)

    assert ports.find_range(normal, port) == next(
        (one for one in normal if one[0] <= port <= one[1]), None
    )


def test_listed_ports_stay_apart_in_an_intersection() -> None:
    """Entries that touch are not joined by holding them against what was seen."""
    entries = ((2379, 2379), (2380, 2380))

    assert ports.intersect(((2000, 3000),), entries) == entries
    assert ports.subtract(entries, ((1, 5),)) == entries


def test_text() -> None:
    """As people write them."""
    assert ports.text(((53, 53), (7000, 7999))) == "53, 7000-7999"
