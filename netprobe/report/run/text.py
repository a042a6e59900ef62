"""The report for people: findings first, one block of lines each, the totals last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from netprobe.model.result import Finding
from netprobe.report.page.page import Line, PagePart, PageSection, write_page
from netprobe.report.page.wording import is_failure, number
from netprobe.report.record.collector import Report
from netprobe.report.run.run_page import finding_section, make_page

# With more findings than these a table of them comes first.
_MOST_WITHOUT_TABLE = 10


def write_text(report: Report, stream: TextIO) -> None:
    """Write the report: wrapped and coloured on a terminal, plain anywhere else."""
    write_page(text_parts(report), stream)


def text_parts(report: Report) -> Iterator[PagePart]:
    """Show the whole report, from the headline to the line of totals."""
    page = make_page(report)
    yield from page.headline.lines
    yield from page.origin
    yield from _write_table(page.findings)
    told = [(one, finding_section(one, page.addresses)) for one in page.findings]
    yield from _write_sections(text for one, text in told if is_failure(one))
    yield from _write_sections(page.news)
    yield from _write_sections(text for one, text in told if not is_failure(one))
    yield from _write_sections(page.rest)
    yield Line()
    yield page.totals


def _write_table(findings: Sequence[Finding]) -> Iterator[PagePart]:
    """List many findings, one line each: whoever reads on knows what is still to come."""
    if len(findings) <= _MOST_WITHOUT_TABLE:
        return
    yield Line()
    yield Line(f"FINDINGS ({number(len(findings))})", "strong")
    width = len(str(findings[-1].number))
    for one in findings:
        text = f"   {one.number:>{width}}  {one.verdict:<12}  {one.title}"
        yield Line(text, hang=width + 19)


def _write_sections(sections: Iterable[PageSection]) -> Iterator[PagePart]:
    for section in sections:
        yield Line()
        yield from section.lines()
