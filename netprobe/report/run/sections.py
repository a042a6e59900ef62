"""The sections beside the findings, each a function of the run that gives it where it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from netprobe.model.accepted import STATES
from netprobe.model.names import names_text
from netprobe.model.result import HostReport, Result
from netprobe.report.page.flow_groups import Addresses, Survey, addresses_of, needs
from netprobe.report.page.page import (
    MOST_PARTS,
    Field,
    Line,
    PageSection,
    Style,
    count_more,
    field,
    section,
)
from netprobe.report.page.progress import host_text
from netprobe.report.page.sentences import HOLES, replace_name
from netprobe.report.page.wording import (
    excuse_of,
    excuse_text,
    number,
    plural,
    port_text,
    where_text,
)
from netprobe.report.record.collector import Report, Warned
from netprobe.report.record.spool import place
from netprobe.report.run.accepted_text import entry_text
from netprobe.report.run.change_sections import change_sections
from netprobe.report.run.coverage_text import coverage_sections

MOST_NAMES = 8

Surveys = dict[tuple[object, ...], Survey]


class RunSurvey(NamedTuple):
    """A run, and its flows without a finding by section and in groups: memory grows with those."""

    report: Report
    addresses: Addresses
    groups: Mapping[str, Surveys]


def survey_run(report: Report) -> RunSurvey:
    """Read all failures once and group those that no finding holds."""
    told = {place(member) for one in report.findings for member in one.members}
    entries = {one.id for one in report.info.accepted}
    groups: dict[str, Surveys] = {"inconclusive": {}, "not-tested": {}, "excused": {}}
    for result in report.collector.failures():
        if result.accepted is not None and result.accepted.id in entries:
            continue  # its entry has a line
        if not result.decides or place(result) not in told:
            name, key = _choose_group(result)
            groups[name].setdefault(key, Survey(result)).add(result)
    return RunSurvey(report, addresses_of(report.info), groups)


def _choose_group(result: Result) -> tuple[str, tuple[object, ...]]:
    requirement = (result.matrix, result.requirement)
    if not result.decides:
        return "excused", (result.verdict, *requirement, excuse_text(result))
    if result.verdict == "not-tested":
        # A reason that several sources have is one group, whatever the sources are called.
        return "not-tested", (result.reason, replace_name(result.because, result.source, HOLES[0]))
    return "inconclusive", (result.protocol, result.reason, result.where, *requirement)


def open_sections(about: RunSurvey) -> Iterator[PageSection]:
    """First the inconclusive flows, then those that were not tested."""
    for name, words in (
        ("inconclusive", "INCONCLUSIVE: the evidence allows both"),
        ("not-tested", "NOT TESTED: nobody could look"),
    ):
        surveys = about.groups[name]
        if surveys:
            flows = sum(survey.flows for survey in surveys.values())
            title = Line(f"{words} ({plural(flows, 'flow')})", "doubt")
            told = islice(surveys.values(), MOST_PARTS)
            groups = tuple(tuple(_survey_fields(one, about.addresses)) for one in told)
            yield PageSection(name, title, groups, count_more(len(surveys), "more groups"))


def _survey_fields(survey: Survey, addresses: Addresses) -> Iterator[Field]:
    first = survey.first
    yield from field("flows", [survey.text(addresses)])
    yield from field("purpose", needs(survey.requirements.values()))
    kind = first.reason if first.verdict == "not-tested" else f"{first.state}, {first.reason}"
    yield from field("seen", [f"{first.because} ({kind})"])
    if first.verdict != "not-tested":
        yield from field("where", [where_text(first)])


def unprobed_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Show the flows that were not probed, and what is known of them."""
    return coverage_sections(about.report.info.coverage)


