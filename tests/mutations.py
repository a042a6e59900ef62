"""Good JSON and YAML with odd values at every place, the same ones in every run."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Place = tuple[Any, ...]


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# What no writer of ours leaves at the place in question, and sometimes what one does.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 65535, 65536, 2**53, 2**63, 10**400, -(10**30), 1.5, -0.0, 1e308,
    float("inf"), float("nan"), "", "x", "1", "\ud800", "\x1b[31mred", "a\nb", "\u202e", "a" * 3000,
    "/../..", "2026-99-99T", "netprobe.run/9", [], {}, [[]], [None], [1, 2], [5, 1], [1, 2, 3],
    ["a", "b"], [["a", "b", "tcp", [[5, 1]]]], [["a", "b", "tcp", [[1, 65536]]]], {"a": 1},
    {"": {}}, {"name": [], "state": {}}, _nested(30), _nested(200),
)  # fmt: skip
# Bytes that stand anywhere in a damaged file.
DEBRIS = ("", "\0", '"', "[", "{", "]}", ",", "\n", "\\", "9" * 5000, "NaN", "[" * 3000, "\ud800")


def mutated(value: Any, chance: random.Random) -> Any:
    """A copy with one or two places that hold something else, or nothing."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 2)):
        *way, last = chance.choice(list(_places_in(value)))
        parent = value
        for step in way:
            parent = parent[step]
        act = chance.random()
        if act < 0.15:
            del parent[last]
        elif act < 0.25 and isinstance(parent, dict):
            parent[chance.choice(("new", "", "schema"))] = chance.choice(ODD)
        else:
            parent[last] = copy.deepcopy(chance.choice(ODD))
        if not value:
            break
    return value


def damaged(text: str, chance: random.Random) -> bytes:
    """The text, of ten times once with some debris in it."""
    if chance.random() < 0.1:
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(DEBRIS) + text[place + chance.randint(0, 5) :]
    return text.encode("utf-8", "surrogatepass")


def json_of(value: Any, chance: random.Random) -> bytes:
    """The value as JSON, sometimes damaged."""
    return damaged(json.dumps(value, ensure_ascii=chance.random() < 0.9), chance)


def _places_in(value: Any, way: Place = ()) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in items:
        yield (*way, step)
        if isinstance(inner, dict | list):
            yield from _places_in(inner, (*way, step))
