"""AsciiDoc, as far as tables of ports need it: no parser of it for Python is kept up.

Sections and titles of tables, ``|===`` with cells on lines of their own or together, cells over
several rows or columns (``.4+|``, ``2+|``, ``3*|``), and ``ifdef``, ``ifndef``, ``ifeval`` around
rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from drift.tables import Table, build_table, normalise

_SECTION = re.compile(r"={1,6} (.+)")
_TITLE = re.compile(r"\.(?!\.)(\S.*)")
# A tab of Antora; as a list of terms with descriptions it says the same.
_TAB = re.compile(r"(\S.*?)::\s*\Z")
_FENCE = re.compile(r"\|={3,}\s*\Z")
_BLOCK = re.compile(r"(-{4,}|\.{4,}|/{4,})\s*\Z")
_IF = re.compile(r"(ifn?def|ifeval)::(\S*?)\[(.*)\]\s*\Z")
_ENDIF = re.compile(r"endif::.*\[.*\]\s*\Z")
# What stands before the bar of a cell: copies, columns and rows that it takes, alignment, style.
_CELL = re.compile(
    r"(?:(?:(?<=\s)|\A)(?:(\d+)\*|(?:(\d+)?(?:\.(\d+))?\+))?[<^>]?(?:\.[<^>])?[adehlmsv]?)?(?<!\\)\|"
)
_COLS = re.compile(r"cols\s*=\s*\"?([^\"\]]*)\"?")
_LINK = re.compile(r"(?:link:|xref:|https?://)\S*?\[([^\]]*)\]")
_MARKS = re.compile(r"(?<!\w)([`*_+]{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)")


@dataclass
class _Cell:
    text: str
    condition: str
    columns: int = 1
    rows: int = 1


@dataclass
class _Source:
    """A table as it stands in the file: its title or section, attributes, and cells."""

    heading: str
    attributes: str
    cells: list[_Cell] = field(default_factory=list)
    # How many cells the first line has: it is the header where they all stand on it.
    first_line: int = 0


def read_asciidoc(text: str) -> list[Table]:
    """All tables about ports, in order."""
    reader = _Reader()
    for line in text.splitlines():
        reader.read(line)
    made = (_build(source) for source in reader.found)
    return [table for table in made if table]


class _Reader:
    """Follows the lines of a file: blocks that are no text, conditions, titles, and tables."""

    def __init__(self) -> None:
        self.found: list[_Source] = []
        self.table: _Source | None = None
        self.section = self.tab = self.title = self.attributes = ""
        self.conditions: list[str] = []
        # The line that ends a block of code, literal text or comment.
        self.block = ""

    def read(self, line: str) -> None:
        """Take in the next line."""
        if self._is_in_block(line) or self._is_condition(line):
            return
        if _FENCE.match(line):
            self._begin_or_end()
        elif self.table is not None:
            _add_line(self.table, line, " and ".join(self.conditions))
        else:
            self._read_around(line)

    def _is_in_block(self, line: str) -> bool:
        if self.block:
            self.block = "" if self.block == line.strip() else self.block
            return True
        self.block = line.strip() if _BLOCK.match(line) else ""
        return bool(self.block)

    def _is_condition(self, line: str) -> bool:
        """Whether a line begins or ends a condition; one with its text behind it begins none."""
        if _ENDIF.match(line):
            del self.conditions[-1:]
            return True
        found = _IF.match(line)
        if found is None:
            return False
        if found[1] == "ifeval" or not found[3]:
            self.conditions.append(normalise(f"{found[1]} {found[2] or found[3]}"))
        return True

    def _begin_or_end(self) -> None:
        if self.table is None:
            heading = f"{self.section}, {self.tab}" if self.tab else self.section
            self.table = _Source(self.title or heading, self.attributes)
            return
        self.found.append(self.table)
        self.table = None
        self.title = self.attributes = ""

    def _read_around(self, line: str) -> None:
        """A section, or what stands before a table: its title and its attributes."""
        if found := _SECTION.match(line):
            self.section, self.tab, self.title, self.attributes = found[1], "", "", ""
        elif found := _TAB.match(line):
            self.tab, self.title, self.attributes = found[1], "", ""
        elif found := _TITLE.match(line):
            self.title = found[1]
        elif line.startswith("[") and line.rstrip().endswith("]"):
            self.attributes += line
        elif line.strip() not in ("", "+", "--"):
            self.title = self.attributes = ""


def _add_line(table: _Source, line: str, condition: str) -> None:
    found = list(_CELL.finditer(line))
    before = line[: found[0].start()] if found else line
    if table.cells:
        table.cells[-1].text += f"\n{before}"
    elif not line.strip():
        return
    table.first_line = table.first_line or len(found)
    ends = [*(one.start() for one in found[1:]), len(line)]
    for one, end in zip(found, ends, strict=False):
        text = line[one.end() : end]
        copies, columns, rows = (int(number or 1) for number in one.groups())
        table.cells += [_Cell(text, condition, columns, rows) for _ in range(copies)]


def _build(source: _Source) -> Table | None:
    width = _count_columns(source)
    grid = _lay_out(source.cells, width)
    if not grid:
        return None
    header = [cell for cell, _ in grid[0]]
    rows = []
    for row in grid[1:]:
        conditions = dict.fromkeys(condition for _, condition in row if condition)
        rows.append(([cell for cell, _ in row], " and ".join(conditions)))
    return build_table(_strip_markup(source.heading), header, rows)


def _count_columns(source: _Source) -> int:
    """As many as ``cols`` says, else as the first line has cells, else as the header has lines."""
    found = _COLS.search(source.attributes)
    if found:
        if found[1].strip().isdecimal():
            return max(int(found[1]), 1)  # a number alone: so many columns, of one width
        parts = [part for part in re.split(r"[,;]", found[1]) if part.strip()]
        repeats = (re.match(r"\s*(\d+)\*", part) for part in parts)
        return sum(int(one[1]) if one else 1 for one in repeats)
    return max(source.first_line, 1)


def _lay_out(cells: Sequence[_Cell], width: int) -> list[list[tuple[str, str]]]:
    """Rows of text and condition; what reaches over several places stands in each."""
    grid: dict[tuple[int, int], tuple[str, str]] = {}
    place = 0
    for cell in cells:
        while divmod(place, width) in grid:
            place += 1
        row, column = divmod(place, width)
        text = _strip_markup(cell.text)
        for down, right in product(range(cell.rows), range(cell.columns)):
            # Of a cell that reaches down only its own row stands under the condition.
            grid[row + down, column + right] = (text, "" if down else cell.condition)
    height = max((row for row, _ in grid), default=-1) + 1
    return [[grid.get((row, column), ("", "")) for column in range(width)] for row in range(height)]


def _strip_markup(text: str) -> str:
    """The words: of links and monospace text what is shown."""
    text = _LINK.sub(r"\1", text)
    for _ in range(2):
        text = _MARKS.sub(r"\2", text)
    return normalise(text)
