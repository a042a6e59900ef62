"""Versions and version ranges: ``4.9 < 4.10``, ``>=4.10,<4.16``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

_VERSION = re.compile(r"\d+(\.\d+)*\Z")
_TERM = re.compile(r"\s*(>=|<=|==|!=|>|<|)\s*(\d+(?:\.\d+)*)\s*\Z")

_COMPARE: dict[str, Callable[[list[int], list[int]], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, "<": operator.lt, "": operator.eq,
}  # fmt: skip


def is_version(text: str) -> bool:
    """Tell whether the text is numbers with dots between them."""
    return _VERSION.match(text) is not None


def is_range(text: str) -> bool:
    """Tell whether every comma-separated term is an optional comparison and a version."""
    return all(_TERM.match(term) for term in text.split(","))


def in_range(version: str, wanted: str) -> bool:
    """Tell whether the version satisfies every term of the range; both must be well-formed."""
    return all(_meets_term(version, term) for term in wanted.split(","))


def _meets_term(version: str, term: str) -> bool:
    match = _TERM.match(term)
    if match is None:
        raise ValueError(f"not a version range: {term!r}")
    return _COMPARE[match[1]](_split_numbers(version), _split_numbers(match[2]))


def _split_numbers(version: str) -> list[int]:
    """Give the numbers without zeros at the end, so that 4.16 equals 4.16.0."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers
