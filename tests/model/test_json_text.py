"""JSON of any origin: values, or one refusal with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.model import json_text
from netprobe.model.json_text import WrongJson, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
)  # fmt: skip


@pytest.mark.slow
@given(VALUES)
def test_good_json(value: object) -> None:
    """What is JSON is read as Python's own reader does, with spaces around it."""
    assert parse_json(f" {json.dumps(value)}\r\n".encode()) == value


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("", "is not JSON", 0),
        ("[1,]", "is not JSON", 3),
        ('{"a": 1 , \n}', "is not JSON", 11),
        ("[] []", "is not JSON: something follows its end", 2),
        ("[" * 100_000, "is nested too deeply", 0),
        ("[" * 101 + "]" * 101, "is nested too deeply", 0),
        ("1" * 10_000, "has a number of too many digits", 0),
        ("[NaN]", "has the number NaN, which is none of JSON's", 0),
        ("[-Infinity]", "has the number -Infinity, which is none of JSON's", 0),
    ],
    ids=[
        "empty",
        "comma",
        "comma of an object",
        "more",
        "endless",
        "deep",
        "digits",
        "nan",
        "infinity",
    ],
)
def test_wrong_json(text: str, words: str, place: int) -> None:
    """Everything else is one sentence and a place."""
    with pytest.raises(WrongJson) as caught:
        parse_json(text.encode())
    assert (str(caught.value), caught.value.place) == (words, place)


def test_deep_json() -> None:
    """JSON that is nested exactly as deep as the limit is read."""
    assert len(parse_json(b"[" * 98 + b'{"a": {}}' + b"]" * 98)) == 1


def test_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that would take too much memory is refused before it is parsed."""
    monkeypatch.setattr(json_text, "_SMALL_CHARACTERS", 10)
    monkeypatch.setattr(json_text, "MAX_VALUES", 100)
    assert len(parse_json(b"[" + b"[]," * 40 + b"[]]")) == 41
    with pytest.raises(WrongJson, match="has more than 100 values in one"):
        parse_json(b"[" + b"[]," * 60 + b"[]]")
    monkeypatch.setattr(json_text, "MAX_CHARACTERS", 1000)
    with pytest.raises(WrongJson, match="has a value that is longer than"):
        parse_json(json.dumps("x" * 1000).encode())


def test_other_bytes() -> None:
    """Bytes that are no UTF-8 are told; a mark of the byte order is not in the way."""
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]
    with pytest.raises(WrongJson, match="is not UTF-8"):
        parse_json(b'["\xff"]')
