"""Pages for people before anybody knows how they are printed: lines, labelled fields, sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TextIO

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.printable import clean

Style = Literal["plain", "good", "bad", "doubt", "quiet", "strong"]

Output = Literal["wide", "json"]

LABEL_WIDTH = 9
INDENT = "   "
# Of a section that may be long.
MOST_PARTS = 20


class Line(Struct, frozen=True):
    """One line; a long one is wrapped only on a terminal, its rest indented by ``hang``."""

    text: str = ""
    style: Style = "plain"
    hang: int = 5


class More(Struct, frozen=True):
    """What has no room here, and the output that has it: ``and 12 more groups, see -o wide``."""

    text: str
    output: Output = "wide"

    def __str__(self) -> str:
        return f"{self.text}, see -o {self.output}"


class Field(Struct, frozen=True):
    """A label and its lines; the label stands at the first line only."""

    label: str
    lines: tuple[str | More, ...]


PagePart = Line | Field


class PageSection(Struct, frozen=True):
    """A heading and what stands below it, in groups that an empty line parts.

    ``name`` is the same in every report. What stands below the heading is indented in texts, and
    an item of a list elsewhere.
    """

    name: str
    title: Line
    groups: tuple[tuple[PagePart, ...], ...]
    more: More | None = None

    def lines(self) -> Iterator[PagePart]:
        """Lay the section out as text, its heading first."""
        yield self.title
        for place, group in enumerate(self.groups):
            if place:
                yield Line()
            yield from (_indent_line(part) if isinstance(part, Line) else part for part in group)
        if self.more:
            yield _indent_line(Line(str(self.more), "quiet"))


def _indent_line(line: Line) -> Line:
    return replace(line, text=f"{INDENT}{line.text}")


def field(label: str, lines: Iterable[str | More]) -> Iterator[Field]:
    """Give a field, or nothing where there is nothing to say."""
    texts = tuple(line for line in lines if line)
    if texts:
        yield Field(label, texts)


def section(
    name: str, title: Line, parts: Iterable[PagePart], noun: str = "", output: Output = "wide"
) -> Iterator[PageSection]:
    """Give a section of one group, or nothing where nothing stands below its heading.

    With a ``noun`` it has so many parts at most, and says how many more there are.
    """
    group = tuple(parts)
    more = count_more(len(group), noun, output) if noun else None
    if group:
        yield PageSection(name, title, (group[:MOST_PARTS] if more else group,), more)


def count_more(count: int, noun: str, output: Output = "wide") -> More | None:
    """Say how many of so many parts have no room in a section."""
    rest = count - MOST_PARTS
    return More(f"and {rest:,} {noun}", output) if rest > 0 else None


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay a table out: each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def write_page(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write any page: wrapped and coloured on a terminal, plain anywhere else."""
    if stream.isatty():
        # rich takes 60 ms to import, and pipes do not need it.
        from netprobe.report.page.terminal import write_terminal  # noqa: PLC0415

        write_terminal(parts, stream)
    else:
        write_plain(parts, stream)


def write_plain(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write for pipes and files: full width, no colour, one line each."""
    for part in parts:
        if isinstance(part, Line):
            write_line(part.text, stream)
            continue
        for index, line in enumerate(part.lines):
            label = part.label if index == 0 else ""
            write_line(f"{INDENT}{label:<{LABEL_WIDTH}} {clean(str(line))}", stream)


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
