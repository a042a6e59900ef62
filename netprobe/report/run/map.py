"""The map for terminals: a table of roles, and for each bad cell the hosts that differ.

A sign a cell, so that it is right without colour; hosts of one fate share a line, so that a
blocked zone is seen as a block, however many hosts it has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import TextIO

from netprobe.model.names import names_text
from netprobe.report.page.page import Line, PagePart, Style, write_page
from netprobe.report.page.wording import number, plural
from netprobe.report.record.collector import Report
from netprobe.report.run.headline import headline, totals
from netprobe.report.run.pair_map import (
    WORST,
    Alike,
    Cell,
    PairFate,
    PairMap,
    columns_of,
    group_alike,
    map_pairs,
    rows_of,
    sort_hosts,
    split_digits,
)

Signs = Mapping[PairFate, str]

ASCII_SIGNS: Signs = {
    "pass": ".", "blocked": "X", "exposed": "E", "inconclusive": "?", "not-tested": "-",
    "excused": "~", "covered": ":",
}  # fmt: skip
SIGNS: Signs = {
    "pass": "✓", "blocked": "✗", "exposed": "!", "inconclusive": "?", "not-tested": "·",
    "excused": "~", "covered": "≈",
}  # fmt: skip
# A pipe has no width; its reader does not wrap what is no wider than this.
PIPE_WIDTH = 120
MOST_MAPS = 10
MOST_ROWS = 40
MOST_PAIRS = 40
MOST_NAMES = 4
INDENT = "   "


def write_roles_and_hosts(report: Report, stream: TextIO) -> None:
    """Write the map as wide as the terminal is; letters for signs in a pipe."""
    shown = stream.isatty()
    width = shutil.get_terminal_size().columns if shown else PIPE_WIDTH
    fancy = shown and (stream.encoding or "").lower().replace("-", "") == "utf8"
    write_page(map_parts(report, width, SIGNS if fancy else ASCII_SIGNS), stream)


def map_parts(report: Report, width: int, signs: Signs = ASCII_SIGNS) -> Iterator[PagePart]:
    """Show headline, table of roles, maps of the cells that are not all pass, and totals."""
    yield from headline(report).lines
    pairs = map_pairs(report, report.collector.results())
    if pairs.cells:
        yield Line()
        yield from _write_roles(pairs, width, signs)
        yield Line()
        yield Line(_word_signs(signs, covers=report.info.coverage is not None), "quiet")
    good = ("pass", "covered")
    bad = [(roles, cell) for roles, cell in pairs.cells.items() if cell.worst not in good]
    bad.sort(key=lambda item: (WORST.index(item[1].worst), -item[1].counts[item[1].worst]))
    hosts = sort_hosts(report)
    for (source, destination), cell in bad[:MOST_MAPS]:
        yield Line()
        yield Line(f"{source} → {destination}: {cell.words}", _choose_style(cell.worst))
        yield from _write_hosts(cell, hosts, width, signs)
    if len(bad) > MOST_MAPS:
        yield Line()
        yield Line(f"and {plural(len(bad) - MOST_MAPS, 'more cell')} that did not all pass")
    yield Line()
    yield totals(report)


def _word_signs(signs: Signs, *, covers: bool) -> str:
    told = [one for one in reversed(WORST) if covers or one != "covered"]
    words = (f"{signs[one]} {one.replace('-', ' ')}" for one in told)
    blank = "not required, and of hosts also not probed" if covers else "not required"
    return f"from the left to the top; {'   '.join(words)}   blank: {blank}"


def _choose_style(fate: PairFate) -> Style:
    styles: dict[PairFate, Style] = {
        "pass": "plain", "covered": "plain", "excused": "plain", "blocked": "bad", "exposed": "bad",
    }  # fmt: skip
    return styles.get(fate, "doubt")


def _write_roles(pairs: PairMap, width: int, signs: Signs) -> Iterator[PagePart]:
    """Write the table of roles; columns that have no room follow below."""
    texts = {roles: _cell_text(cell, signs) for roles, cell in pairs.cells.items()}
    margin = max(map(len, pairs.sources)) + 2
    for columns in _split_columns(pairs, texts, width - margin):
        sizes = [_column_width(role, texts) for role in columns]
        names = "".join(f"{role:<{size}}" for role, size in zip(columns, sizes, strict=True))
        yield Line(f"{'':{margin}}{names}".rstrip(), "strong", hang=0)
        for source in pairs.sources:
            row = [(source, role) for role in columns]
            cells = "".join(
                f"{texts.get(at, ''):<{size}}" for at, size in zip(row, sizes, strict=True)
            )
            worst = [pairs.cells[at].worst for at in row if at in pairs.cells]
            if worst:
                style = _choose_style(min(worst, key=WORST.index))
                yield Line(f"{source:<{margin}}{cells}".rstrip(), style, hang=0)


def _cell_text(cell: Cell, signs: Signs) -> str:
    """``. 340``, or ``X 40/340``: so many of the worst fate."""
    worst = cell.worst
    few = "" if worst == "pass" else f"{number(cell.counts[worst])}/"
    return f"{signs[worst]} {few}{number(cell.flows)}"


def _column_width(role: str, texts: Mapping[tuple[str, str], str]) -> int:
    return max(len(role), *(len(text) for at, text in texts.items() if at[1] == role)) + 2


def _split_columns(
    pairs: PairMap, texts: Mapping[tuple[str, str], str], room: int
) -> Iterator[list[str]]:
    columns: list[str] = []
    used = 0
    for role in pairs.destinations:
        size = _column_width(role, texts)
        if columns and used + size > room:
            yield columns
            columns, used = [], 0
        columns.append(role)
        used += size
    yield columns


def _write_hosts(cell: Cell, hosts: Sequence[str], width: int, signs: Signs) -> Iterator[PagePart]:
    """Write hosts by hosts, those of one fate in one line; a list where too many differ."""
    others = list(dict.fromkeys([*hosts, *(name for pair in cell.pairs for name in pair)]))
    rows = group_alike(rows_of(cell, others), MOST_ROWS)
    columns = rows and group_alike(columns_of(rows, others), len(ascii_uppercase))
    if not rows or not columns:
        yield from _list_pairs(cell, signs)
        return
    labels = [_word_names(row.names, MOST_NAMES) for row in rows]
    room = max(width // 2, width - len(INDENT) - 2 * len(columns))
    margin = min(max(map(len, labels)) + 2, room)
    letters = " ".join(ascii_uppercase[: len(columns)])
    yield Line(f"{INDENT}{'':{margin}}{letters}", "strong", hang=0)
    for label, row in zip(labels, rows, strict=True):
        signs_of = " ".join(_sign_at(row, column, signs) for column in columns)
        long = len(label) + 2 > margin
        if long:
            yield Line(f"{INDENT}{label}", hang=len(INDENT))
        worst = min(row.row.values(), key=WORST.index)
        named = "" if long else label
        yield Line(f"{INDENT}{named:<{margin}}{signs_of}".rstrip(), _choose_style(worst), hang=0)
    for letter, column in zip(ascii_uppercase, columns, strict=False):
        yield Line(f"{INDENT}{letter}: {_word_names(column.names, 2 * MOST_NAMES)}", "quiet")


def _word_names(names: Sequence[str], most: int) -> str:
    return names_text(sorted(names, key=split_digits), most)


def _sign_at(row: Alike, column: Alike, signs: Signs) -> str:
    """The fate of this group towards that one; a blank where no flow is required."""
    found = column.row.get(row.names[0])
    return signs[found] if found is not None else " "


def _list_pairs(cell: Cell, signs: Signs) -> Iterator[PagePart]:
    """List sources with the hosts that they do not reach: a grid of them would show nothing."""
    missed: dict[tuple[str, PairFate], list[str]] = {}
    for (source, destination), fate in cell.pairs.items():
        if fate != "pass":
            missed.setdefault((source, fate), []).append(destination)
    for (source, fate), ends in list(missed.items())[:MOST_PAIRS]:
        words = _word_names(ends, MOST_NAMES)
        yield Line(f"{INDENT}{signs[fate]} {source} → {words}", _choose_style(fate))
    if len(missed) > MOST_PAIRS:
        yield Line(f"{INDENT}and {plural(len(missed) - MOST_PAIRS, 'more source')}", "quiet")
