"""The page: one HTML file that opens anywhere; what makes it is imported when one is asked for."""

from __future__ import annotations

from typing import TextIO

from netprobe.report.collector import Report


def write_html(report: Report, stream: TextIO) -> None:
    """Write the page."""
    # Runs without this report need none of it.
    from netprobe.report.html.document import write_document  # noqa: PLC0415

    write_document(report, stream)
