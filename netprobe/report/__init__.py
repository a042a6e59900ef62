"""The last stage: a finished run becomes text, JSON or a record; it judges nothing.

A format is a module with one function and one line in ``REPORTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TextIO

from netprobe.report.collector import Report
from netprobe.report.github_run import write_github
from netprobe.report.json_run import write_json
from netprobe.report.junit_run import write_junit
from netprobe.report.late_runs import write_html, write_map
from netprobe.report.markdown_run import write_markdown
from netprobe.report.text_run import write_text
from netprobe.report.wide_run import write_wide

REPORTS: Final[Mapping[str, Callable[[Report, TextIO], None]]] = {
    "text": write_text,
    "wide": write_wide,
    "map": write_map,
    "json": write_json,
    "html": write_html,
    "junit": write_junit,
    "markdown": write_markdown,
    "github": write_github,
}
