"""The sections beside the findings: open, waived, optional and skipped flows, limits, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace

from netprobe.model.accepted import STATES
from netprobe.model.names import names_text
from netprobe.model.result import HostReport, Result
from netprobe.report.page.flow_groups import Addresses, Survey, addresses_of, needs
from netprobe.report.page.page import Line, PagePart, Style
from netprobe.report.page.page import field as fields
from netprobe.report.page.progress import host_text
from netprobe.report.page.wording import (
    excuse_of,
    excuse_text,
    number,
    plural,
    port_text,
    where_text,
)
from netprobe.report.record.changes import change_parts, unshared_parts
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place
from netprobe.report.run.accepted_text import entry_text

MOST_BLOCKS = 20
MOST_NAMES = 8

Surveys = dict[tuple[object, ...], Survey]


@dataclass(slots=True)
class Rest:
    """Flows without a finding, grouped by common words; memory grows with the groups only."""

    addresses: Addresses = field(default_factory=dict)
    inconclusive: Surveys = field(default_factory=dict)
    not_tested: Surveys = field(default_factory=dict)
    excused: Surveys = field(default_factory=dict)


def survey_rest(report: Report) -> Rest:
    """Read all failures once and group those that no finding holds."""
    told = {place(member) for one in report.findings for member in one.members}
    entries = {one.id for one in report.info.accepted}
    rest = Rest(addresses_of(report.info))
    for result in report.collector.failures():
        if result.accepted is not None and result.accepted.id in entries:
            continue  # its entry has a line
        if not result.decides or place(result) not in told:
            surveys, key = _choose_group(rest, result)
            surveys.setdefault(key, Survey(result)).add(result)
    return rest


def _choose_group(rest: Rest, result: Result) -> tuple[Surveys, tuple[object, ...]]:
    requirement = (result.matrix, result.requirement)
    if not result.decides:
        return rest.excused, (result.verdict, *requirement, excuse_text(result))
    if result.verdict == "not-tested":
        # Equal words for several sources make one block, whatever the sources are called.
        return rest.not_tested, (result.reason, result.because.removeprefix(result.source))
    return rest.inconclusive, (result.protocol, result.reason, result.where, *requirement)


def open_parts(rest: Rest) -> Iterator[PagePart]:
    """First the inconclusive flows, then those that were not tested."""
    yield from _write_section(
        rest.inconclusive, rest.addresses, "INCONCLUSIVE: the evidence allows both"
    )
    yield from _write_section(rest.not_tested, rest.addresses, "NOT TESTED: nobody could look")


def _write_section(surveys: Surveys, addresses: Addresses, title: str) -> Iterator[PagePart]:
    if not surveys:
        return
    flows = sum(survey.flows for survey in surveys.values())
    yield Line()
    yield Line(f"{title} ({plural(flows, 'flow')})", "doubt")
    for index, survey in enumerate(_first_surveys(surveys)):
        if index:
            yield Line()
        yield from _survey_fields(survey, addresses)
    yield from _word_rest(surveys)


def _survey_fields(survey: Survey, addresses: Addresses) -> Iterator[PagePart]:
    first = survey.first
    yield from fields("flows", [survey.text(addresses)])
    yield from fields("purpose", needs(survey.requirements.values()))
    kind = first.reason if first.verdict == "not-tested" else f"{first.state}, {first.reason}"
    yield from fields("seen", [f"{first.because} ({kind})"])
    if first.verdict != "not-tested":
        yield from fields("where", [where_text(first)])


def _first_surveys(surveys: Surveys) -> Sequence[Survey]:
    return list(surveys.values())[:MOST_BLOCKS]


def _word_rest(items: Sized, noun: str = "more groups", output: str = "wide") -> Iterator[PagePart]:
    rest = len(items) - MOST_BLOCKS
    if rest > 0:
        yield Line(f"   and {number(rest)} {noun}, see -o {output}", "quiet")


def refusal_parts(report: Report) -> Iterator[PagePart]:
    """Passes that rest on a refusal, by destination: what a rejecting firewall gives, too."""
    refused = report.collector.refused
    if not refused:
        return
    flows = sum(survey.flows for survey in refused.values())
    verb = "passes" if flows == 1 else "pass"
    yield Line()
    yield Line(
        f"ON A REFUSAL: {plural(flows, 'flow')} {verb} only because the destination refused; "
        "nothing proved that a listener there can be reached, and a firewall that rejects may look "
        "the same (--strict: inconclusive)",
        "doubt",
    )
    addresses = addresses_of(report.info)
    ordered = sorted(refused.values(), key=lambda survey: place(survey.first))
    for survey in ordered[:MOST_BLOCKS]:
        yield Line(f"   {survey.text(addresses)}")
    yield from _word_rest(refused)


def excused_parts(rest: Rest) -> Iterator[PagePart]:
    """Optional, waived and known flows that did not pass: one line each, they decide nothing."""
    if not rest.excused:
        return
    yield Line()
    kinds = {excuse_of(survey.first) for survey in rest.excused.values()}
    known = "KNOWN, " if "known" in kinds else ""
    yield Line(f"{known}OPTIONAL OR WAIVED (not counted against the result)", "strong")
    for survey in _first_surveys(rest.excused):
        first = survey.first
        what = f"{first.requirement}, {survey.text(rest.addresses)}"
        yield Line(f"   {first.verdict}: {what}: {first.because} [{excuse_text(first)}]")
    yield from _word_rest(rest.excused)


def accepted_parts(report: Report) -> Iterator[PagePart]:
    """Every entry of accepted flows in one line, first those that somebody has to look at."""
    entries = report.info.accepted
    if not entries:
        return
    flows = plural(report.summary.accepted, "flow")
    yield Line()
    yield Line(f"ACCEPTED (not counted against the result): {flows}", "strong")
    ordered = sorted(entries, key=lambda entry: STATES.index(entry.state))
    for one in ordered[:MOST_BLOCKS]:
        style: Style = "plain" if one.state in ("active", "unseen") else "doubt"
        yield Line(f"   {entry_text(one)}", style)
    yield from _word_rest(ordered, "more", "json")


def changed_parts(report: Report) -> Iterator[PagePart]:
    """What changed since the run that is retried or the baseline.

    The findings say what still fails as before.
    """
    if report.changes is not None:
        changes = replace(report.changes, still=[])
        addresses = addresses_of(report.info)
        for part in (*change_parts(changes, addresses), *unshared_parts(changes, addresses)):
            yield from (Line(), *part)


def warning_parts(report: Report) -> Iterator[PagePart]:
    """Warnings of results, each sentence once with the first flow that carries it."""
    warned = report.collector.warned
    if not warned:
        return
    yield Line()
    yield Line("WARNINGS", "doubt")
    order = sorted(warned.items(), key=lambda item: place(item[1].first))
    for text, about in order[:MOST_BLOCKS]:
        rest = about.flows - about.first.port_count
        more = f" and {plural(rest, 'more flow')}" if rest else ""
        yield Line(f"   {_name_flow(about.first)}{more}: {text}")
    yield from _word_rest(order, "more")


def _name_flow(result: Result) -> str:
    ports = f" {port_text(result)}" if port_text(result) else ""
    return f"{result.source} → {result.destination} {result.protocol}{ports}"


def limit_parts(report: Report, rest: Rest) -> Iterator[PagePart]:
    """Show the cost of missing rights and agents; hosts listed as not tested are not repeated."""
    told = {source for survey in rest.not_tested.values() for source in survey.sources}
    lines = _word_costs(report.info.hosts)
    lines += [
        host_text(host)
        for host in report.info.hosts
        if host.state in ("failed", "lost") and host.name not in told
    ]
    yield from _write_list("LIMITS OF THIS RUN", lines, "plain")


def _word_costs(hosts: Sequence[HostReport]) -> list[str]:
    names: dict[str, list[str]] = {}
    for host in hosts:
        for cost in host.cost:
            names.setdefault(cost, []).append(host.name)
    return [f"{names_text(who, MOST_NAMES)}: {cost}" for cost, who in names.items()]


def skipped_parts(report: Report) -> Iterator[PagePart]:
    """Show the number of skipped requirements, and the most frequent reasons."""
    skipped = report.info.skipped
    if not skipped:
        return
    reasons = Counter(item.reason for item in skipped)
    lines = [f"{reason} ({number(count)})" for reason, count in reasons.most_common(4)]
    rest = len(reasons) - len(lines)
    if rest > 0:
        lines.append(f"and {plural(rest, 'more reason')}; -o wide lists them all")
    yield from _write_list(f"SKIPPED on purpose: {number(len(skipped))}", lines, "quiet")


def note_parts(report: Report) -> Iterator[PagePart]:
    """Show the notes of the plan and of the run."""
    yield from _write_list("NOTES", list(report.info.notes), "plain")


def _write_list(title: str, lines: Sequence[str], style: Style) -> Iterator[PagePart]:
    if lines:
        yield Line()
        yield Line(title, "strong")
        for line in lines:
            yield Line(f"   {line}", style)
