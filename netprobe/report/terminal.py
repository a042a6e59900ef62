"""Writes a page to a terminal: wrapped at its width, coloured unless NO_COLOR is set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from netprobe.report.page import INDENT, LABEL_WIDTH, Field, Line, Part, Style, encodable
from netprobe.report.safe import clean

_STYLES: dict[Style, str] = {
    "plain": "",
    "good": "bold green",
    "bad": "bold red",
    "doubt": "bold yellow",
    "quiet": "dim",
    "strong": "bold",
}


def write_terminal(parts: Iterable[Part], stream: TextIO, width: int | None = None) -> None:
    """Write the parts with rich's Text only: its markup would take ``[fd00::10]`` for a style.

    ``width`` None: as wide as the terminal is.
    """
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        if isinstance(part, Line):
            console.print(_text(part.text, part.style, stream), overflow="fold")
        else:
            console.print(_grid(part, stream))


def _grid(field: Field, stream: TextIO) -> Table:
    """A label, and beside it text that wraps under itself."""
    grid = Table.grid(padding=0)
    grid.add_column(width=len(INDENT) + LABEL_WIDTH + 1, no_wrap=True)
    grid.add_column(overflow="fold")
    for index, line in enumerate(field.lines):
        label = INDENT + field.label if index == 0 else ""
        grid.add_row(_text(label, "quiet", stream), _text(line, "plain", stream))
    return grid


def _text(text: str, style: Style, stream: TextIO) -> Text:
    return Text(encodable(clean(text), stream), style=_STYLES[style])
