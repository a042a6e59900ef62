"""The report for people: the summary first, then a block of lines a finding, the totals last."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TextIO

from netprobe.model.printable import clean
from netprobe.report.page.page import INDENT, Line, PagePart, PageSection, write_page
from netprobe.report.page.wording import is_failure, plural
from netprobe.report.record.collector import Report
from netprobe.report.run.overview import index_lines, overview_section
from netprobe.report.run.run_page import RunPage, finding_section, make_page


def write_text(report: Report, stream: TextIO) -> None:
    """Write the report: wrapped and coloured on a terminal, plain anywhere else.

    What is longer than the terminal ends with its summary again: that is what is in sight.
    """
    page = make_page(report)
    parts = list(page_parts(page))
    size = _size_of(stream)
    if size is not None:
        parts += _end_long_page(page, parts, stream, size)
    write_page(parts, stream)


def _size_of(stream: TextIO) -> os.terminal_size | None:
    """Give the size of a terminal; None for everything else, and where nobody knows it."""
    if not stream.isatty():
        return None
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        return None
    return size if size.lines and size.columns else None


def _end_long_page(
    page: RunPage, parts: Iterable[PagePart], stream: TextIO, size: os.terminal_size
) -> Iterator[PagePart]:
    """Give the summary again where these parts, wrapped, take more lines than the terminal has."""
    # rich takes 60 ms to import, and pipes do not need it.
    from netprobe.report.page.terminal import count_lines  # noqa: PLC0415

    if count_lines(parts, stream, size.lines + 1) > size.lines:
        head = [Line(), page.headline.verdict, *overview_section(page.overview, ()).lines()]
        yield from head
        yield from _repeat_index(page, size, count_lines(head, stream, size.lines))


def _repeat_index(page: RunPage, size: os.terminal_size, above: int) -> Iterator[PagePart]:
    """Give of the index what has room below so many lines, a line each."""
    # An empty line, the line of what has no room, and the shell's own.
    room = max(1, size.lines - above - 3)
    if len(page.findings) > 1:
        yield Line()
        for line in islice(index_lines(page.findings), room):
            yield Line(_cut_text(f"{INDENT}{clean(line.text)}", size.columns - 1), hang=0)
        if len(page.findings) > room:
            more = plural(len(page.findings) - room, "more finding")
            yield Line(f"{INDENT}and {more}", "quiet")


def _cut_text(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."


def text_parts(report: Report) -> Iterator[PagePart]:
    """Show the whole report, from the headline to the line of totals."""
    return page_parts(make_page(report))


def page_parts(page: RunPage) -> Iterator[PagePart]:
    """Lay the page out: first what was seen, then the summary."""
    yield from page.headline.lines
    yield from page.origin
    yield from _write_sections([page.summary])
    told = [(one, finding_section(one, page.addresses)) for one in page.findings]
    yield from _write_sections(text for one, text in told if is_failure(one))
    yield from _write_sections(page.news)
    yield from _write_sections(text for one, text in told if not is_failure(one))
    yield from _write_sections(page.rest)
    yield Line()
    yield page.totals


def _write_sections(sections: Iterable[PageSection]) -> Iterator[PagePart]:
    for section in sections:
        yield Line()
        yield from section.lines()
