"""JSON documents part by part: the same values as in one piece, whatever the blocks are."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netprobe.report.record import json_document
from netprobe.report.record.json_document import WrongDocument, walk_document
from tests.model.test_json_text import VALUES


def walked(raw: bytes) -> dict[str, object]:
    """The document as its parts tell it."""
    found: dict[str, object] = {}
    for key, number, value, *_ in walk_document(io.BytesIO(raw)):
        if number:
            elements = found[key]
            assert isinstance(elements, list)
            elements.append(value)
        else:
            found[key] = value
    return found


@given(
    value=st.dictionaries(st.text(max_size=4), VALUES, max_size=5),
    block=st.integers(1, 40),
    plain=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_any_document(
    value: dict[str, object], block: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file comes in, on one line or many, in ASCII or not, its values are the same."""
    monkeypatch.setattr(json_document, "BLOCK_BYTES", block)
    text = json.dumps(value, ensure_ascii=plain, indent=None if plain else 2)

    assert walked(text.encode()) == value


def test_torn_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that was cut off says where it ends."""
    monkeypatch.setattr(json_document, "BLOCK_BYTES", 16)
    raw = json.dumps({"a": [1, {"b": "c\n"}, [True, -1.5e3]], "d": None}, indent=1).encode()
    for length in range(len(raw)):
        with pytest.raises(WrongDocument) as caught:
            walked(raw[:length])
        assert str(caught.value) in ("ends in the middle of its JSON", "is not JSON")
        assert caught.value.line <= raw[:length].count(b"\n") + 1


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        ("", "ends in the middle of its JSON", 1, 1),
        ("[1]", "is not JSON", 1, 1),
        ("hello", "is not JSON", 1, 1),
        ('{"a": 1} x', "is not JSON: something follows its end", 1, 10),
        ('{"a": 1,\n "b": [1,\n  2, x]}', "is not JSON", 3, 6),
        ('{"a": 1,\n 5: 6}', "is not JSON", 2, 3),
        ('{"a": [NaN]}', "has the number NaN, which is none of JSON's", 1, 8),
        ('{"a": %s}' % ("7" * 5000), "has a number of too many digits", 1, 7),
        ('{"a": %s}' % ('{"b":' * 5000 + "0" + "}" * 5000), "is nested too deeply", 1, 7),
        ('{"a":\n\xff}', "is not UTF-8", 1, 1),
    ],
    ids=["empty", "list", "text", "more", "value", "key", "nan", "digits", "deep", "bytes"],
)
def test_places(text: str, words: str, line: int, column: int) -> None:
    """What is wrong is told with its line and column."""
    with pytest.raises(WrongDocument) as caught:
        walked(text.encode("latin-1"))
    assert (str(caught.value), caught.value.line, caught.value.column) == (words, line, column)


@pytest.mark.slow
def test_memory_holds_one_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list is never in memory: what was read is dropped."""
    raw = json.dumps({"results": [{"n": n} for n in range(50_000)]}).encode()
    monkeypatch.setattr(json_document, "BLOCK_BYTES", 4096)
    largest = 0
    window = json_document._Window(io.BytesIO(raw))
    for _ in json_document._walk_keys(_opened(window)):
        largest = max(largest, len(window._text))

    assert largest < 20_000


def _opened(window: json_document._Window) -> json_document._Window:
    window.take("{")
    return window
