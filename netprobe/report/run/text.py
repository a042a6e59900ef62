"""The report for people: findings first, one block of lines each, the totals last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from netprobe.model.result import Finding, Result
from netprobe.report.page.flow_groups import MOST_LINES, Addresses, addresses_of, flow_lines, needs
from netprobe.report.page.page import Field, Line, PagePart, Style, field, write_plain
from netprobe.report.page.wording import number, plural, where_text
from netprobe.report.record.collector import Report
from netprobe.report.run import sections
from netprobe.report.run.coverage_text import coverage_parts
from netprobe.report.run.headline import headline, origin, totals

# Evidence sentences of one finding; the others have the same state and reason as one of these.
_MOST_EVIDENCE = 3
# With more findings than these a table of them comes first.
_MOST_WITHOUT_TABLE = 10


def write_text(report: Report, stream: TextIO) -> None:
    """Write the report: wrapped and coloured on a terminal, plain anywhere else."""
    write_parts(text_parts(report), stream)


def write_parts(parts: Iterable[PagePart], stream: TextIO) -> None:
    """Write any page: wrapped and coloured on a terminal, plain anywhere else."""
    if stream.isatty():
        # rich takes 60 ms to import, and pipes do not need it.
        from netprobe.report.page.terminal import write_terminal  # noqa: PLC0415

        write_terminal(parts, stream)
    else:
        write_plain(parts, stream)


def text_parts(report: Report) -> Iterator[PagePart]:
    """Show the whole report, from the headline to the line of totals."""
    rest = sections.survey_rest(report)
    told = report.deciding_findings
    failed = [finding for finding in told if _is_failure(finding)]
    yield from headline(report, len(failed))
    yield from origin(report)
    addresses = addresses_of(report.info)
    yield from _write_table(told)
    yield from _write_findings(failed, addresses)
    yield from sections.changed_parts(report)
    yield from sections.warning_parts(report)
    yield from _write_findings([one for one in told if not _is_failure(one)], addresses)
    yield from sections.open_parts(rest)
    yield from coverage_parts(report.info.coverage)
    yield from sections.refusal_parts(report)
    yield from sections.accepted_parts(report)
    yield from sections.excused_parts(rest)
    yield from sections.limit_parts(report, rest)
    yield from sections.skipped_parts(report)
    yield from sections.note_parts(report)
    yield Line()
    yield totals(report)


def _is_failure(finding: Finding) -> bool:
    return finding.verdict in ("blocked", "exposed")


def _write_table(findings: list[Finding]) -> Iterator[PagePart]:
    """List many findings, one line each: whoever reads on knows what is still to come."""
    if len(findings) <= _MOST_WITHOUT_TABLE:
        return
    yield Line()
    yield Line(f"FINDINGS ({number(len(findings))})", "strong")
    width = len(str(findings[-1].number))
    for one in findings:
        text = f"   {one.number:>{width}}  {one.verdict:<12}  {one.title}"
        yield Line(text, hang=width + 19)


def _write_findings(findings: list[Finding], addresses: Addresses) -> Iterator[PagePart]:
    for finding in findings:
        yield Line()
        style: Style = "bad" if _is_failure(finding) else "doubt"
        head = f"{finding.number}. "
        yield Line(f"{head}{finding.verdict.upper()}: {finding.title}", style, hang=len(head))
        yield from finding_fields(finding, addresses)


def finding_fields(
    finding: Finding, addresses: Addresses, most_flows: int = MOST_LINES
) -> Iterator[Field]:
    """Give the fields of a finding: flows, purpose, evidence, place and advice."""
    yield from field("flows", flow_lines(finding.members, addresses, most_flows))
    yield from field("purpose", needs(finding.members))
    yield from field("seen", _word_evidence(finding.members))
    yield from field("where", [where_text(finding)])
    yield from field("to do", [finding.advice])
    if finding.evidence is not None:
        yield from field("packets", [finding.evidence])


def _word_evidence(members: tuple[Result, ...]) -> list[str]:
    """The evidence of one flow for each state, reason and router, named where flows are several."""
    kinds: dict[tuple[str, ...], list[Result]] = {}
    for member in members:
        # TCP refuses by a reset, UDP by an error message.
        refused = member.protocol if member.state == "closed" else ""
        kind = (member.state, member.reason, member.rejected_by or "", refused)
        kinds.setdefault(kind, []).append(member)
    lines = [_evidence_line(alike, len(members) > 1) for alike in kinds.values()]
    more = len(lines) - _MOST_EVIDENCE
    return lines if more <= 0 else [*lines[:_MOST_EVIDENCE], f"and {more} more kinds of evidence"]


def _evidence_line(alike: list[Result], named: bool) -> str:
    first = alike[0]
    kind = f"{first.state}, {first.reason}"
    if not named:
        return f"{first.because} ({kind})"
    who = f"{first.source} → {first.destination}"
    others = plural(sum(result.port_count for result in alike), "flow")
    return f"{who}: {first.because} ({kind}: {others})"
