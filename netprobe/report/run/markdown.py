"""The report as Markdown: for job summaries, merge requests and tickets.

GitHub refuses a summary above 1 MiB as a whole, so that findings are cut, one by one, not the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from netprobe.model.printable import escape_markdown
from netprobe.model.result import Finding
from netprobe.report.page.flow_groups import Addresses, addresses_of, flow_lines, needs
from netprobe.report.page.page import Field, Line, PagePart
from netprobe.report.page.wording import number, plural, where_text
from netprobe.report.record.collector import Report
from netprobe.report.run import sections
from netprobe.report.run.coverage_text import coverage_parts
from netprobe.report.run.headline import origin, split_headline, totals

MOST_BYTES = 1_000_000
# Left for what follows the findings: each of its sections is bounded, and may be cut as well.
SHARE_OF_FINDINGS = 0.8


def write_markdown(report: Report, stream: TextIO) -> None:
    """Write headline, findings and the rest, in at most ``MOST_BYTES``."""
    room = MarkdownRoom(stream, round(MOST_BYTES * SHARE_OF_FINDINGS))
    told = report.deciding_findings
    verdict, beside = split_headline(report)
    more = _make_list(line.text for line in beside)
    room.write_block([f"# {escape_markdown(verdict.text)}", "", *more])
    room.write_block(_make_list(line.text for line in origin(report)))
    if len(told) > 1:
        room.write_block(_table_lines(told))
    addresses = addresses_of(report.info)
    for place, finding in enumerate(told):
        if not room.write_block(_finding_lines(finding, addresses)):
            left = plural(len(told) - place, "more finding")
            room.limit = MOST_BYTES
            room.write_block([f"**{left}: see the report itself, there is no room here.**"])
            break
    room.limit = MOST_BYTES - 1_000
    rest = sections.survey_rest(report)
    for part in (
        sections.changed_parts(report), sections.warning_parts(report),
        sections.open_parts(rest), coverage_parts(report.info.coverage),
        sections.refusal_parts(report),
        sections.accepted_parts(report), sections.excused_parts(rest),
        sections.limit_parts(report, rest), sections.skipped_parts(report),
        sections.note_parts(report),
    ):  # fmt: skip
        room.write_block(section_lines(part))
    room.limit = MOST_BYTES
    room.write_block([f"**{escape_markdown(totals(report).text)}**"])


class MarkdownRoom:
    """Writes whole blocks as long as there is room."""

    def __init__(self, stream: TextIO, limit: int) -> None:
        self._stream = stream
        self._bytes = 0
        self.limit = limit

    def write_block(self, lines: Iterable[str]) -> bool:
        """Write a block and an empty line; tell whether there was room."""
        text = "".join(f"{line}\n" for line in lines)
        size = len(text.encode()) + 1
        if not text or self._bytes + size > self.limit:
            return not text
        self._bytes += size
        self._stream.write(f"{text}\n")
        return True


def _make_list(texts: Iterable[str]) -> list[str]:
    return [f"- {escape_markdown(text)}" for text in texts]


def _table_lines(findings: list[Finding]) -> Iterator[str]:
    yield "| # | verdict | finding | flows |"
    yield "|--:|---|---|--:|"
    for finding in findings:
        flows = number(sum(member.port_count for member in finding.members))
        title = escape_markdown(finding.title)
        yield f"| {finding.number} | {finding.verdict} | {title} | {flows} |"


def _finding_lines(finding: Finding, addresses: Addresses) -> Iterator[str]:
    yield f"## {finding.number}. {finding.verdict.upper()}: {escape_markdown(finding.title)}"
    yield ""
    seen = dict.fromkeys(member.because for member in finding.members)
    for label, lines in (
        ("flows", flow_lines(finding.members, addresses)),
        ("purpose", needs(finding.members)),
        ("seen", list(seen)[:3]),
        ("where", [where_text(finding)]),
        ("to do", [finding.advice]),
    ):
        for line in filter(None, lines):
            yield f"- **{label}**: {escape_markdown(line)}"


def section_lines(parts: Iterable[PagePart]) -> Iterator[str]:
    """Make a section of the page: its first line is the heading."""
    begun = False
    for part in parts:
        if isinstance(part, Field):
            yield from (f"- **{part.label}**: {escape_markdown(line)}" for line in part.lines)
        elif part.text.strip():
            yield _line_text(part, begun)
            begun = True


def _line_text(part: Line, begun: bool) -> str:
    text = escape_markdown(part.text.strip())
    if part.text.startswith(" "):
        return f"- {text}"
    return f"\n### {text}\n" if begun else f"### {text}\n"