def refusal_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Passes that rest on a refusal, by destination: what a rejecting firewall gives, too."""
    refused = about.report.collector.refused
    flows = sum(survey.flows for survey in refused.values())
    verb = "passes" if flows == 1 else "pass"
    title = (
        f"ON A REFUSAL: {plural(flows, 'flow')} {verb} only because the destination refused; "
        "nothing proved that a listener there can be reached, and a firewall that rejects may look "
        "the same (--strict: inconclusive)"
    )
    ordered = sorted(refused.values(), key=lambda survey: place(survey.first))
    lines = (Line(survey.text(about.addresses)) for survey in ordered)
    yield from section("refusals", Line(title, "doubt"), lines, "more groups")


def excused_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Optional, waived and known flows that did not pass: one line each, they decide nothing."""
    surveys = about.groups["excused"].values()
    known = "KNOWN, " if "known" in {excuse_of(survey.first) for survey in surveys} else ""
    title = Line(f"{known}OPTIONAL OR WAIVED (not counted against the result)", "strong")
    lines = (_excused_line(one, about.addresses) for one in surveys)
    yield from section("excused", title, lines, "more groups")


def _excused_line(survey: Survey, addresses: Addresses) -> Line:
    first = survey.first
    what = f"{first.requirement}, {survey.text(addresses)}"
    return Line(f"{first.verdict}: {what}: {first.because} [{excuse_text(first)}]")


def accepted_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Every entry of accepted flows in one line, first those that somebody has to look at."""
    entries = sorted(about.report.info.accepted, key=lambda entry: STATES.index(entry.state))
    flows = plural(about.report.summary.accepted, "flow")
    title = Line(f"ACCEPTED (not counted against the result): {flows}", "strong")
    lines = (
        Line(entry_text(one), "plain" if one.state in ("active", "unseen") else "doubt")
        for one in entries
    )
    yield from section("accepted", title, lines, "more", "json")


def changed_sections(about: RunSurvey) -> Iterator[PageSection]:
    """What changed since the run that is retried or the baseline.

    The findings say what still fails as before.
    """
    changes = about.report.changes
    if changes is not None:
        yield from change_sections(replace(changes, still=[]), about.addresses)


def warning_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Warnings of results, each sentence once with the first flow that carries it."""
    warned = sorted(about.report.collector.warned.items(), key=lambda item: place(item[1].first))
    lines = (_warning_line(*one) for one in warned)
    yield from section("warnings", Line("WARNINGS", "doubt"), lines, "more")


def _warning_line(text: str, about: Warned) -> Line:
    rest = about.flows - about.first.port_count
    more = f" and {plural(rest, 'more flow')}" if rest else ""
    return Line(f"{_name_flow(about.first)}{more}: {text}")


def _name_flow(result: Result) -> str:
    ports = f" {port_text(result)}" if port_text(result) else ""
    return f"{result.source} → {result.destination} {result.protocol}{ports}"


def limit_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Show the cost of missing rights and agents; hosts listed as not tested are not repeated."""
    hosts = about.report.info.hosts
    told = {source for survey in about.groups["not-tested"].values() for source in survey.sources}
    failed = [
        host_text(host)
        for host in hosts
        if host.state in ("failed", "lost") and host.name not in told
    ]
    yield from _list_texts("limits", "LIMITS OF THIS RUN", [*_word_costs(hosts), *failed])


def _word_costs(hosts: Sequence[HostReport]) -> list[str]:
    names: dict[str, list[str]] = {}
    for host in hosts:
        for cost in host.cost:
            names.setdefault(cost, []).append(host.name)
    return [f"{names_text(who, MOST_NAMES)}: {cost}" for cost, who in names.items()]


def skipped_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Show the number of skipped requirements, and the most frequent reasons."""
    skipped = about.report.info.skipped
    reasons = Counter(item.reason for item in skipped)
    texts = [f"{reason} ({number(count)})" for reason, count in reasons.most_common(4)]
    rest = len(reasons) - len(texts)
    if rest > 0:
        texts.append(f"and {plural(rest, 'more reason')}; -o wide lists them all")
    title = f"SKIPPED on purpose: {number(len(skipped))}"
    yield from _list_texts("skipped", title, texts, "quiet")


def note_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Show the notes of the plan and of the run."""
    yield from _list_texts("notes", "NOTES", about.report.info.notes)


def _list_texts(
    name: str, title: str, texts: Sequence[str], style: Style = "plain"
) -> Iterator[PageSection]:
    yield from section(name, Line(title, "strong"), (Line(text, style) for text in texts))
