"""JUnit XML for CI servers: a test case for each requirement, protocol and destination.

Names hold roles, and hosts only where a role has few of them, so that they are equal from run to
run and a file stays small: GitLab reads 30 MB, and of two cases with one name only the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TextIO

from msgspec import Struct, field

import netprobe
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.exit import PASS, exit_status
from netprobe.model.plan import Skipped
from netprobe.model.printable import clean
from netprobe.model.result import Result
from netprobe.model.run import RunIndex
from netprobe.report.page.flow_groups import need, wire_text
from netprobe.report.page.junit_xml import CaseFate, JunitCase, JunitSuite, write_suites
from netprobe.report.page.progress import host_text
from netprobe.report.page.wording import excuse_text, number, plural
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place
from netprobe.report.run.coverage_text import example_of
from netprobe.report.run.headline import headline, scope, word_value

# A destination role of so many hosts has a case for each of them.
FEW_HOSTS = 8
# Of each case, in the text; and so many failed agents.
MOST_FLOWS = 20
MOST_TITLES = 5

_FATES: dict[str, CaseFate] = {
    "blocked": "failure", "exposed": "failure", "inconclusive": "error", "not-tested": "error",
}  # fmt: skip
_WORST: tuple[CaseFate, ...] = ("failure", "error", "skipped")


class _Case(Struct):
    """One test case: its flows are counted, and the first of those that failed are kept.

    ``shared``: what flows are for that other matrices demand, too.
    """

    name: str
    flows: int = 0
    covered: int = 0
    failed: dict[CaseFate, int] = field(default_factory=dict)
    kept: list[tuple[CaseFate, Result]] = field(default_factory=list)
    why: str = ""
    shared: dict[str, None] = field(default_factory=dict)

    @property
    def fate(self) -> CaseFate | None:
        """The worst of its flows; None where all are as they should be."""
        return next((fate for fate in _WORST if fate in self.failed), None)

    def add_unprobed(self, group: Unprobed, example: Result) -> None:
        """Count flows that were not probed: covered ones fail nothing, and are told."""
        self.flows += group.flows
        if group.verdict == "covered":
            self.covered += group.flows
            return
        fate: CaseFate = "error" if group.decides else "skipped"
        self.failed[fate] = self.failed.get(fate, 0) + group.flows
        self.kept.append((fate, example))

    def add(self, result: Result) -> None:
        """Count one result."""
        if result.also:
            self.shared[need(result)] = None
        self.flows += result.port_count
        if result.verdict in ("pass", "covered"):
            return
        fate = _FATES[result.verdict] if result.decides else "skipped"
        self.failed[fate] = self.failed.get(fate, 0) + result.port_count
        if sum(one == fate for one, _ in self.kept) < MOST_FLOWS:
            self.kept.append((fate, result))


# The cases of a matrix by class and name: no two are called the same.
Suite = dict[tuple[str, str], _Case]
# What the finding of a result is called, by the result's place.
Titles = dict[object, str]

RUN = "netprobe run"


def write_junit(report: Report, stream: TextIO) -> None:
    """Write a suite for each matrix, and one about the run: its end, and its agents."""
    titles = _find_titles(report)
    suites = [
        JunitSuite(
            name,
            [_tell_case(class_name, case, titles) for (class_name, _), case in suite.items()],
            _list_properties(report, name),
        )
        for name, suite in {RUN: _list_run_cases(report), **_list_suites(report)}.items()
    ]
    write_suites("netprobe", suites, report.info.started_at, report.info.elapsed_s, stream)


def _list_run_cases(report: Report) -> Suite:
    """Give the cases that fail where the run did not come to its end, or where agents did not.

    Agents that failed without harm to the exit status are told, and fail nothing.
    """
    case = _Case("the run came to its end", flows=1)
    if not report.info.complete:
        case.failed["error"] = 1
        case.why = headline(report).lines[0].text
    agents = _Case("every agent worked", flows=1)
    failed = [host_text(host) for host in report.info.hosts if host.state in ("failed", "lost")]
    if failed:
        status = exit_status(report.summary, report.info.interrupted)
        agents.failed["skipped" if status == PASS else "error"] = 1
        more = len(failed) - MOST_FLOWS
        agents.why = "; ".join([*failed[:MOST_FLOWS], *([f"and {more} more"] if more > 0 else [])])
    return {(RUN, one.name): one for one in (case, agents)}


def _list_suites(report: Report) -> dict[str, Suite]:
    """Give the cases of every matrix, by class and name."""
    suites: dict[str, Suite] = {matrix.name: {} for matrix in report.info.matrices}
    names = _CaseNames(report)
    for result in report.collector.results():
        _open_case(suites, result, names.name(result)).add(result)
    about = report.info.coverage or Coverage()
    for group in about.unprobed:
        example = example_of(about, group)
        _open_case(suites, example, names.name(example)).add_unprobed(group, example)
    for skipped in report.info.skipped:
        ends = [end for end in (skipped.source, skipped.destination) if end]
        case = _open_case(suites, skipped, " -> ".join(ends) or "not tested on purpose")
        case.failed.setdefault("skipped", 0)
        case.why = "; ".join(filter(None, (case.why, skipped.reason)))
    return suites


def _open_case(suites: dict[str, Suite], of: Result | Skipped, name: str) -> _Case:
    """Give the case of this name, a new one where there is none."""
    key = (f"{of.matrix}.{of.requirement}", name)
    return suites.setdefault(of.matrix, {}).setdefault(key, _Case(name))


class _CaseNames:
    """Names cases by roles: ``worker -> master-0 tcp 6443``."""

    def __init__(self, report: Report) -> None:
        self._index = RunIndex(report.info)
        self._sizes = Counter(role for host in report.info.hosts for role in host.roles)

    def name(self, result: Result) -> str:
        """Give the name of the case that a result belongs to."""
        requirement = self._index.requirement(result)
        if requirement is None:
            # An older file tells neither roles nor which ports the requirement has.
            return clean(f"all sources -> {result.destination} {result.protocol}")
        source = self._index.source_role(result)
        destination = self._index.destination_role(result)
        if self._sizes[destination] <= FEW_HOSTS:
            destination = result.destination
        return clean(
            f"{source} -> {destination} {wire_text([(result.protocol, requirement.ports)])}"
        )


def _find_titles(report: Report) -> Titles:
    return {
        place(member): f"{finding.verdict.upper()}: {finding.title}"
        for finding in report.findings
        for member in finding.members
    }


def _list_properties(report: Report, suite: str) -> dict[str, str]:
    settings = next((one.settings for one in report.info.matrices if one.name == suite), {})
    return {
        "netprobe": netprobe.__version__,
        "started_at": report.info.started_at,
        **{f"setting {name}": word_value(value) for name, value in settings.items()},
        **scope(report),
    }


def _tell_case(class_name: str, case: _Case, titles: Titles) -> JunitCase:
    told = JunitCase(class_name, case.name, case.fate)
    if case.fate is not None:
        kept = [result for one, result in case.kept if one == case.fate]
        named = list(dict.fromkeys(titles[at] for at in map(place, kept) if at in titles))
        lines = _case_lines(case, case.fate, kept, named)
        kind = ", ".join(dict.fromkeys(result.verdict for result in kept)) or case.fate
        message = _word_message(case, named)
        told = told._replace(type=kind, message=message, lines=lines)
    return told._replace(note="; ".join(_list_notes(case)))


def _list_notes(case: _Case) -> Iterator[str]:
    if case.covered:
        probed = f"{number(case.flows - case.covered)} of {plural(case.flows, 'flow')}"
        yield f"{probed} were probed; the rest is covered"
    yield from case.shared


def _word_message(case: _Case, titles: list[str]) -> str:
    fate = case.fate
    excuses = [excuse_text(result) for kind, result in case.kept if kind == fate]
    if excuses and excuses[0]:
        others = len(set(excuses)) - 1
        return f"{excuses[0]}, and {others} more" if others else excuses[0]
    if titles:
        return titles[0] if len(titles) == 1 else f"{titles[0]}, and {len(titles) - 1} more"
    if case.why or fate is None:
        return case.why
    return next((result.because for one, result in case.kept if one == fate), "")


def _case_lines(
    case: _Case, fate: CaseFate, kept: list[Result], titles: list[str]
) -> Iterator[str]:
    """Give the text of a case: findings, then flows with their evidence."""
    if case.why:
        yield case.why
    if not kept:
        return
    yield f"{number(case.failed[fate])} of {plural(case.flows, 'flow')}"
    yield from titles[:MOST_TITLES]
    for result in kept:
        excuse = excuse_text(result)
        why = f" [{excuse}]" if excuse else ""
        wire = wire_text([(result.protocol, result.ports)])
        ends = f"{result.source} -> {result.destination} ({result.address})"
        yield f"{result.verdict}: {ends} {wire}: {result.because}{why}"
    shown = sum(result.port_count for result in kept)
    if shown < case.failed[fate]:
        yield f"and {plural(case.failed[fate] - shown, 'more flow')}"
