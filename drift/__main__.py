"""``python -m drift FOLDER [MATRIX ...]``: rows of documents that were added, removed, changed.

FOLDER holds checkouts of the documents' repositories: FOLDER/OWNER/NAME, FOLDER/NAME, or FOLDER
itself. It ends with 0 where nothing has changed, 1 where something has, 2 where no document of
those matrices is there. ``--print`` shows the tables as they are read, for a new baseline.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from drift.baseline import Baseline, Source, names, read_baseline, sources_of
from drift.compare import Change, compare
from drift.formats import read_tables
from drift.tables import Table, hash_of, kept_table


def find_file(folder: Path, source: Source) -> Path | None:
    """The file of a source in a checkout of its repository, or of a fork of it."""
    name = source.repository.rpartition("/")[2]
    own = (folder / source.repository, folder / name, folder)
    found = (place / source.path for place in (*own, *sorted(folder.glob(f"*/{name}"))))
    return next((path for path in found if path.is_file()), None)


def check_matrix(folder: Path, matrix: str) -> Iterator[tuple[Source, list[Change] | None]]:
    """For every source with tables its changes; None where its file is not there."""
    baseline = read_baseline(matrix)
    for source in sources_of(matrix):
        if source.hash:
            path = find_file(folder, source)
            yield source, None if path is None else _check_file(path, source, baseline)


def _check_file(path: Path, source: Source, baseline: Baseline) -> list[Change]:
    new = read_tables(path)
    return [] if hash_of(new) == source.hash else compare(baseline.tables[source.path], new)


def report(folder: Path, matrices: list[str]) -> int:
    """Print what has changed; the exit status."""
    seen = drifted = 0
    for matrix in matrices:
        baseline = read_baseline(matrix)
        for source, changes in check_matrix(folder, matrix):
            place = f"{matrix}: {source.repository} {source.path}"
            if changes is None:
                print(f"{place}: not there")
                continue
            seen += 1
            drifted += bool(changes)
            print(f"{place}: " + (word_count(len(changes)) if changes else "as it was"))
            for change in changes:
                print(f"  {word_change(change, baseline)}")
    print(f"documents read: {seen}, changed: {drifted}")
    return 2 if not seen else int(bool(drifted))


def word_count(number: int) -> str:
    """``1 change``, ``2 changes``."""
    return f"{number} change{'' if number == 1 else 's'}"


def word_change(change: Change, baseline: Baseline) -> str:
    """A change in one line, with the requirements that the row became."""
    given = baseline.requirements_of(change.table, change.row)
    behind = f" (requirement {', '.join(given)})" if given else ""
    row = " | ".join(change.row)
    parts = [f"{change.kind}: {change.table}", row, change.what]
    return ": ".join(part for part in parts if part) + behind


def print_tables(path: Path) -> None:
    """Print what would be kept of a document, and its hash."""
    tables = [kept_table(table) for table in read_tables(path)]
    plain = [plain_table(path.name, table) for table in tables]
    print(yaml.safe_dump({"tables": plain}, allow_unicode=True, sort_keys=False, width=200))
    print(f"# hash: {hash_of(tables)}")


def plain_table(path: str, table: Table) -> dict[str, object]:
    """A table as a baseline has it."""
    rows = [{"cells": list(row), "requirements": []} for row in table.rows]
    columns = list(table.columns)
    return {"path": path, "heading": table.heading, "columns": columns, "rows": rows}


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m drift", description=__doc__)
    parser.add_argument("folder", type=Path, help="checkouts of the documents, or one document")
    parser.add_argument("matrices", nargs="*", help="the matrices to look at (default: all)")
    parser.add_argument("--print", action="store_true", help="print the tables of one document")
    given = parser.parse_args()
    if given.print:
        print_tables(given.folder)
        return 0
    unknown = set(given.matrices) - set(names())
    if unknown or not given.folder.is_dir():
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else f"no folder {given.folder}")
    return report(given.folder, given.matrices or names())


if __name__ == "__main__":
    sys.exit(main())
