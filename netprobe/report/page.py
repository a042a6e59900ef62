"""A page of text for people, lines and labelled fields, before anybody knows how wide it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TextIO

from netprobe.report.terminal_safe import clean

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
    """A label and what it says, one line each; the label stands at the first only."""

    label: str
    lines: tuple[str, ...]


PagePart = Line | Field


def field(label: str, lines: Iterable[str]) -> Iterator[Field]:
    """A field, or nothing where there is nothing to say."""
    texts = tuple(line for line in lines if line)
    if texts:
        yield Field(label, texts)


def write_plain(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write for pipes and files: full width, no colour, one line each."""
    for part in parts:
        for line in _plain_lines(part):
            stream.write(f"{encodable(line.rstrip(), stream)}\n")


def _plain_lines(part: PagePart) -> Iterator[str]:
    if isinstance(part, Line):
        yield clean(part.text)
        return
    for index, line in enumerate(part.lines):
        label = part.label if index == 0 else ""
        yield f"{INDENT}{label:<{LABEL_WIDTH}} {clean(line)}"


def encodable(text: str, stream: TextIO) -> str:
    """The same text in what the stream can carry: LANG=C has no arrows."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace("→", "->").encode(encoding, "replace").decode(encoding)
    return text
