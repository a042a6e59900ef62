"""The report as Markdown: for job summaries, merge requests and tickets.

GitHub refuses a summary above 1 MiB as a whole, so that findings are cut, one by one, not the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TextIO

from netprobe.model.printable import escape_markdown
from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding
from netprobe.report.page.page import Field, PageSection
from netprobe.report.page.wording import number, plural
from netprobe.report.record.collector import Report
from netprobe.report.run.overview import OWNER_WORDS, overview_section, word_weight
from netprobe.report.run.run_page import finding_section, make_page

MOST_BYTES = 1_000_000
# Left for what follows the findings: each of its sections is bounded, and may be cut as well.
SHARE_OF_FINDINGS = 0.8


def write_markdown(report: Report, stream: TextIO) -> None:
    """Write headline, summary, findings and the rest, in at most ``MOST_BYTES``."""
    room = MarkdownRoom(stream, round(MOST_BYTES * SHARE_OF_FINDINGS))
    page = make_page(report)
    more = _make_list(line.text for line in page.headline.beside)
    room.write_block([f"# {escape_markdown(page.headline.verdict.text)}", "", *more])
    room.write_block(section_lines(overview_section(page.overview, ()), level=2))
    room.write_block(_make_list(line.text for line in page.origin))
    if len(page.findings) > 1:
        room.write_block(_table_lines(page.findings))
    for place, finding in enumerate(page.findings):
        told = finding_section(finding, page.addresses, brief=True)
        if not room.write_block(section_lines(told, level=2)):
            left = plural(len(page.findings) - place, "more finding")
            room.limit = MOST_BYTES
            room.write_block([f"**{left}: see the report itself, there is no room here.**"])
            break
    room.limit = MOST_BYTES - 1_000
    for section in page.sections:
        room.write_block(section_lines(section))
    room.limit = MOST_BYTES
    room.write_block([f"**{escape_markdown(page.totals.text)}**"])


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


def _table_lines(findings: Iterable[Finding]) -> Iterator[str]:
    yield "| # | verdict | who | stops | finding | flows |"
    yield "|--:|---|---|---|---|--:|"
    for finding in findings:
        flows = number(sum(member.port_count for member in finding.members))
        title = escape_markdown(finding.title)
        cells = (finding.verdict, OWNER_WORDS[owner_of(finding)], word_weight(finding), title)
        yield f"| {finding.number} | {' | '.join(cells)} | {flows} |"


def section_lines(section: PageSection, level: int = 3) -> Iterator[str]:
    """Give a section as a heading of this level and a list."""
    yield f"{'#' * level} {escape_markdown(section.title.text)}"
    yield ""
    for part in chain.from_iterable(section.groups):
        if isinstance(part, Field):
            yield from (f"- **{part.label}**: {escape_markdown(str(line))}" for line in part.lines)
        else:
            yield f"- {escape_markdown(part.text.strip())}"
    if section.more:
        yield f"- {section.more}"
