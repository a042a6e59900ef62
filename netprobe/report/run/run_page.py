"""What a report says of a run, before anybody prints it: every format for people prints this.

Findings (flows, purpose, evidence, place and advice), and the sections beside them in their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.accepted import STATES
from netprobe.model.host_key import HostKey
from netprobe.model.names import names_text
from netprobe.model.plan import ABOUT_HOSTS
from netprobe.model.reasons import find_reason
from netprobe.model.result import Finding, HostReport, Result
from netprobe.report.page.flow_groups import (
    MOST_LINES,
    Addresses,
    Survey,
    addresses_of,
    flow_lines,
    needs,
    wire_text,
)
from netprobe.report.page.host_keys import word_host_keys
from netprobe.report.page.page import (
    MOST_PARTS,
    Field,
    Line,
    More,
    PageSection,
    Style,
    count_more,
    field,
    section,
)
from netprobe.report.page.progress import word_failed_hosts
from netprobe.report.page.wording import (
    HOLES,
    excuse_of,
    excuse_text,
    is_failure,
    make_holes,
    number,
    plural,
    replace_name,
    where_text,
)
from netprobe.report.record.collector import Report, Warned
from netprobe.report.record.spool import place
from netprobe.report.run.accepted_text import entry_text
from netprobe.report.run.change_sections import change_sections
from netprobe.report.run.coverage_text import coverage_sections
from netprobe.report.run.headline import Headline, headline, origin, totals
from netprobe.report.run.overview import Overview, make_overview, overview_section
from netprobe.report.run.quality_text import quality_sections
from netprobe.report.run.to_do import choose_to_do, word_wait
from netprobe.report.run.waiting import Awaited

# Evidence sentences of one finding; the others have the same state and reason as one of these.
_MOST_EVIDENCE = 3
# Names, addresses and ports of a line.
_WORDS = re.compile(r"[\w.:/\[\]-]*\w[\w\]]*")


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
    # A fault of a host is of no flow, and its headline says what it is about.
    if any(member.requirement not in ABOUT_HOSTS for member in members):
        lines = flow_lines(members, addresses, most_flows)
        yield from field("flows", _leave_out_repeated(lines, finding.title))
        yield from field("purpose", needs(members))
    yield from field("seen", _list_sentences(members) if brief else _word_evidence(members))
    yield from field("where", [where_text(finding)])
    yield from field("to do", [finding.advice])
    if not brief:
        yield from field("packets", list(_list_packets(finding)))


def _leave_out_repeated(lines: Sequence[str | More], title: str) -> Sequence[str | More]:
    """Give nothing where a single line only repeats the headline: its hosts, addresses, ports."""
    said = set(_WORDS.findall(title))
    repeats = len(lines) == 1 and said.issuperset(_WORDS.findall(str(lines[0])))
    return [] if repeats else lines


def _list_packets(finding: Finding) -> Iterator[str]:
    """Name the file with packets, or say why there is none; nothing where none was to be kept."""
    if finding.evidence is not None:
        yield finding.evidence
    elif finding.no_evidence is not None:
        yield f"none: {finding.no_evidence}"


def _list_sentences(members: tuple[Result, ...]) -> list[str]:
    return list(dict.fromkeys(member.because for member in members))[:_MOST_EVIDENCE]


def _word_evidence(members: tuple[Result, ...]) -> list[str]:
    """The evidence of one flow for each state, reason and router, named where flows are several."""
    kinds: dict[tuple[str, ...], list[Result]] = {}
    for member in members:
        # TCP refuses by a reset, UDP by an error message.
        refused = member.protocol if member.state == "closed" else ""
        # Of hosts' own faults each sentence has its own servers or clocks.
        of_host = make_holes(member.because, member) if member.requirement in ABOUT_HOSTS else ""
        kind = (member.state, member.reason, member.rejected_by or "", refused, of_host)
        kinds.setdefault(kind, []).append(member)
    lines = [_evidence_line(alike, len(members) > 1) for alike in kinds.values()]
    more = len(lines) - _MOST_EVIDENCE
    return lines if more <= 0 else [*lines[:_MOST_EVIDENCE], f"and {more} more kinds of evidence"]


def _evidence_line(alike: list[Result], named: bool) -> str:
    first = alike[0]
    kind = f"{first.state}, {first.reason}"
    if not named:
        return f"{first.because} ({kind})"
    if first.requirement in ABOUT_HOSTS:
        rest = [member.source for member in alike[1:]]
        so = f"; so {names_text(rest, MOST_NAMES)}" if rest else ""
        return f"{first.because} ({kind}){so}"
    who = f"{first.source} → {first.destination}"
    others = plural(sum(result.port_count for result in alike), "flow")
    return f"{who}: {first.because} ({kind}: {others})"


MOST_NAMES = 8

Surveys = dict[tuple[object, ...], Survey]


class RunSurvey(NamedTuple):
    """A run, and its flows without a finding by section and in groups: memory grows with those."""

    report: Report
    addresses: Addresses
    groups: Mapping[str, Surveys]
    awaited: Awaited


def survey_run(report: Report) -> RunSurvey:
    """Read all failures once and group those that no finding holds."""
    told = {place(member) for one in report.findings for member in one.members}
    entries = {one.id for one in report.info.accepted}
    groups: dict[str, Surveys] = {"inconclusive": {}, "not-tested": {}, "excused": {}}
    keys = {one.name: one.host_key for one in report.info.hosts}
    awaited = Awaited(report.findings)
    for result in report.collector.failures():
        if result.accepted is not None and result.accepted.id in entries:
            continue  # its entry has a line
        if not result.decides or place(result) not in told:
            name, key = _choose_group(result, keys.get(result.source), awaited)
            survey = groups[name].setdefault(key, Survey(result))
            survey.add(result)
            if name == "not-tested":
                cause = replace_name(result.because, result.source, HOLES[0])
                survey.causes.setdefault(cause, result.because)
    return RunSurvey(report, addresses_of(report.info), groups, awaited)


def _choose_group(
    result: Result, host_key: HostKey | None, awaited: Awaited
) -> tuple[str, tuple[object, ...]]:
    requirement = (result.matrix, result.requirement, result.also)
    if not result.decides:
        excuse = str(excuse_of(result))
        return "excused", (result.verdict, *requirement, excuse, getattr(result, excuse))
    if result.verdict == "not-tested":
        finding = awaited.find(result)
        awaits = None if finding is None else finding.number
        return "not-tested", (result.reason, host_key.state if host_key else None, awaits)
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
            groups = tuple(tuple(_survey_fields(one, about)) for one in told)
            yield PageSection(name, title, groups, count_more(len(surveys), "more groups"))


def _survey_fields(survey: Survey, about: RunSurvey) -> Iterator[Field]:
    first = survey.first
    yield from field("flows", [survey.text(about.addresses)])
    yield from field("purpose", needs(survey.requirements.values()))
    if first.verdict == "not-tested":
        yield from _untested_fields(survey, about.report, about.awaited)
    else:
        yield from field("seen", [f"{first.because} ({first.state}, {first.reason})"])
        yield from field("where", [where_text(first)])
        in_doubt = find_reason(first.reason).in_doubt
        yield from field("to do", [in_doubt] if in_doubt else [])


def _untested_fields(survey: Survey, report: Report, awaited: Awaited) -> Iterator[Field]:
    """Say why nobody could look, and what to do; untrusted host keys are one line for all hosts."""
    reason, sources = survey.first.reason, survey.sources
    hosts = [one for one in report.info.hosts if one.name in sources]
    keys = {one.name: one.host_key for one in hosts if one.host_key}
    troubles = list(word_host_keys(keys)) if reason == "no-vantage" else []
    seen = [one.what for one in troubles] or list(survey.causes.values())
    lines: list[str | More] = [f"{text} ({reason})" for text in seen]
    rest = len(lines) - MOST_LINES
    yield from field(
        "seen", lines if rest <= 0 else [*lines[:MOST_LINES], More(f"and {rest} more")]
    )
    finding = awaited.find(survey.first)
    words = (
        choose_to_do(reason, sources, report.findings) if finding is None else word_wait(finding)
    )
    yield from field("to do", [one.to_do for one in troubles] or [words])


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
    """Warnings of results that findings do not say, each once with the first flow that has it."""
    beside = about.report.collector.warned_beside
    warned = sorted(beside.items(), key=lambda item: place(item[1].first))
    lines = (_warning_line(*one) for one in warned)
    yield from section("warnings", Line("WARNINGS", "doubt"), lines, "more")


def _warning_line(text: str, about: Warned) -> Line:
    rest = about.flows - about.first.port_count
    more = f" and {plural(rest, 'more flow')}" if rest else ""
    first = about.first
    if first.requirement in ABOUT_HOSTS:
        return Line(f"{first.source}{more}: {text}")
    wire = wire_text([(first.protocol, first.ports)])
    return Line(f"{first.source} → {first.destination} {wire}{more}: {text}")


def limit_sections(about: RunSurvey) -> Iterator[PageSection]:
    """Show the cost of missing rights and agents; hosts listed as not tested are not repeated."""
    hosts = about.report.info.hosts
    told = {source for survey in about.groups["not-tested"].values() for source in survey.sources}
    failed = (one for one in hosts if one.state in ("failed", "lost") and one.name not in told)
    texts = [*_word_costs(hosts), *word_failed_hosts(failed)]
    yield from _list_texts("limits", "LIMITS OF THIS RUN", texts)


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


def _list_texts(
    name: str, title: str, texts: Sequence[str], style: Style = "plain"
) -> Iterator[PageSection]:
    yield from section(name, Line(title, "strong"), (Line(text, style) for text in texts))


class RunPage(Struct, frozen=True):
    """A run from headline and summary to totals; ``findings`` are those that count.

    A format gives each finding as much room as it has (``finding_section``). What stands beside
    the findings is in its order; ``news`` stand before findings that are no failures.
    """

    headline: Headline
    overview: Overview
    origin: tuple[Line, ...]
    findings: tuple[Finding, ...]
    addresses: Addresses
    news: tuple[PageSection, ...]
    rest: tuple[PageSection, ...]
    totals: Line

    @property
    def summary(self) -> PageSection:
        """What stands first: whether the installation can start, who must act, and the index."""
        return overview_section(self.overview, self.findings)

    @property
    def sections(self) -> tuple[PageSection, ...]:
        """All sections beside the findings."""
        return self.news + self.rest


def make_page(report: Report) -> RunPage:
    """Make the page of a run; its failures are read once."""
    about = survey_run(report)
    rest = chain(
        open_sections(about),
        coverage_sections(report.info.coverage),
        quality_sections(report),
        refusal_sections(about),
        accepted_sections(about),
        excused_sections(about),
        limit_sections(about),
        skipped_sections(about),
        _list_texts("notes", "NOTES", report.info.notes),
    )
    return RunPage(
        headline(report),
        make_overview(report),
        tuple(origin(report)),
        tuple(report.deciding_findings),
        about.addresses,
        (*changed_sections(about), *warning_sections(about)),
        tuple(rest),
        totals(report),
    )
