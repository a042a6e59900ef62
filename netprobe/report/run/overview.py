"""What a reader asks first: can the installation start, how many causes are there, who must act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from netprobe.model.exit import tested
from netprobe.model.firewall import FirewallRule
from netprobe.model.matrix import WEIGHTS, Weight
from netprobe.model.reason import OWNERS, Team
from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding
from netprobe.report.page.page import Field, Line, PagePart, PageSection, Style, field
from netprobe.report.page.wording import listed, number, plural
from netprobe.report.record.collector import Report, count_missing
from netprobe.report.run.unasked import word_roleless, word_unable
from netprobe.report.run.waiting import count_untested

CanStart = Literal["yes", "no", "cannot be told"]

OWNER_WORDS: Final[Mapping[Team, str]] = {
    "network": "network team", "hosts": "host owners", "ourselves": "ourselves",
    "unclear": "unclear",
}  # fmt: skip
_STYLES: Final[Mapping[CanStart, Style]] = {"yes": "good", "no": "bad", "cannot be told": "doubt"}
_STOPPED: Final[Mapping[Weight | None, str]] = {
    "installation": "the installation", "nodes": "nodes", "pods": "pods", "feature": "a feature",
    "monitoring": "monitoring",
}  # fmt: skip
# Without these nothing can be installed, or no node joins.
_NEEDED: Final[tuple[Weight, ...]] = ("installation", "nodes")
NOT_SAID: Final = "not said by the matrix"
_MOST_NUMBERS = 12


class Actor(Struct, frozen=True):
    """Who must act: for which findings, and how many firewall rules that takes.

    ``rules`` None: nobody has counted them. ``untested`` are flows that nobody could look at:
    those that wait for a finding are its owner's, all others our own matter.
    """

    owner: Team
    findings: tuple[int, ...] = ()
    rules: int | None = None
    untested: int = 0


class Overview(Struct, frozen=True):
    """The summary of a run; ``reasons`` say why, ``beside`` what else fails or was not asked."""

    can_start: CanStart
    reasons: tuple[str, ...]
    beside: tuple[str, ...]
    causes: int
    who: tuple[Actor, ...]


def make_overview(report: Report) -> Overview:
    """Give the summary of a run, from its counts and its findings."""
    findings = report.deciding_findings
    stopped = report.collector.stopped
    against = [_word_stopped(stopped, one) for one in _NEEDED if stopped[one]]
    unable = list(word_unable(report.info.skipped))
    doubts = [*_list_doubts(report), *unable]
    beside = [_word_stopped(stopped, one) for one in WEIGHTS if one not in _NEEDED and stopped[one]]
    fine = [_word_passes(report, bool(beside))]
    if against:
        answer: CanStart = "no"
        beside += [*([_word_stopped(stopped, None)] if stopped[None] else []), *unable]
    else:
        answer = "cannot be told" if doubts else "yes"
    return Overview(
        can_start=answer,
        reasons=tuple(against or doubts or fine),
        beside=(*beside, *word_roleless(report.info.skipped)),
        causes=len(findings),
        who=tuple(_list_actors(report, findings)),
    )


def _word_passes(report: Report, some_fail: bool) -> str:
    """``all other required flows pass, are covered or accepted``."""
    summary = report.summary
    further = [
        word
        for word, flows in (
            ("covered", summary.deciding.get("covered", 0)),
            ("accepted", summary.accepted + summary.waived),
        )
        if flows
    ]
    others = "all other required flows" if some_fail else "all required flows"
    if not further:
        return f"{others} pass"
    return f"{others} pass{' or are ' if len(further) == 1 else ', are '}{' or '.join(further)}"


def _word_stopped(stopped: Mapping[Weight | None, int], weight: Weight | None) -> str:
    flows = plural(stopped[weight], "flow")
    one = stopped[weight] == 1
    if weight is None:
        rows = "fails in a row" if one else "fail in rows"
        what = "it stops" if one else "they stop"
        return f"{flows} {rows} of which the matrix does not say what {what}"
    return f"{flows} that {'fails stops' if one else 'fail stop'} {_STOPPED[weight]}"


def _list_doubts(report: Report) -> Iterator[str]:
    """List why nobody can tell, as long as nothing says no."""
    info, summary = report.info, report.summary
    if not tested(summary):
        yield "nothing was tested"
    parts = [part for part in (info.selection, info.sample) if part is not None]
    if parts:
        yield f"only a part of the plan was asked: {'; '.join(parts)}"
    missing = count_missing(report)
    if info.interrupted or not info.complete:
        yield "the run did not come to its end"
    if report.collector.stopped[None]:
        yield _word_stopped(report.collector.stopped, None)
    deciding = summary.deciding
    unknown = deciding.get("inconclusive", 0) + deciding.get("not-tested", 0) + missing
    if unknown:
        yield f"{plural(unknown, 'required flow')} could not be judged"


def _list_actors(report: Report, findings: Sequence[Finding]) -> Iterator[Actor]:
    owners = {one.number: owner_of(one) for one in findings}
    rules = None if report.rules is None else _count_rules(report.rules, owners)
    untested = count_untested(report)
    for owner in OWNERS:
        mine = tuple(number for number, whose in owners.items() if whose == owner)
        if mine or untested[owner]:
            yield Actor(owner, mine, None if rules is None else rules[owner], untested[owner])


def _count_rules(rules: Sequence[FirewallRule], owners: Mapping[int, Team]) -> Counter[Team]:
    """Count a rule for who has to act for the first of its findings."""
    named = (next((one for one in rule.findings if one in owners), None) for rule in rules)
    return Counter(owners[one] for one in named if one is not None)


def overview_section(overview: Overview, findings: Sequence[Finding]) -> PageSection:
    """Show the summary; with several findings also the index of them, a line each."""
    title = Line(
        f"CAN THE INSTALLATION START? {overview.can_start.upper()}", _STYLES[overview.can_start]
    )
    index = tuple(index_lines(findings)) if len(findings) > 1 else ()
    groups: tuple[tuple[PagePart, ...], ...] = (tuple(_list_fields(overview)), index)
    return PageSection("summary", title, tuple(group for group in groups if group))


def _list_fields(overview: Overview) -> Iterator[Field]:
    yield from field("why", overview.reasons)
    yield from field("beside", overview.beside)
    if overview.causes:
        yield from field("causes", [number(overview.causes)])
    yield from field("who", [word_actor(one) for one in overview.who])


def word_actor(actor: Actor) -> str:
    """``network team: 2 causes (findings 1, 3), 5 firewall rules``."""
    parts = []
    if actor.findings:
        noun = "finding" if len(actor.findings) == 1 else "findings"
        numbers = listed([str(one) for one in actor.findings], _MOST_NUMBERS)
        parts.append(f"{plural(len(actor.findings), 'cause')} ({noun} {numbers})")
        if actor.rules is not None:
            parts.append(
                plural(actor.rules, "firewall rule") if actor.rules else "no firewall rule"
            )
    if actor.untested:
        what = "nobody could look at"
        if actor.owner != "ourselves":
            what = "waits for a finding" if actor.untested == 1 else "wait for a finding"
        parts.append(f"{plural(actor.untested, 'flow')} that {what}")
    return f"{OWNER_WORDS[actor.owner]}: {', '.join(parts)}"


def word_weight(finding: Finding) -> str:
    """Give what a finding stops, or that nobody says it."""
    return finding.stops or NOT_SAID


def index_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """Give a line for each finding: number, verdict, who must act, what it stops, title."""
    rows = [
        (str(one.number), one.verdict, OWNER_WORDS[owner_of(one)], word_weight(one))
        for one in findings
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, one in zip(rows, findings, strict=True):
        first, *rest = widths
        cells = [row[0].rjust(first), *map(str.ljust, row[1:], rest), one.title]
        yield Line("  ".join(cells), hang=sum(widths) + 11)
