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


@given(ranges, ranges)
def test_labelled_ports_are_cut_by_their_labels(
    labelled: list[tuple[int, int]], some: list[tuple[int, int]]
) -> None:
    """Each port has one label: that of the range that begins first."""
    normal = ports.normalise(some)
    by_start = sorted(enumerate(labelled), key=lambda one: one[1])
    wanted = {
        port: next((at for at, (first, last) in by_start if first <= port <= last), None)
        for port in members(normal)
    }
    split = list(ports.LabelledPorts((one, at) for at, one in enumerate(labelled)).split(normal))
    found = [(port, label) for label, part in split for port in range(part[0], part[1] + 1)]

    assert dict(found).keys() == wanted.keys()
    assert len(found) == len(wanted)
    # Equal starts: either is first.
    starts = {at: first for at, (first, _) in enumerate(labelled)}
    assert {port: label is None or starts[label] for port, label in found} == {
        port: at is None or starts[at] for port, at in wanted.items()
    }


@given(st.lists(st.tuples(st.sampled_from("ab"), ranges), max_size=5))
def test_union_by_key_is_the_union_of_each(parts: list[tuple[str, list[tuple[int, int]]]]) -> None:
    """Of the parts in any order."""
    found = ports.union_by_key(parts)

    assert found == {
        key: ports.union(ports.normalise(some) for name, some in parts if name == key)
        for key in dict(parts)
    }


def test_listed_ports_stay_apart_in_an_intersection() -> None:
    """Entries that touch are not joined by holding them against what was seen."""
    entries = ((2379, 2379), (2380, 2380))

    assert ports.intersect(((2000, 3000),), entries) == entries
    assert ports.subtract(entries, ((1, 5),)) == entries


def test_text() -> None:
    """As people write them."""
    assert ports.text(((53, 53), (7000, 7999))) == "53, 7000-7999"
