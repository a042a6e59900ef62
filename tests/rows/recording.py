"""Notes which rows of the verdict tables a process reads, and for which test.

Commands that a test starts inherit pytest's own variable with the test's name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from netprobe.judge import name_rows
from netprobe.judge.name_rows import NameRow
from netprobe.judge.rows import ALLOWED, DENIED, VerdictRow
from netprobe.model import decision

# The file that gets a line for each row and test: ``TEST<tab>ROW``.
VARIABLE = "ROWS_READ"
TEST = "PYTEST_CURRENT_TEST"

Row = VerdictRow | NameRow


def list_rows() -> Iterator[tuple[str, Row]]:
    """Every row of the tables, with a name for it."""
    for table, rows in (("allowed", ALLOWED), ("denied", DENIED)):
        for number, row in enumerate(rows):
            key = " | ".join(" ".join(some) for some in row.patterns)
            yield f"{table} {number}: {key}", row
    for kind, name_row in name_rows.ROWS.items():
        yield f"names: {kind}", name_row


def record_rows(path: str) -> None:
    """From now on write each row that this process looks up, once for each test.

    To be called before whoever looks them up is imported.
    """
    names = {id(row): name for name, row in list_rows()}
    noted: set[tuple[str, str]] = set()

    def note(row: Any) -> None:
        line = (os.environ.get(TEST, "").rpartition(" ")[0], names.get(id(row), ""))
        if line[1] and line not in noted:
            noted.add(line)
            with open(path, "a", encoding="utf-8") as file:
                file.write("\t".join(line) + "\n")

    decision.first_match = _watch_matches(decision.first_match, note)
    name_rows.ROWS = WatchedRows(name_rows.ROWS, note)  # type: ignore[misc]


def _watch_matches(first_match: Any, note: Callable[[Any], None]) -> Any:
    def watched(rows: Any, key: Any) -> Any:
        row = first_match(rows, key)
        note(row)
        return row

    return watched


class WatchedRows(dict[str, NameRow]):
    """Rows of a table that tell who is looked up."""

    def __init__(self, rows: dict[str, NameRow], note: Callable[[Any], None]) -> None:
        super().__init__(rows)
        self._note = note

    def __getitem__(self, kind: str) -> NameRow:
        row = super().__getitem__(kind)
        self._note(row)
        return row
