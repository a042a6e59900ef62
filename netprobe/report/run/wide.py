"""Every result on one line, all columns: for grep, awk and people with wide screens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from netprobe.model.coverage import Unprobed
from netprobe.model.plan import Skipped
from netprobe.model.ports import text as ports_text
from netprobe.model.printable import clean
from netprobe.model.result import Result
from netprobe.report.page.flow_groups import also_texts
from netprobe.report.page.page import write_line
from netprobe.report.page.wording import excuse_text, plural, port_text
from netprobe.report.record.collector import Report
from netprobe.report.run.headline import scope, totals

# Words without spaces first, so that awk can count columns; sentences last.
_WORDS = (
    *("VERDICT", "STATE", "REASON", "PROOF", "SOURCE", "DESTINATION", "ADDRESS", "PROTOCOL"),
    *("PORTS", "MATRIX", "REQUIREMENT", "EXPECT", "OPTIONAL", "WHERE", "REJECTED-BY", "LAST-HOP"),
    *("RTT-MS", "ATTEMPTS"),
)
_SENTENCES = ("PURPOSE", "ROW", "EXCUSE", "BECAUSE", "WARNINGS")

Cells = tuple[str, ...]


def write_wide(report: Report, stream: TextIO) -> None:
    """Write all results and everything skipped. Reads the results twice: widths first."""
    widths = [len(word) for word in _WORDS]
    for row in _make_rows(report):
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=False)]
    for row in _make_rows(report):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        cells += row[len(widths) :]
        write_line("  ".join(cells), stream)
    stream.write("\n")
    before = [text for text in (report.info.earlier, report.info.baseline) if text]
    for text in (*before, *scope(report).values(), totals(report).text):
        write_line(text, stream)


def _make_rows(report: Report) -> Iterator[Cells]:
    yield (*_WORDS, *_SENTENCES)
    coverage = report.info.coverage
    rows = chain(
        map(_make_cells, report.collector.results()),
        map(_unprobed_cells, coverage.unprobed if coverage else ()),
        map(_skipped_cells, report.info.skipped),
    )
    for row in rows:
        yield tuple(clean(cell) or "-" for cell in row)


def _make_cells(result: Result) -> Cells:
    return (
        result.verdict, result.state, result.reason, result.proof, result.source,
        result.destination, result.address, result.protocol, port_text(result), result.matrix,
        result.requirement, result.expect, "optional" if result.optional else "",
        ",".join(result.where), result.rejected_by or "", result.last_hop or "",
        "" if result.rtt_ms is None else f"{result.rtt_ms:.3g}", str(result.attempts),
        "; ".join((result.purpose, *also_texts(result.also))), result.row, excuse_text(result),
        result.because, "; ".join(result.warnings),
    )  # fmt: skip


def _unprobed_cells(group: Unprobed) -> Cells:
    """Give flows that were not probed: zones stand for their hosts, and a sentence counts them."""
    ends = (f"zone:{group.from_zone}", f"zone:{group.to_zone}", "")
    ports = ports_text(group.ports).replace(" ", "")
    because = f"{plural(group.flows, 'flow')}: {group.because}"
    return (
        group.verdict, "unknown", group.reason, "none", *ends, group.protocol, ports, group.matrix,
        group.requirement, group.expect, "optional" if group.optional else "", "", "", "", "", "0",
        "", "", group.waived or "", because, "",
    )  # fmt: skip


def _skipped_cells(skipped: Skipped) -> Cells:
    empty = ("",) * 3
    ends = (skipped.source or "", skipped.destination or "")
    names = (skipped.matrix, skipped.requirement)
    return ("skipped", *empty, *ends, *empty, *names, *("",) * 7, "", "", "", skipped.reason, "")
