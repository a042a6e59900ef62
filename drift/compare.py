"""What has changed between the tables that are kept and those of a checkout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from drift.tables import Table, kept, kept_table

Kind = Literal["added", "removed", "changed"]

# What a column is about, by words in its title; the first that fits.
_ABOUT = (
    ("condition", ("condition", "configuration", "note", "since", "plane only")),
    ("direction", ("source", "destination", "direction", "gress", "used by", "host", "type",
                   "back-end", "internal", "external", "arah", "digunakan")),
    ("port", ("port", "number")),
    ("protocol", ("protocol", "protokol")),
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A row, a cell of it, or a title that is another one now.

    ``row`` are the cells of the row as it was, or as it is where it is new.
    """

    kind: Kind
    table: str
    row: tuple[str, ...]
    what: str = ""


def compare(old: Sequence[Table], new: Sequence[Table]) -> list[Change]:
    """All changes; another order of rows, columns or tables is none."""
    old = [kept_table(table) for table in old]
    pairs, gone, come = _pair_tables(old, new)
    changes = [change for before, after in pairs for change in _compare_tables(before, after)]
    for kind, tables in (("removed", gone), ("added", come)):
        for table in tables:
            changes += [Change(kind, table.heading, row) for row in table.rows]  # type: ignore[arg-type]
    return changes


def _pair_tables(
    old: Sequence[Table], new: Sequence[Table]
) -> tuple[list[tuple[Table, Table]], list[Table], list[Table]]:
    """Tables of one title belong together, then those with the most rows, then with all columns
    in common."""
    pairs = []
    gone, come = list(old), list(new)
    for score in (_same_title, _common_rows, _same_columns):
        ranked = sorted(
            ((score(a, b), i, j) for i, a in enumerate(gone) for j, b in enumerate(come)),
            key=lambda one: (-one[0], one[1:]),
        )
        used_old: set[int] = set()
        used_new: set[int] = set()
        for points, i, j in ranked:
            if points and i not in used_old and j not in used_new:
                pairs.append((gone[i], come[j]))
                used_old.add(i)
                used_new.add(j)
        gone = [one for number, one in enumerate(gone) if number not in used_old]
        come = [one for number, one in enumerate(come) if number not in used_new]
    return pairs, gone, come


def _same_title(a: Table, b: Table) -> int:
    return 1 + _common_rows(a, b) if a.heading == kept(b.heading) else 0


def _common_rows(a: Table, b: Table) -> int:
    rows = Counter(kept_table(b).rows)
    return sum((Counter(a.rows) & rows).values())


def _same_columns(a: Table, b: Table) -> int:
    return int(set(a.columns) == set(b.columns))


def _compare_tables(old: Table, new: Table) -> Iterator[Change]:
    if old.heading != kept(new.heading):
        yield Change("changed", old.heading, (), f"title: {old.heading!r} → {new.heading!r}")
    columns = tuple(dict.fromkeys((*old.columns, *new.columns)))
    if set(old.columns) != set(new.columns):
        yield Change("changed", old.heading, (), _word_columns(old.columns, new.columns))
    before, after = _rows_of(old), _rows_of(new)
    for row in list(before):
        same = next((one for one in after if _kept_row(one, columns) == row), None)
        if same is not None:
            before.remove(row)
            after.remove(same)
    for a, b in _pair_rows(before, after, columns):
        before.remove(a)
        after.remove(b)
        cells = [_word_cell(name, a.get(name, ""), b.get(name, "")) for name in columns]
        yield Change("changed", old.heading, tuple(a.values()), "; ".join(filter(None, cells)))
    yield from (Change("removed", old.heading, tuple(row.values())) for row in before)
    yield from (Change("added", new.heading, tuple(row.values())) for row in after)


def _rows_of(table: Table) -> list[Mapping[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _kept_row(row: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    return {name: kept(row[name]) for name in columns if name in row}


def _pair_rows(
    old: Sequence[Mapping[str, str]], new: Sequence[Mapping[str, str]], columns: Sequence[str]
) -> list[tuple[Mapping[str, str], Mapping[str, str]]]:
    """Rows that have at least half of their cells in common, the most alike first.

    Where the port is the same, two cells more may differ: people look for a row by its port.
    """
    ranked = sorted(
        ((_alike(a, b, columns), i, j) for i, a in enumerate(old) for j, b in enumerate(new)),
        key=lambda one: (-one[0], one[1:]),
    )
    pairs: dict[int, int] = {}
    for points, i, j in ranked:
        if 2 * points >= len(columns) and i not in pairs and j not in pairs.values():
            pairs[i] = j
    return [(old[i], new[j]) for i, j in sorted(pairs.items())]


def _alike(a: Mapping[str, str], b: Mapping[str, str], columns: Sequence[str]) -> int:
    same = [name for name in columns if a.get(name, "") == kept(b.get(name, ""))]
    return len(same) + 2 * any(_about(name) == "port" for name in same)


def _word_columns(old: Sequence[str], new: Sequence[str]) -> str:
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    return f"columns: {', '.join(gone) or 'none'} → {', '.join(come) or 'none'}"


def _word_cell(column: str, old: str, new: str) -> str:
    if old == kept(new):
        return ""
    return f"{_about(column)} ({column}): {old!r} → {new!r}"


def _about(column: str) -> str:
    words = column.lower()
    return next((name for name, ones in _ABOUT if any(one in words for one in ones)), "purpose")
