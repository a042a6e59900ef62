"""A page of text for people, lines and labelled fields, before anybody knows how wide it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TextIO

from netprobe.model.printable import clean

Style = Literal["plain", "good", "bad", "doubt", "quiet", "strong"]

LABEL_WIDTH = 9
INDENT = "   "


@dataclass(frozen=True, slots=True)
class Line:
    """One line; a long one is wrapped only on a terminal, its rest indented by ``hang``."""

    text: str = ""
    style: Style = "plain"
    hang: int = 5


@dataclass(frozen=True, slots=True)
class Field:
    """A label and its lines; the label stands at the first line only."""

    label: str
    lines: tuple[str, ...]


PagePart = Line | Field


def field(label: str, lines: Iterable[str]) -> Iterator[Field]:
    """Give a field, or nothing where there is nothing to say."""
    texts = tuple(line for line in lines if line)
    if texts:
        yield Field(label, texts)


def write_plain(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write for pipes and files: full width, no colour, one line each."""
    for part in parts:
        if isinstance(part, Line):
            write_line(part.text, stream)
            continue
        for index, line in enumerate(part.lines):
            label = part.label if index == 0 else ""
            write_line(f"{INDENT}{label:<{LABEL_WIDTH}} {clean(line)}", stream)


def write_line(text: str, stream: TextIO) -> None:
    """Write one line that harms no terminal and fits the stream's encoding."""
    stream.write(f"{encodable(clean(text).rstrip(), stream)}\n")


def encodable(text: str, stream: TextIO) -> str:
    """Give the text in characters that the stream can encode: LANG=C has no arrows."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace("→", "->").encode(encoding, "replace").decode(encoding)
    return text
