"""What is sent of a source: code alone, each statement on its own line."""

from __future__ import annotations

import pytest

from netprobe.vantage.strip import strip


@pytest.mark.parametrize(
    ("source", "stripped"),
    [
        ("x = 1  # why", "x = 1"),
        ("x = '# no comment'", "x = '# no comment'"),
        ('"""A docstring."""\nx = 1', "\nx = 1"),
        ("x: int = 1", "x = 1"),
        ("x: int = (\n    1\n)", "x = (\n    1\n)"),
        ('x: "Dict[str, int]" = {}', "x = {}"),
        ("def f(a: int, *b: str, c: int = 2) -> int:\n    return a",
         "def f(a, *b, c = 2) :\n    return a"),
        ('def f() -> None:\n    """Nothing."""', "def f() :\n    0"),
        ("class A:\n    x: int\n    y = 1", "class A:\n\n    y = 1"),
        ("class A(NamedTuple):\n    x: int", "class A(NamedTuple):\n    x: int"),
        ('x: str = "é"  # é\ny: int = 2', 'x = "é"\ny = 2'),
    ],
)  # fmt: skip
def test_only_code_is_left(source: str, stripped: str) -> None:
    """Comments, docstrings and annotations go, and lines keep their numbers."""
    assert strip(source) == stripped
