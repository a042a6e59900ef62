"""Reports that are imported when somebody asks for one: runs without them are none the slower."""

from __future__ import annotations

from typing import TextIO

from netprobe.report.record.collector import Report


def write_html(report: Report, stream: TextIO) -> None:
    """Write the page: one HTML file that opens anywhere."""
    from netprobe.report.run.html.document import write_document  # noqa: PLC0415

    write_document(report, stream)


def write_map(report: Report, stream: TextIO) -> None:
    """Write the table of roles and the maps of hosts, for terminals."""
    from netprobe.report.run.map import write_roles_and_hosts  # noqa: PLC0415

    write_roles_and_hosts(report, stream)
