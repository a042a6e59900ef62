"""What the report for people says beside the findings: what is open, excused or skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, field

from netprobe.model.names import names_text
from netprobe.model.result import HostReport, Result
from netprobe.report.collector import Report
from netprobe.report.flow_groups import Addresses, Survey, addresses_of, needs
from netprobe.report.page import Line, PagePart, Style
from netprobe.report.page import field as fields
from netprobe.report.progress import host_text
from netprobe.report.spool import place
from netprobe.report.wording import number, plural, port_text, where_text

MOST_BLOCKS = 20
MOST_NAMES = 8

Surveys = dict[tuple[object, ...], Survey]


@dataclass(slots=True)
class Rest:
    """Failures that no finding tells of, by what they have in common; grows with what differs."""

    addresses: Addresses = field(default_factory=dict)
    failed: Surveys = field(default_factory=dict)
    inconclusive: Surveys = field(default_factory=dict)
    not_tested: Surveys = field(default_factory=dict)
    excused: Surveys = field(default_factory=dict)


def survey_rest(report: Report) -> Rest:
    """Read all failures once and group those that no finding holds."""
    told = {place(member) for one in report.findings for member in one.members}
    rest = Rest(addresses_of(report.info))
    for result in report.collector.failures():
        if not result.decides:
            _add(rest.excused, (result.verdict, *_need(result), result.waived), result)
        elif place(result) not in told:
            _add_deciding(rest, result)
    return rest


def _add_deciding(rest: Rest, result: Result) -> None:
    if result.verdict == "not-tested":
        # The same words for several sources are one block, whatever each is called.
        words = result.because.removeprefix(result.source)
        _add(rest.not_tested, (result.reason, words), result)
    elif result.verdict == "inconclusive":
        _add(rest.inconclusive, (result.protocol, *_alike(result)), result)
    else:
        _add(rest.failed, (result.verdict, result.rejected_by, *_alike(result)), result)


def _alike(result: Result) -> tuple[object, ...]:
    return (result.reason, result.where, *_need(result))


def _need(result: Result) -> tuple[str, str]:
    return result.matrix, result.requirement


def _add(surveys: Surveys, key: tuple[object, ...], result: Result) -> None:
    surveys.setdefault(key, Survey(result)).add(result)


def failed_parts(rest: Rest) -> Iterator[PagePart]:
    """Failures without a finding; they lead, as findings do."""
    for survey in _some(rest.failed):
        first = survey.first
        yield Line()
        yield Line(f"{first.verdict.upper()}: {first.purpose or first.requirement}", "bad")
        yield from _survey_fields(survey, rest.addresses)
    yield from _more(rest.failed)


def open_parts(rest: Rest) -> Iterator[PagePart]:
    """First what the evidence leaves open, then what nobody could look at."""
    yield from _section(rest.inconclusive, rest.addresses, "INCONCLUSIVE: the evidence allows both")
    yield from _section(rest.not_tested, rest.addresses, "NOT TESTED: nobody could look")


def _section(surveys: Surveys, addresses: Addresses, title: str) -> Iterator[PagePart]:
    if not surveys:
        return
    flows = sum(survey.flows for survey in surveys.values())
    yield Line()
    yield Line(f"{title} ({plural(flows, 'flow')})", "doubt")
    for index, survey in enumerate(_some(surveys)):
        if index:
            yield Line()
        yield from _survey_fields(survey, addresses)
    yield from _more(surveys)


def _survey_fields(survey: Survey, addresses: Addresses) -> Iterator[PagePart]:
    first = survey.first
    yield from fields("flows", [survey.text(addresses)])
    yield from fields("purpose", needs(survey.requirements.values()))
    kind = first.reason if first.verdict == "not-tested" else f"{first.state}, {first.reason}"
    yield from fields("seen", [f"{first.because} ({kind})"])
    if first.verdict != "not-tested":
        yield from fields("where", [where_text(first)])


def _some(surveys: Surveys) -> Sequence[Survey]:
    return list(surveys.values())[:MOST_BLOCKS]


def _more(surveys: Sized) -> Iterator[PagePart]:
    rest = len(surveys) - MOST_BLOCKS
    if rest > 0:
        yield Line(f"   and {number(rest)} more groups, see -o wide", "quiet")


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
    yield from _more(refused)


def excused_parts(rest: Rest) -> Iterator[PagePart]:
    """Optional and waived flows that did not pass: one line each, they decide nothing."""
    if not rest.excused:
        return
    yield Line()
    yield Line("OPTIONAL OR WAIVED (not counted against the result)", "strong")
    for survey in _some(rest.excused):
        first = survey.first
        why = "optional" if first.waived is None else f"waived: {first.waived}"
        what = f"{first.requirement}, {survey.text(rest.addresses)}"
        yield Line(f"   {first.verdict}: {what}: {first.because} [{why}]")
    yield from _more(rest.excused)


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
        yield Line(f"   {_flow(about.first)}{more}: {text}")
    if len(order) > MOST_BLOCKS:
        yield Line(f"   and {number(len(order) - MOST_BLOCKS)} more, see -o wide", "quiet")


def _flow(result: Result) -> str:
    ports = f" {port_text(result)}" if port_text(result) else ""
    return f"{result.source} → {result.destination} {result.protocol}{ports}"


def limit_parts(report: Report, rest: Rest) -> Iterator[PagePart]:
    """What missing rights and missing agents cost; hosts told of as not tested are not repeated."""
    told = {source for survey in rest.not_tested.values() for source in survey.sources}
    lines = _costs(report.info.hosts)
    lines += [
        host_text(host)
        for host in report.info.hosts
        if host.state in ("failed", "lost") and host.name not in told
    ]
    yield from _list("LIMITS OF THIS RUN", lines, "plain")


def _costs(hosts: Sequence[HostReport]) -> list[str]:
    names: dict[str, list[str]] = {}
    for host in hosts:
        for cost in host.cost:
            names.setdefault(cost, []).append(host.name)
    return [f"{names_text(who, MOST_NAMES)}: {cost}" for cost, who in names.items()]


def skipped_parts(report: Report) -> Iterator[PagePart]:
    """How much was skipped on purpose, and the most frequent reasons."""
    skipped = report.info.skipped
    if not skipped:
        return
    reasons = Counter(item.reason for item in skipped)
    lines = [f"{reason} ({number(count)})" for reason, count in reasons.most_common(4)]
    rest = len(reasons) - len(lines)
    if rest > 0:
        lines.append(f"and {plural(rest, 'more reason')}; -o wide lists them all")
    yield from _list(f"SKIPPED on purpose: {number(len(skipped))}", lines, "quiet")


def note_parts(report: Report) -> Iterator[PagePart]:
    """What the plan and the run want the reader to know."""
    yield from _list("NOTES", list(report.info.notes), "plain")


def _list(title: str, lines: Sequence[str], style: Style) -> Iterator[PagePart]:
    if lines:
        yield Line()
        yield Line(title, "strong")
        for line in lines:
            yield Line(f"   {line}", style)
