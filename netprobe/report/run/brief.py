"""The report in a line a finding: what was seen, whether the installation can start, the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from netprobe.report.page.page import Line, write_page
from netprobe.report.record.collector import Report
from netprobe.report.run.headline import headline, totals
from netprobe.report.run.overview import index_lines, make_overview, overview_section


def write_brief(report: Report, stream: TextIO) -> None:
    """Write the report: wrapped and coloured on a terminal, plain anywhere else."""
    write_page(_list_lines(report), stream)


def _list_lines(report: Report) -> Iterator[Line]:
    overview = make_overview(report)
    yield from headline(report).lines
    title = overview_section(overview, ()).title
    beside = f"; beside it: {'; '.join(overview.beside)}" if overview.beside else ""
    yield Line(f"{title.text}: {'; '.join(overview.reasons)}{beside}", title.style)
    if report.deciding_findings:
        yield from index_lines(report.deciding_findings)
    yield totals(report)
