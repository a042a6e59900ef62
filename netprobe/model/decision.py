"""Decision tables: a key of words, and the first row whose patterns match it."""

from __future__ import annotations

import functools
from typing import Protocol, TypeVar

# For each word of the key the words that match it; ``*`` matches any.
Patterns = tuple[tuple[str, ...], ...]


class DecisionRow(Protocol):
    """One line of a table, whatever it concludes."""

    @property
    def patterns(self) -> Patterns: ...


R = TypeVar("R", bound=DecisionRow)


def patterns(text: str) -> Patterns:
    """Patterns as tables write them: ``a b | * | c`` for a key of three words."""
    return tuple(tuple(column.split()) for column in text.split("|"))


@functools.cache
def first_match(rows: tuple[R, ...], key: tuple[str, ...]) -> R:
    """Find the first row that matches. Raises LookupError where none does (tests exclude it).

    A run asks the same few keys again and again, so the answers are kept.
    """
    for row in rows:
        if all("*" in some or word in some for word, some in zip(key, row.patterns, strict=True)):
            return row
    raise LookupError(f"no row of the table for {key}")
