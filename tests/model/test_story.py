"""The six places of a flow's story."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from netprobe.model.story import Sight, Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds

NAMES = ("source-out", "destination-in", "socket", "destination-out", "source-in", "prober")
WORDS = {"y": "yes", "n": "no", "?": "unknown"}


def story(letters: str) -> Story:
    """The story of these sights, one letter a place: y, n, or ?."""
    return Story(*(StoryPlace(WORDS[one], 7, interface="eth0") for one in letters))  # type: ignore[arg-type]


def letters(some: Story) -> str:
    """The sights of a story."""
    return "".join({word: one for one, word in WORDS.items()}[at.seen] for _, at in some.places())


def test_the_places_have_their_order_and_names() -> None:
    """As a request and its answer pass them; the names are those of JSON."""
    assert tuple(name for name, _ in Story().places()) == NAMES
    assert {place.seen for _, place in Story().places()} == {"unknown"}


@pytest.mark.parametrize(
    ("told", "settled"),
    [
        ("yynnnn", "yynnnn"),
        ("nnnnnn", "nnnnnn"),
        ("??????", "??????"),
        # What came later was there before, whoever missed it.
        ("nyyyyy", "?yyyyy"),
        ("nnyynn", "??yynn"),
        ("ynnnyn", "ynnnyn"),
        ("nnnnny", "nnnn?y"),
        ("nnnnyy", "?nnnyy"),
        ("y?nyn?", "y??yn?"),
    ],
)
def test_a_later_yes_makes_an_earlier_no_unknown(told: str, settled: str) -> None:
    """A recorder that did not see a packet which went on has missed it.

    What came to the source may be somebody else's, so it says nothing of the destination.
    """
    assert letters(story(told).settled()) == settled


def test_settled_stories_are_consistent_and_lose_nothing_else() -> None:
    """Every combination: no "no" stands before a "yes" of the same host or of the request's way,
    and no other sight changes."""
    for some in itertools.product("yn?", repeat=6):
        told = "".join(some)
        settled = letters(story(told).settled())
        assert "n" not in settled[: settled[:4].rfind("y") + 1]
        assert settled[4:] != "ny"
        assert (settled[0], settled[4]) != ("n", "y")
        assert all(a == b or (a, b) == ("n", "?") for a, b in zip(told, settled, strict=True)), told
        assert story(told).settled().settled() == story(told).settled()


def test_settling_keeps_counts_and_errors() -> None:
    """Only the word changes."""
    errors = (StoryError("10.0.0.9", 3, 13, 63, 2),)
    told = Story(StoryPlace("no"), StoryPlace("yes", 3, Nanoseconds(5), "eth0", 62), errors=errors)

    settled = told.settled()
    assert settled.errors == errors
    assert settled.destination_in == told.destination_in
    assert settled.source_out == StoryPlace("unknown")


def test_the_sights_are_three() -> None:
    """The judge's tables know these words."""
    assert set(get_args(Sight)) == set(WORDS.values())
