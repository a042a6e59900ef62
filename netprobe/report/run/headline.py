"""The first and the last lines of the report for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import netprobe
from netprobe.model.accepted import NEVER
from netprobe.model.exit import tested
from netprobe.model.plan import PlannedMatrix
from netprobe.model.result import Summary
from netprobe.report.page.page import Line
from netprobe.report.page.wording import duration, is_failure, number, plural
from netprobe.report.record.collector import Report, count_missing
from netprobe.report.run.coverage_text import coverage_line


class Headline(NamedTuple):
    """The first lines: the worst that was seen, and what stands before it and behind it."""

    before: tuple[Line, ...]
    verdict: Line
    behind: tuple[Line, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines in their order."""
        return (*self.before, self.verdict, *self.behind)

    @property
    def beside(self) -> tuple[Line, ...]:
        """The lines beside the verdict, where that is a heading."""
        return self.before + self.behind


def headline(report: Report) -> Headline:
    """Give what is of an earlier run, a partial run, its part; the worst; and what is new."""
    summary, info = report.summary, report.info
    seen = tested(summary) > 0
    before = [info.earlier] if info.earlier else []
    if seen and not info.complete:
        before.append(_word_partial_run(report, summary))
    if seen:
        before.extend(scope(report).values())
    behind = (Line(info.baseline),) if seen and info.baseline else ()
    return Headline(tuple(Line(text, "doubt") for text in before), _word_verdict(report), behind)


def _word_verdict(report: Report) -> Line:
    """Word the worst that was seen, or that there was nothing to see."""
    summary = report.summary
    if not tested(summary):
        return Line(_nothing_tested(report, summary), "doubt")
    causes = sum(is_failure(finding) for finding in report.deciding_findings)
    worst = _word_worst_verdict(summary, causes, count_missing(report))
    return Line(f"{worst.text}{_word_excused(report, worst.style == 'good')}", worst.style)


def scope(report: Report) -> dict[str, str]:
    """Give the tested part of the matrix, where it is not the whole, and whose results these are,
    where that is not certain: lines by their name (``selection``, ``trust``)."""
    info = report.info
    coverage = coverage_line(info.coverage) if info.coverage else ""
    if info.coverage and not info.complete:
        coverage = "the run did not come to its end; nothing is said of what was not probed"
    words = {
        "selection": info.selection, "coverage": coverage, "sample": info.sample,
        "trust": info.trust,
    }  # fmt: skip
    return {name: f"{name.upper()}: {text}" for name, text in words.items() if text}


def _nothing_tested(report: Report, summary: Summary) -> str:
    planned = max(report.info.planned_flows, sum(summary.counts.values()))
    if not planned and report.info.selection:
        return f"NOTHING WAS TESTED: the filters left no flow to probe ({report.info.selection})"
    if not planned:
        why = f" ({plural(summary.skipped, 'requirement')} skipped)" if summary.skipped else ""
        return f"NOTHING WAS TESTED: there was no flow to probe{why}"
    if not report.info.complete and not report.info.interrupted:
        # A crash, or a run that still goes on: its end is unknown.
        results = plural(planned, "flow")
        return f"NOTHING WAS TESTED: the record ends before any of {results} had a result"
    if not report.info.complete:
        return f"NOTHING WAS TESTED: stopped before any of {plural(planned, 'flow')} was probed"
    return f"NOTHING WAS TESTED: none of {plural(planned, 'flow')} could be probed"


def _word_partial_run(report: Report, summary: Summary) -> str:
    planned = max(report.info.planned_flows, sum(summary.counts.values()))
    why = "it was interrupted" if report.info.interrupted else "it did not come to its end"
    return f"PARTIAL RUN: {why}; {number(tested(summary))} of {plural(planned, 'flow')} were probed"


