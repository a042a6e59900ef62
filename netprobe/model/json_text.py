"""JSON of any origin as values: in bounded memory, and with every refusal as a ValueError."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

SPACE = " \t\r\n"
MIB = 1024 * 1024
MAX_CHARACTERS = 64 * MIB
# A value takes at most some 200 bytes of memory: ``{"":0},`` is the dearest for its length.
MAX_VALUES = 1_500_000
# How deep lists and objects may be nested: what the parser itself can bear depends on the Python.
MAX_DEPTH = 100
# A text that is shorter cannot hold so many values that they matter.
_SMALL_CHARACTERS = 4 * MIB


class WrongJson(ValueError):
    """The text is no JSON that netprobe reads; ``place`` is the offset of what is wrong.

    ``is_syntax``: it breaks JSON's own rules there, or ends before it is whole.
    """

    def __init__(self, words: str, place: int = 0, is_syntax: bool = False) -> None:
        super().__init__(words)
        self.place = place
        self.is_syntax = is_syntax


def parse_json(raw: bytes) -> Any:
    """Parse a whole text in UTF-8. Raises WrongJson."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongJson("is not UTF-8", error.start) from None
    check_amount(text, 0)
    begin = len(text) - len(text.lstrip(SPACE))
    value, end = parse_json_at(text, begin)
    if text[end:].strip(SPACE):
        raise WrongJson("is not JSON: something follows its end", end)
    return value


def parse_json_at(text: str, place: int) -> tuple[Any, int]:
    """Parse the value that begins at a place; give it and the place behind it. Raises WrongJson."""
    too_deep = WrongJson("is nested too deeply", place)
    try:
        value, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise WrongJson("is not JSON", _place_of(error), is_syntax=True) from None
    except RecursionError:
        raise too_deep from None
    except WrongJson as error:
        raise WrongJson(str(error), place) from None
    except ValueError:
        raise WrongJson("has a number of too many digits", place) from None
    # Most texts have too few brackets for so many levels, which is quicker to find out.
    brackets = text.count("[", place, end) + text.count("{", place, end)
    if brackets > MAX_DEPTH and is_nested_deeper(value, MAX_DEPTH):
        raise too_deep
    return value, end


def is_nested_deeper(value: object, levels: int) -> bool:
    """Tell whether lists and objects are nested in more than so many levels."""
    level = [value]
    for _ in range(levels):
        level = [inner for one in level for inner in _values_in(one)]
    return any(isinstance(one, list | dict) for one in level)


def _values_in(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _place_of(error: json.JSONDecodeError) -> int:
    """Give the place of what is wrong: from Python 3.13 on it may be that of the comma before."""
    if error.msg.startswith("Illegal trailing comma"):
        return len(error.doc) - len(error.doc[error.pos + 1 :].lstrip(SPACE))
    return error.pos


def check_amount(text: str, place: int) -> None:
    """Raise WrongJson where what begins at a place would take too much memory as values."""
    if len(text) - place <= _SMALL_CHARACTERS:
        return
    if len(text) - place > MAX_CHARACTERS:
        raise WrongJson(f"has a value that is longer than {MAX_CHARACTERS // MIB} MiB", place)
    if sum(text.count(sign, place) for sign in ",[{") > MAX_VALUES:
        raise WrongJson(f"has more than {MAX_VALUES:,} values in one", place)


def _refuse_constant(name: str) -> NoReturn:
    raise WrongJson(f"has the number {name}, which is none of JSON's")


# NaN and Infinity are Python's own addition to JSON.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
