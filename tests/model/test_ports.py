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


@given(ranges, ranges)
def test_what_is_near_holds_all_that_is_common(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    """And no range that begins behind the last port; the others may overlap."""
    normal, few = ports.normalise(some), tuple(sorted(others))
    near = ports.find_near(normal, few)

    assert set(near) <= set(normal)
    assert members(near) & members(few) == members(normal) & members(few)
    assert all(first <= max(members(few)) for first, _ in near)
    common, rest = ports.divide(few, normal)
    assert members(ports.normalise(common)) == members(few) & members(normal)
    assert members(ports.normalise(rest)) == members(few) - members(normal)


@given(ranges, ranges)
def test_labelled_ports_are_cut_by_their_labels(
    labelled: list[tuple[int, int]], some: list[tuple[int, int]]
) -> None:
    """Each port has one label: that of the first range given that holds it."""
    normal = ports.normalise(some)
    split = list(ports.LabelledPorts((one, at) for at, one in enumerate(labelled)).split(normal))
    found = [(port, label) for label, part in split for port in range(part[0], part[1] + 1)]

    assert len(found) == len(members(normal))
    assert dict(found) == {
        port: next((at for at, (first, last) in enumerate(labelled) if first <= port <= last), None)
        for port in members(normal)
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


def test_entries_of_a_row_may_overlap() -> None:
    """A setting's port within a range that is listed beside it."""
    entries = ((7000, 7010), (7005, 7005))

    assert ports.intersect(entries, ((7008, 7008),)) == ((7008, 7008),)
    assert ports.find_near(((1, 2), (7006, 7007)), entries) == ((1, 2), (7006, 7007))


def test_text() -> None:
    """As people write them."""
    assert ports.text(((53, 53), (7000, 7999))) == "53, 7000-7999"
