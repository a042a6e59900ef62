"""A JSON document of any size, value by value: memory holds one element of a list at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from netprobe.model.json_text import SPACE, WrongJson, check_amount, parse_json_at

BLOCK_BYTES = 1024 * 1024
# The parser names the place of its error. So near to the end of what was read, or at the beginning
# of a text, that may be a value that goes on behind it.
TORN_CHARACTERS = 16
_SPACE = re.compile(f"[{SPACE}]*")

# What may still belong to a number: of "1.5" the parser takes the "1" where only "1." was read.
_NUMBER = re.compile("[0-9.eE+-]*")
_TORN = "ends in the middle of its JSON"


class JsonPart(NamedTuple):
    """A key's value (``number`` 0), of a list an empty one; 1, 2 ... are then its elements.

    ``characters`` is the length of the value in the file, and ``line`` where it ends, from 1.
    """

    key: str
    number: int
    value: Any
    characters: int
    line: int


class WrongDocument(ValueError):
    """The file is no JSON that netprobe reads; line and column count from 1."""

    def __init__(self, words: str, line: int, column: int) -> None:
        super().__init__(words)
        self.line = line
        self.column = column


def walk_document(stream: BinaryIO) -> Iterator[JsonPart]:
    """Give the parts of the object that a file holds. Raises WrongDocument."""
    text = _Window(stream)
    text.take("{")
    if text.peek() != "}":
        yield from _walk_keys(text)
    text.take("}")
    if text.peek():
        raise text.wrong("is not JSON: something follows its end")


def _walk_keys(text: _Window) -> Iterator[JsonPart]:
    while True:
        key = text.value()[0]
        if not isinstance(key, str):
            raise text.wrong("is not JSON")
        text.take(":")
        if text.peek() == "[":
            yield JsonPart(key, 0, [], 0, text.line)
            for number, element in enumerate(_walk_list(text), 1):
                yield JsonPart(key, number, *element)
        else:
            yield JsonPart(key, 0, *text.value())
        if text.peek() != ",":
            return
        text.take(",")


def _walk_list(text: _Window) -> Iterator[tuple[Any, int, int]]:
    text.take("[")
    if text.peek() != "]":
        yield text.value()
        while text.peek() == ",":
            text.take(",")
            yield text.value()
    text.take("]")


class _Window:
    """The text of a file from a place on; what was read is dropped when more is needed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        # Where the window begins in the file, and a place in it whose line is known, from 1.
        self._line = self._column = 0
        self._counted, self.line = 0, 1

    def wrong(self, words: str, place: int | None = None) -> WrongDocument:
        """Give the error about a place of the window, else about where we are."""
        return WrongDocument(words, *(one + 1 for one in self._mark_of(place)))

    def peek(self) -> str:
        """Give the next sign that is no space; nothing at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def take(self, sign: str) -> None:
        """Step over this sign, which must be the next."""
        found = self.peek()
        if found != sign:
            raise self.wrong("is not JSON" if found else _TORN)
        self._at += 1

    def value(self) -> tuple[Any, int, int]:
        """Give the next value, its length, and its last line.

        A number is whole only when something follows it.
        """
        self.peek()
        while True:
            try:
                value, end = parse_json_at(self._text, self._at)
            except WrongJson as error:
                ahead = error.place - self._at
                if self._may_go_on(error) and self._read_more():
                    self._check_window()
                    continue
                place = self._at + ahead
                torn = error.is_syntax and place >= len(self._text)
                raise self.wrong(_TORN if torn else str(error), place) from None
            rest = _NUMBER.match(self._text, end)
            assert rest is not None
            if rest.end() < len(self._text) or not self._read_more():
                characters, self._at = end - self._at, end
                self.line += self._text.count("\n", self._counted, end)
                self._counted = end
                return value, characters, self.line

    def _may_go_on(self, error: WrongJson) -> bool:
        near = error.place + TORN_CHARACTERS >= len(self._text)
        return error.is_syntax and (near or self._text[error.place] == '"')

    def _check_window(self) -> None:
        try:
            check_amount(self._text, self._at)
        except WrongJson as error:
            raise self.wrong(str(error)) from None

    def _read_more(self) -> bool:
        """Read on, as much as there is already: trying again costs no more than reading did."""
        if self._ended:
            return False
        self._line, self._column = self._mark_of(self._at)
        self._counted, self.line = 0, self._line + 1
        self._text = self._text[self._at :]
        self._at = 0
        raw = self._stream.read(max(BLOCK_BYTES, len(self._text))) or b""
        self._ended = not raw
        try:
            self._text += self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError:
            raise self.wrong("is not UTF-8", len(self._text)) from None
        return not self._ended

    def _mark_of(self, place: int | None) -> tuple[int, int]:
        """Line and column of a place of the window in the file, both from 0."""
        end = self._at if place is None else place
        lines = self._text.count("\n", 0, end)
        if lines:
            return self._line + lines, end - self._text.rfind("\n", 0, end) - 1
        return self._line, self._column + end
