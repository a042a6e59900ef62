"""What is kept of the documents: the cells of their tables, and what became of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from drift.tables import Table

ROWS = Path(__file__).parent / "rows"
MATRICES = Path(__file__).parents[1] / "matrices"


@dataclass(frozen=True)
class Source:
    """A file of a document, as the matrix names it."""

    repository: str
    path: str
    commit: str
    hash: str = ""
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, or a sentence of the text: the requirements that it became, or none."""

    path: str
    heading: str
    cells: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    no_flow: str = ""


@dataclass(frozen=True)
class Baseline:
    """Everything that is kept of the documents of one matrix."""

    tables: dict[str, list[Table]]
    rows: tuple[Row, ...]
    # Why rows are no flows between two hosts, by what ``no_flow`` of a row calls them.
    no_flows: dict[str, str] = field(default_factory=dict)

    def requirements_of(self, heading: str, cells: Sequence[str]) -> tuple[str, ...]:
        """The requirements that a row became."""
        return next(
            (
                one.requirements
                for one in self.rows
                if (one.heading, one.cells) == (heading, tuple(cells))
            ),
            (),
        )


@cache
def sources_of(matrix: str) -> tuple[Source, ...]:
    """The files that a bundled matrix names."""
    text = (MATRICES / f"{matrix}.yaml").read_text(encoding="utf-8")
    head = yaml.load(text, Loader=yaml.CBaseLoader)
    return tuple(Source(**one) for one in head["document"].get("sources", ()))


def names() -> list[str]:
    """The matrices whose documents are kept."""
    return sorted(path.stem for path in ROWS.glob("*.yaml"))


@cache
def read_baseline(matrix: str) -> Baseline:
    """What is kept of a matrix's documents."""
    text = (ROWS / f"{matrix}.yaml").read_text(encoding="utf-8")
    data = yaml.load(text, Loader=yaml.CBaseLoader)
    tables: dict[str, list[Table]] = {}
    for one in data["tables"]:
        rows = tuple(tuple(row["cells"]) for row in one["rows"])
        table = Table(one["heading"], tuple(one["columns"]), rows)
        tables.setdefault(one["path"], []).append(table)
    return Baseline(tables, tuple(_rows_of(data)), data.get("no_flows", {}))


def _rows_of(data: dict[str, Any]) -> Iterator[Row]:
    for table in data["tables"]:
        for one in table["rows"]:
            given = tuple(one.get("requirements", ()))
            place = (table["path"], table["heading"], tuple(one["cells"]))
            yield Row(*place, given, one.get("no_flow", ""))
    for one in data.get("text", ()):
        given = tuple(one.get("requirements", ()))
        yield Row("", "text", (one["says"],), given, one.get("no_flow", ""))
