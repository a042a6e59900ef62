"""Where the rows of a matrix come from: the document, its files, commits and hashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from netprobe.model.matrix import DocumentSource, Matrix
from netprobe.report.page.page import Line, PagePart, field, write_page

_UNKNOWN = "no file of a repository is named"


def write_matrix_source(matrix: Matrix, stream: TextIO) -> None:
    """Write it for people."""
    write_page(_source_parts(matrix), stream)


def _source_parts(matrix: Matrix) -> Iterator[PagePart]:
    yield Line(f"{matrix.name}: {matrix.title}", "strong")
    for name in ("title", "publisher", "version", "url", "retrieved"):
        yield from field(name, [str(matrix.document.get(name, ""))])
    if not matrix.sources:
        yield Line(_UNKNOWN)
    for source in matrix.sources:
        yield Line()
        yield from _file_parts(source)


def _file_parts(source: DocumentSource) -> Iterator[PagePart]:
    yield from field("file", [f"{source.path} in {source.repository}"])
    yield from field("commit", [source.commit])
    tables = f"sha256 {source.hash}" if source.hash else "none that are compared"
    yield from field("tables", [tables])
    yield from field("note", [source.note])
