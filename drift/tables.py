"""Tables of documents, as every format gives them: titles, columns and cells without markup."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Where a row stands for some readers only: ``<If>``, ``ifdef``.
CONDITION = "(condition)"
# A document's text is its author's: of a longer cell its hash is kept, and no text.
MAX_KEPT = 60
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_ABOUT_PORTS = re.compile(r"port|protocol|protokol", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """A table: the heading or title above it, its columns, and its rows, all normalised."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def normalise(text: str) -> str:
    """A text on one line, with one kind of dash and of space."""
    text = unicodedata.normalize("NFC", text).translate(_DASHES)
    return re.sub(r"\s+", " ", text).strip()


def build_table(
    heading: str,
    header: Sequence[str],
    rows: Iterable[tuple[Sequence[str], str]],
) -> Table | None:
    """A table of cells, each row with its condition; None where it is not about ports.

    A cell that is missing at the end of a row is empty. Rows without any text are left out.
    """
    columns = tuple(normalise(cell) for cell in header)
    if not any(_ABOUT_PORTS.search(column) for column in columns):
        return None
    full = [
        (*(normalise(cell) for cell in [*cells, *[""] * len(columns)][: len(columns)]), condition)
        for cells, condition in rows
    ]
    full = [row for row in full if any(row[:-1])]
    if any(row[-1] for row in full):
        return Table(normalise(heading), (*columns, CONDITION), tuple(full))
    return Table(normalise(heading), columns, tuple(row[:-1] for row in full))


def kept(cell: str) -> str:
    """What is kept of a cell: itself, or its hash where it is long."""
    if len(cell) <= MAX_KEPT or cell.startswith("sha256:"):
        return cell
    return f"sha256:{hashlib.sha256(cell.encode()).hexdigest()[:16]}"


def kept_table(table: Table) -> Table:
    """What is kept of a table."""
    rows = (tuple(kept(cell) for cell in row) for row in table.rows)
    return Table(kept(table.heading), table.columns, tuple(rows))


def hash_of(tables: Iterable[Table]) -> str:
    """The hash of all titles, columns and cells; the order of rows and tables does not count."""
    plain = sorted(
        [one.heading, list(one.columns), sorted(map(list, one.rows))]
        for one in map(kept_table, tables)
    )
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False).encode()).hexdigest()
