"""The ways that were measured, a line each: what their samples tell, also where they are good."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.plan import QUALITY
from netprobe.model.result import Result
from netprobe.report.page.flow_groups import wire_text
from netprobe.report.page.page import Line, PageSection, section
from netprobe.report.page.wording import plural
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place


def quality_sections(report: Report) -> Iterator[PageSection]:
    """Give a line for each way."""
    measured = sorted(report.collector.measured, key=place)
    title = f"QUALITY: {plural(len(measured), 'way')} measured"
    lines = (Line(_quality_line(one)) for one in measured)
    yield from section(QUALITY, Line(title, "strong"), lines, "more ways", "json")


def _quality_line(result: Result) -> str:
    wire = wire_text([(result.protocol, result.ports)])
    return (
        f"{result.verdict}: {result.source} → {result.destination} ({result.address}) {wire}: "
        f"{result.because}"
    )
