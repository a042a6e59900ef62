"""Tables in HTML and in JSX, where ``<If condition={...}>`` stands around rows or words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from drift.tables import Table, build_table, normalise

_CONDITION = re.compile(r"condition=\{(.*)\}\s*>\Z", re.DOTALL)
_SPACE = re.compile(r"\{\s*'\s*'\s*\}|\{\s*\"\s*\"\s*\}")


@dataclass
class _Row:
    condition: str
    is_header: bool = True
    cells: list[str] = field(default_factory=list)


class _Tables(HTMLParser):
    """Collects the rows of every table; a cell over several columns or rows counts in each."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[_Row]] = []
        self.conditions: list[str] = []
        self.in_cell = False
        # Column -> text and further rows of a cell that reaches down.
        self.below: dict[int, tuple[str, int]] = {}
        self.span = (1, 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "if":
            found = _CONDITION.search(self.get_starttag_text() or "")
            condition = normalise(found[1]) if found else "?"
            self.conditions.append(condition)
            if self.in_cell:
                self._add_text(f" [{condition}] ")
        elif tag == "table":
            self.found.append([])
            self.below = {}
        elif tag == "tr" and self.found:
            self.found[-1].append(_Row(" and ".join(self.conditions)))
        elif tag in ("td", "th") and self.found and self.found[-1]:
            self._start_cell(tag, dict(attrs))

    def _start_cell(self, tag: str, attrs: dict[str, str | None]) -> None:
        row = self.found[-1][-1]
        row.is_header = row.is_header and tag == "th"
        self._fill_from_above(row)
        self.span = (int(attrs.get("colspan") or 1), int(attrs.get("rowspan") or 1))
        self.in_cell = True
        row.cells.append("")

    def _fill_from_above(self, row: _Row) -> None:
        while len(row.cells) in self.below:
            column = len(row.cells)
            text, rows = self.below[column]
            row.cells.append(text)
            self.below[column] = (text, rows - 1)
            if rows == 1:
                del self.below[column]

    def handle_endtag(self, tag: str) -> None:
        if tag == "if" and self.conditions:
            self.conditions.pop()
        elif tag in ("td", "th") and self.in_cell:
            self._end_cell()
        elif tag == "tr" and self.found and self.found[-1]:
            self._fill_from_above(self.found[-1][-1])

    def _end_cell(self) -> None:
        self.in_cell = False
        row = self.found[-1][-1]
        columns, rows = self.span
        row.cells += [row.cells[-1]] * (columns - 1)
        if rows > 1:
            for column in range(len(row.cells) - columns, len(row.cells)):
                self.below[column] = (row.cells[-1], rows - 1)

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self._add_text(data)

    def _add_text(self, text: str) -> None:
        self.found[-1][-1].cells[-1] += text


def read_html_tables(text: str, heading: str) -> list[Table]:
    """The tables about ports in a piece of HTML; its first row of ``<th>`` is the header."""
    parser = _Tables()
    parser.feed(_SPACE.sub(" ", text))
    parser.close()
    tables = []
    for rows in parser.found:
        if not rows:
            continue
        header, *rest = rows
        made = build_table(heading, header.cells, [(row.cells, row.condition) for row in rest])
        tables += [made] if made else []
    return tables
