"""A finished run in every format.

A format is a module with one function and one line in ``REPORTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TextIO

from netprobe.report.record.collector import Report
from netprobe.report.run.brief import write_brief
from netprobe.report.run.github import write_github
from netprobe.report.run.json import write_json
from netprobe.report.run.junit import write_junit
from netprobe.report.run.markdown import write_markdown
from netprobe.report.run.text import write_text
from netprobe.report.run.wide import write_wide


def write_html(report: Report, stream: TextIO) -> None:
    """Write the page: one HTML file that opens anywhere."""
    from netprobe.report.run.html.document import write_document  # noqa: PLC0415

    write_document(report, stream)


def write_map(report: Report, stream: TextIO) -> None:
    """Write the table of roles and the maps of hosts, for terminals."""
    from netprobe.report.run.map import write_roles_and_hosts  # noqa: PLC0415

    write_roles_and_hosts(report, stream)


REPORTS: Final[Mapping[str, Callable[[Report, TextIO], None]]] = {
    "text": write_text,
    "brief": write_brief,
    "wide": write_wide,
    "map": write_map,
    "json": write_json,
    "html": write_html,
    "junit": write_junit,
    "markdown": write_markdown,
    "github": write_github,
}
