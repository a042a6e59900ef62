"""Plain YAML scalars by the core schema of YAML 1.2, section 10.3, without YAML 1.1.

In YAML 1.1 ``on`` is true, ``22:30`` is 1350, ``010`` is 8 and ``1_000`` is 1000. Files about ports
and hosts are full of such words, so only the short list of 1.2 has a meaning; all else is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

TAG = "tag:yaml.org,2002:"

NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
INTEGER = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
DECIMAL = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN)\Z"
)

# In the order in which they are tried: an integer is also a decimal.
IMPLICIT: tuple[tuple[str, re.Pattern[str]], ...] = (
    (TAG + "null", NULL),
    (TAG + "bool", BOOLEAN),
    (TAG + "int", INTEGER),
    (TAG + "float", DECIMAL),
)

# Python refuses to read longer numbers (and nothing that people write has half as many digits).
MAX_DIGITS = 100


class Integer(int):
    """A whole number that remembers how it was written."""

    text: str


class Decimal(float):
    """A number with a fraction that remembers how it was written: the version 4.20 is not 4.2."""

    text: str


Scalar = None | bool | int | float | str


def read(tag: str, text: str) -> Scalar:
    """Read the value of a scalar with this tag; ValueError where the text does not fit the tag."""
    if tag == TAG + "str":
        return text
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters")
    kind, pattern = next((kind, pattern) for kind, pattern in IMPLICIT if kind == tag)
    if not pattern.match(text):
        raise ValueError(f"no {kind.removeprefix(TAG)}")
    return _READERS[kind](text)


def text_of(value: object) -> str:
    """Give a scalar as it was written in the file."""
    if isinstance(value, Integer | Decimal):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _read_integer(text: str) -> Integer:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    number = Integer(int(text, base))
    number.text = text
    return number


def _read_decimal(text: str) -> Decimal:
    plain = text.lower().replace(".inf", "inf").replace(".nan", "nan")
    number = Decimal(plain)
    number.text = text
    return number


_READERS: dict[str, Callable[[str], Scalar]] = {
    TAG + "null": lambda text: None,
    TAG + "bool": lambda text: text.lower() == "true",
    TAG + "int": _read_integer,
    TAG + "float": _read_decimal,
}
