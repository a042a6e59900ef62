"""Few boxes that hold exactly the flows, but for a host to itself."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netprobe.model.ports import Ports, each, normalise
from netprobe.request.boxes import Box, Pair, cover

NAMES = [f"h{number}" for number in range(6)]
RANGES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda two: (min(two), max(two))),
    min_size=1,
    max_size=3,
).map(normalise)
FLOWS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), RANGES, max_size=20
)


def host_of(end: str) -> str:
    """Every end is a host of its own."""
    return end


def held(boxes: tuple[Box, ...]) -> list[tuple[str, str, int]]:
    """Give every single flow of all boxes; one that two boxes hold comes twice."""
    return [
        (source, destination, port)
        for box in boxes
        for source, destination in product(box.sources, box.destinations)
        for port in each(box.ports)
    ]


@pytest.mark.slow
@given(FLOWS)
@settings(max_examples=40)
def test_boxes_hold_exactly_the_flows(flows: dict[Pair, Ports]) -> None:
    """All flows, nothing more, and none twice; a host to itself may be in a box or not."""
    asked = [(*pair, port) for pair, ports in flows.items() for port in each(ports)]
    given_back = held(cover(flows, host_of))

    assert sorted(one for one in given_back if one[0] != one[1]) == sorted(
        one for one in asked if one[0] != one[1]
    )
    assert set(asked) <= set(given_back)


@pytest.mark.slow
@given(FLOWS, st.randoms())
@settings(max_examples=20)
def test_the_order_does_not_matter(flows: dict[Pair, Ports], chance: st.DataObject) -> None:
    """The same flows in another order give the same boxes."""
    mixed = list(flows.items())
    chance.shuffle(mixed)  # type: ignore[attr-defined] # a random.Random

    assert cover(dict(mixed), host_of) == cover(flows, host_of)


def test_zone_to_zone_is_one_box() -> None:
    """12 hosts to 12 others, two ranges of ports."""
    left, right = [f"l{n}" for n in range(12)], [f"r{n}" for n in range(12)]
    ports = ((443, 443), (7400, 7499))

    boxes = cover(dict.fromkeys(product(left, right), ports), host_of)

    assert boxes == (Box(frozenset(left), frozenset(right), ports),)


def test_all_to_all_is_one_box() -> None:
    """Nobody sends to himself, and that must not split the box."""
    names = [f"n{n}" for n in range(24)]
    flows = {pair: ((22, 22),) for pair in product(names, names) if pair[0] != pair[1]}

    assert len(cover(flows, host_of)) == 1


def test_an_unreachable_host_and_a_zone() -> None:
    """One host that nobody reaches at any port, and one port between two zones: two or three."""
    left, right = [f"l{n}" for n in range(8)], [f"r{n}" for n in range(8)]
    flows: dict[Pair, Ports] = dict.fromkeys(product(left, right), ((443, 443),))
    flows |= {(name, "l0"): ((1, 1000),) for name in (*left[1:], *right)}

    assert len(cover(flows, host_of)) <= 3


def test_ports_are_joined_where_that_is_shorter() -> None:
    """One port everywhere and another for one pair: two boxes, not one for each pair."""
    flows: dict[Pair, Ports] = {("a", name): ((80, 80),) for name in ("b", "c", "d")}
    flows["a", "b"] = ((80, 80), (443, 443))

    assert len(cover(flows, host_of)) == 2


def test_nothing_needs_no_box() -> None:
    """No flow, no rule."""
    assert cover({}, host_of) == ()
