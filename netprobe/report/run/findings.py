"""A finding as a section: flows, purpose, evidence, place and advice."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.result import Finding, Result
from netprobe.report.page.flow_groups import MOST_LINES, Addresses, flow_lines, needs
from netprobe.report.page.page import Field, Line, PageSection, Style, field
from netprobe.report.page.wording import plural, where_text

# Evidence sentences of one finding; the others have the same state and reason as one of these.
_MOST_EVIDENCE = 3


def is_failure(finding: Finding) -> bool:
    """Tell a finding about flows that fail from one about flows that could not be judged."""
    return finding.verdict in ("blocked", "exposed")


def finding_section(
    finding: Finding, addresses: Addresses, most_flows: int = MOST_LINES, *, brief: bool = False
) -> PageSection:
    """Give a finding with so many lines of flows; ``brief`` leaves out what tickets need not."""
    head = f"{finding.number}. "
    title = f"{head}{finding.verdict.upper()}: {finding.title}"
    style: Style = "bad" if is_failure(finding) else "doubt"
    fields = tuple(_list_fields(finding, addresses, most_flows, brief))
    return PageSection(f"finding-{finding.number}", Line(title, style, len(head)), (fields,))


def _list_fields(
    finding: Finding, addresses: Addresses, most_flows: int, brief: bool
) -> Iterator[Field]:
    members = finding.members
    yield from field("flows", flow_lines(members, addresses, most_flows))
    yield from field("purpose", needs(members))
    yield from field("seen", _list_sentences(members) if brief else _word_evidence(members))
    yield from field("where", [where_text(finding)])
    yield from field("to do", [finding.advice])
    if finding.evidence is not None and not brief:
        yield from field("packets", [finding.evidence])


def _list_sentences(members: tuple[Result, ...]) -> list[str]:
    return list(dict.fromkeys(member.because for member in members))[:_MOST_EVIDENCE]


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
