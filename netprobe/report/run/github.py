"""Annotations for GitHub's checks: a line for each of the first findings.

GitHub shows ten of a kind for a step, first come first served, and the others nowhere.
"""

from __future__ import annotations

from typing import TextIO

from netprobe.model.printable import clean
from netprobe.model.result import Finding
from netprobe.report.page.wording import number
from netprobe.report.record.collector import Report
from netprobe.report.run.accepted_text import count_due
from netprobe.report.run.headline import headline, totals

MOST_FINDINGS = 9
_LEVELS = {"blocked": "error", "exposed": "error"}


def write_github(report: Report, stream: TextIO) -> None:
    """Write the findings that decide, how many more there are, and the totals."""
    told = report.deciding_findings
    for finding in told[:MOST_FINDINGS]:
        _write_finding(finding, stream)
    if len(told) > MOST_FINDINGS:
        rest = number(len(told) - MOST_FINDINGS)
        _write_command("error", "netprobe", f"and {rest} more findings: see the report", stream)
    if not told:
        # Without a finding a run may still not have come to its end, or know too little.
        for line in headline(report).lines:
            level = {"bad": "error", "doubt": "warning"}.get(line.style, "notice")
            _write_command(level, "netprobe", line.text, stream)
    due = count_due(report.info.accepted)
    if due:
        _write_command("warning", "netprobe", f"accepted flows: {due}; see the report", stream)
    _write_command("notice", "netprobe", totals(report).text, stream)


def _write_finding(finding: Finding, stream: TextIO) -> None:
    first = finding.speaker
    level = _LEVELS.get(finding.verdict, "warning")
    title = f"{finding.verdict.upper()}: {finding.title}"
    _write_command(level, title, f"{first.because}. {finding.advice}", stream)


def _write_command(level: str, title: str, message: str, stream: TextIO) -> None:
    """Write a workflow command; its own separators are escaped as the runner reads them."""
    named = _escape_text(title).replace(":", "%3A").replace(",", "%2C")
    stream.write(f"::{level} title={named}::{_escape_text(message)}\n")


def _escape_text(text: str) -> str:
    return clean(text).replace("%", "%25")
