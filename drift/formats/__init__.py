"""The markup of documents: Markdown (also with HTML and JSX), AsciiDoc, reStructuredText."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from drift.formats.asciidoc import read_asciidoc
from drift.formats.markdown import read_markdown
from drift.formats.rst import read_rst
from drift.tables import Table

READERS: dict[str, Callable[[str], list[Table]]] = {
    ".adoc": read_asciidoc,
    ".asciidoc": read_asciidoc,
    ".md": read_markdown,
    ".mdx": read_markdown,
    ".rst": read_rst,
}


def read_tables(path: Path) -> list[Table]:
    """All tables about ports of a document; none of a file in another format."""
    reader = READERS.get(path.suffix)
    return reader(path.read_text(encoding="utf-8")) if reader else []
