"""Sentences about flows with holes for the names of their ends, so that equal ones are seen."""

from __future__ import annotations

from itertools import pairwise

from netprobe.model.printable import clean
from netprobe.model.result import Result

# Source, destination, address; control characters, which no cleaned text has.
HOLES = ("\x01", "\x02", "\x03")


def make_holes(text: str, result: Result) -> str:
    """Clean a text and put holes where the flow's ends are named; filling them gives it again."""
    text = clean(text)
    names = dict(zip((result.source, result.destination, result.address), HOLES, strict=True))
    for name in sorted(filter(None, map(clean, names)), key=len, reverse=True):
        if name in text:
            text = replace_name(text, name, names.get(name, name))
    return text


def replace_name(text: str, name: str, hole: str) -> str:
    """Replace a name where it is not a part of a longer one: node-1 is not in node-10."""
    parts = text.split(name)
    written = parts[0]
    for before, after in pairwise(parts):
        inside = before[-1:].isalnum() or after[:1].isalnum()
        written += f"{name if inside else hole}{after}"
    return written


def fill_holes(text: str, names: tuple[str, str, str]) -> str:
    """Put these names of source, destination and address into the holes."""
    for hole, name in zip(HOLES, names, strict=True):
        text = text.replace(hole, name)
    return text