def _word_worst_verdict(summary: Summary, causes: int, missing: int) -> Line:
    deciding = summary.deciding
    failed = [
        f"{number(deciding[verdict])} {verdict}"
        for verdict in ("blocked", "exposed")
        if deciding.get(verdict)
    ]
    required = sum(deciding.values())
    total = plural(required, "required flow")
    if failed:
        word = "BLOCKED" if deciding.get("blocked") else "EXPOSED"
        cause = f", {plural(causes, 'finding')}" if causes else ""
        covered = deciding.get("covered", 0)
        rest = f" ({number(covered)} of them covered, not probed)" if covered else ""
        return Line(f"{word}: {' and '.join(failed)} of {total}{rest}{cause}", "bad")
    other = bool(summary.accepted or summary.known)
    unknown = deciding.get("inconclusive", 0) + deciding.get("not-tested", 0) + missing
    if unknown:
        total = plural(required + missing, "required flow")
        nothing = "nothing else" if other else "nothing"
        text = (
            f"UNKNOWN: {nothing} is blocked, but {number(unknown)} of {total} could not be judged"
        )
        return Line(text, "doubt")
    refused = f"; {number(summary.refusals)} on a refusal alone" if summary.refusals else ""
    covered = deciding.get("covered", 0)
    if covered:
        all_pass = _word_all_pass(required - covered, other, probed=True)
        text = f"COVERED: {all_pass}{refused}; {number(covered)} more were not probed"
        return Line(text, "good")
    return Line(f"PASS: {_word_all_pass(required, other)}{refused}", "good")


def _word_all_pass(required: int, other: bool, *, probed: bool = False) -> str:
    """Word how many flows are fine; ``other``: they are not all that are required.

    ``probed``: there are further ones that were not.
    """
    if other and not required:
        return "nothing else is required"
    words = f"{'other ' if other else ''}required {'and probed ' if probed else ''}flow"
    if required == 1:
        return f"the {words} is as it should be"
    return f"all {number(required)} {words}s are as they should be"


def _word_excused(report: Report, passes: bool) -> str:
    """Word what did not pass and does not decide; optional and waived flows only of a pass."""
    summary = report.summary
    words = ""
    if summary.accepted:
        words += f"; {number(summary.accepted)} accepted{_word_first_end(report)} did not pass"
    if summary.known:
        words += f"; {number(summary.known)} known from the baseline did not pass"
    excused = summary.waived + summary.optional
    if excused and passes:
        words += f"; {number(excused)} optional or waived did not pass"
    if summary.spared and passes:
        words += f"; {number(summary.spared)} did not pass beside one that is enough"
    return words


def _word_first_end(report: Report) -> str:
    """Word until when what is accepted is; the first end where there are several."""
    ends = {one.until for one in report.info.accepted if one.flows and one.is_in_force}
    dates = sorted(ends - {NEVER})
    if not dates:
        return " without an end" if ends else ""
    return f" until {dates[0]}" if len(ends) == 1 else f" (the first until {dates[0]})"


def origin(report: Report) -> Iterator[Line]:
    """Version, time, matrices and settings, for people who get the report from others."""
    info = report.info
    yield Line(f"netprobe {netprobe.__version__}, {info.started_at}", "quiet")
    for matrix in info.matrices:
        yield Line(f"{matrix.name}{_word_settings(matrix.settings)}", "quiet")


def _word_settings(settings: Mapping[str, object]) -> str:
    texts = [f"{name}={word_value(value)}" for name, value in settings.items() if value != ""]
    return f" ({', '.join(texts)})" if texts else ""


def word_value(value: object) -> str:
    """Word the value of a setting: ``true``, ``sds+cloud``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "+".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _word_no_name(matrices: Sequence[PlannedMatrix]) -> str:
    """Say that no name was checked, and what would name one."""
    settings = list(dict.fromkeys(name for one in matrices for name in one.names))
    if not settings:
        return "no name was looked up"
    more = len(settings) - 1
    others = f", or {plural(more, 'more setting')}" if more else ""
    return f"no name was looked up (--set {settings[0]}=NAME{others})"


def totals(report: Report) -> Line:
    """Give the last line: all counts, and always how many passes rest on a refusal."""
    summary = report.summary
    counts = summary.counts
    parts = [
        f"{number(counts['pass'])} pass ({number(summary.refusals)} on a refusal)",
        *(
            f"{number(counts[verdict])} {verdict.replace('-', ' ')}"
            for verdict in ("blocked", "exposed", "inconclusive", "not-tested")
        ),
        *([f"{number(counts['covered'])} covered"] if counts.get("covered") else []),
    ]
    total = plural(sum(counts.values()), "flow")
    missing = count_missing(report)
    after = [f"{number(missing)} more without a result"] if missing else []
    after += [
        f"{number(flows)} {word}"
        for flows, word in ((summary.accepted, "accepted"), (summary.known, "known"))
        if flows
    ]
    after += [_word_no_name(report.info.matrices)] if report.info.names_set == 0 else []
    after += [f"{number(summary.skipped)} skipped", duration(report.info.elapsed_s)]
    return Line(f"{total}: {'; '.join([', '.join(parts), *after])}", "strong")
