"""Any page as Markdown, for tickets and chats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TextIO

from netprobe.model.printable import clean, escape_markdown
from netprobe.report.page.page import Field, Line, PagePart


def write_markdown_page(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write the first line as the heading, a line above fields as one of theirs, fields as a list.

    Other lines that stand together are a table or steps: they keep their columns.
    """
    first, *rest = parts
    stream.write(f"# {_word_part(first)}\n")
    blocks = [list(some) for empty, some in groupby(rest, _is_empty) if not empty]
    stream.writelines(f"\n{line}\n" for block in blocks for line in _write_block(block))


def _is_empty(part: PagePart) -> bool:
    return isinstance(part, Line) and not part.text


def _write_block(parts: list[PagePart]) -> Iterator[str]:
    """Give the paragraphs of what no empty line parts."""
    for is_field, some in groupby(parts, lambda part: isinstance(part, Field)):
        told = list(some)
        if is_field:
            yield "\n".join(f"- {_word_part(part)}" for part in told)
        elif len(told) == 1:
            yield f"{'## ' if len(parts) > 1 else ''}{_word_part(told[0])}"
        else:
            yield _write_columns(told)


def _write_columns(parts: list[PagePart]) -> str:
    lines = [clean(part.text).replace("```", "...") for part in parts if isinstance(part, Line)]
    return "\n".join(["```text", *lines, "```"])


def _word_part(part: PagePart) -> str:
    if isinstance(part, Line):
        return escape_markdown(part.text.strip())
    texts = "; ".join(escape_markdown(str(line)) for line in part.lines)
    return f"**{part.label}**: {texts}"
