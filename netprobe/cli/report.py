"""The verbs about earlier runs, ``report``, ``diff`` and ``accept``; and the end of every run."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from netprobe.cli.asked import AcceptOptions, DiffOptions, ReportOptions, TellingOptions
from netprobe.cli.given import read_days, read_last_day, read_outputs
from netprobe.cli.option_groups import AcceptedOptions
from netprobe.cli.options import DIFF_FORMATS, RUN_FORMATS
from netprobe.cli.streams import tell
from netprobe.errors import FAILED, RequestError
from netprobe.judge.accepted import Acceptances
from netprobe.judge.findings import fold
from netprobe.model.accepted import NEVER
from netprobe.model.codec import keep_findings
from netprobe.model.exit import BLOCKED, PASS, exit_status
from netprobe.model.firewall import FirewallRule
from netprobe.model.plan import Plan
from netprobe.model.printable import clean
from netprobe.model.result import Finding, Result
from netprobe.model.run import RunInfo
from netprobe.report.outputs import OutputTarget, write_or_raise, write_outputs
from netprobe.report.page.wording import excuse_text, number, plural
from netprobe.report.record.changes import Changes, compare, fates_of, list_checked
from netprobe.report.record.collector import Collector, Report, collect
from netprobe.report.record.earlier import Baseline
from netprobe.report.record.record import read_earlier, read_run
from netprobe.report.run import REPORTS
from netprobe.report.run.headline import totals
from netprobe.report.verbs.diff import DIFF_WRITERS, RunDiff, word_nothing_shared
from netprobe.request.accepting import Consent, accept, addresses_of_run, write_accepted
from netprobe.session import Mark

# So many results become rules in about a second; of more a summary counts none.
MOST_RULED = 5_000


def report_verb(options: ReportOptions) -> int:
    """Print an earlier run again; the exit status is that of the run, as it is accepted now."""
    wanted = read_outputs(options.outputs, RUN_FORMATS, options)
    accepted = read_acceptances(options)
    info, collector = _read_marked(options.file, accepted)
    with closing(collector):
        if accepted is not None:
            info = replace(info, accepted=accepted.check(collector.results(), info))
        return finish(info, collector, wanted, [], redact=options.redact, title=options.title)


def read_acceptances(options: AcceptedOptions) -> Acceptances | None:
    """Read what ``--accepted`` names, as it holds today. Raises FileErrors."""
    max_days = read_days(options.max_acceptance)
    if not options.accepted:
        return None
    # pydantic is slow to import, and most runs accept nothing.
    from netprobe.load.accepted import load_accepted

    return Acceptances(load_accepted(options.accepted, max_days), date.today())


def _read_marked(path: str, accepted: Acceptances | None) -> tuple[RunInfo, Collector]:
    if accepted is None:
        return read_run(path)
    earlier = read_earlier(path)
    results: Iterator[Result] = (
        part for one in earlier.read_results() for part in accepted.mark(one)
    )
    return earlier.info, collect(results, earlier.ranges)


def finish(  # noqa: PLR0913  # the end of a run has as many sides
    info: RunInfo,
    collector: Collector,
    outputs: Sequence[OutputTarget],
    problems: Sequence[str],
    changes: Changes | None = None,
    findings: tuple[Finding, ...] | None = None,
    *,
    redact: bool = False,
    title: str = "",
) -> int:
    """Write every output, say what could not be written, and give the exit status.

    ``findings`` None: they are folded here. ``redact``: with numbers for names. ``title``: of the
    page. The collector is closed.
    """
    found = fold_failures(info, collector) if findings is None else findings
    rules = _make_rules(info, found)
    if redact:
        from netprobe.report.record.redact import redact_run

        numbered = replace(info, findings=keep_findings(found))
        info, collector, changes = redact_run(numbered, collector, changes)
        found = fold_failures(info, collector)
    unwritten = [*problems]
    with closing(collector):
        report = Report(info, collector, found, changes, rules, clean(title))
        writers = {name: partial(write, report) for name, write in REPORTS.items()}
        unwritten += write_outputs(outputs, writers)
    for problem in unwritten:
        tell(f"netprobe: {problem}")
    if all(output.path for output in outputs):
        # No report went to the terminal: print the totals there.
        tell(f"netprobe: {totals(report).text}")
    strict = info.coverage is not None and info.coverage.strict
    ends = (info.interrupted, info.planned_flows, info.complete)
    status = exit_status(report.summary, *ends, strict=strict)
    return FAILED if unwritten else status


def _make_rules(info: RunInfo, findings: Sequence[Finding]) -> tuple[FirewallRule, ...] | None:
    """Make the rules that `netprobe request` would; None where there are too many flows to try."""
    # What groups flows into rules is needed only where something fails.
    from netprobe.request.build import request_of_run
    from netprobe.request.rules import RequestWishes

    if sum(len(one.members) for one in findings) > MOST_RULED:
        return None
    try:
        return request_of_run(info, findings, (), "", RequestWishes()).rules
    except RequestError:
        return None


def fold_failures(info: RunInfo, collector: Collector) -> tuple[Finding, ...]:
    """Give the findings of a run, with the numbers of its file where that keeps them."""
    zones = {host.name: host.zone for host in info.hosts if host.zone is not None}
    kept = info.findings or ()
    failures, passes = collector.failures(), collector.passes()
    return fold(failures, passes, zones, kept, some_ports=info.some_ports)


def diff_verb(options: DiffOptions) -> int:
    """Print what changed; 1 where something that both runs probed is newly blocked or exposed.

    A line on stderr says so where the two share no flow.
    """
    wanted = read_outputs(options.outputs, DIFF_FORMATS, options)
    old, new = options.old, options.new
    old_info, old_results = read_run(old)
    new_info, new_results = read_run(new)
    with closing(old_results), closing(new_results):
        fates = fates_of(old_results.results())
        checked = (list_checked(old_info), list_checked(new_info))
        changes = compare(fates, new_results.results(), checked)
        diff = RunDiff((old, new), (old_info, new_info), changes)
        write_or_raise(wanted, DIFF_WRITERS, diff)
    if not changes.compared:
        tell(f"netprobe: {word_nothing_shared(diff)}")
    return BLOCKED if changes.worse or changes.decided else PASS


class Marks(Struct, frozen=True):
    """What is said of judged results: that they are accepted, or known of a baseline."""

    accepted: Acceptances | None
    baseline: Baseline | None

    @property
    def functions(self) -> tuple[Mark, ...]:
        """What marks results, in this order."""
        return tuple(one.mark for one in (self.accepted, self.baseline) if one is not None)


def read_marks(options: TellingOptions, plan: Plan) -> Marks:
    """Read what is accepted, and the baseline. Raises RequestError."""
    return Marks(read_acceptances(options), _read_baseline(options, plan))


def _read_baseline(options: TellingOptions, plan: Plan) -> Baseline | None:
    """Read the run that ``--baseline`` names. Raises RequestError, also for other matrices."""
    only_new = options.fail_on == "new"
    if not options.baseline:
        if only_new:
            raise RequestError("--fail-on new: new since when? Give --baseline RUN")
        return None
    earlier = read_earlier(options.baseline)
    baseline = Baseline(earlier.path, earlier.info, fates_of(earlier.read_results()), only_new)
    baseline.refuse_other_matrices(plan)
    return baseline


def accept_verb(options: AcceptOptions) -> int:
    """Write the entries to standard output, and say on standard error what they accept."""
    consent = _read_consent(options, date.today())
    info, collector = read_run(options.run_file)
    with closing(collector):
        findings = {one.number: one for one in fold_failures(info, collector)}
        if info.findings is None and findings and not options.renumbered:
            raise RequestError(_word_new_numbers(options.run_file, findings.values()))
        chosen = [_choose_finding(findings, given) for given in dict.fromkeys(options.findings)]
        members = {one.number: _choose_members(one) for one in chosen}
        known = addresses_of_run(collector.results())
    parts = [
        (
            f"finding {one.number} of {options.run_file}: {one.title}",
            accept(members[one.number], known, consent),
        )
        for one in chosen
    ]
    is_new = not options.append and not _stdout_has_entries()
    writers = {"yaml": partial(write_accepted, is_new=is_new)}
    write_or_raise([OutputTarget("yaml")], writers, parts)
    entries = sum(len(some) for _, some in parts)
    flows = sum(one.port_count for some in members.values() for one in some)
    until = "without an end" if consent.until == NEVER else f"until {consent.until}"
    words = f"{plural(flows, 'flow')} accepted {until}"
    tell(f"netprobe: {words} ({number(entries)} {'entry' if entries == 1 else 'entries'})")
    return PASS


def _read_consent(options: AcceptOptions, today: date) -> Consent:
    texts = {"reason": options.reason, "owner": options.owner, "ticket": options.ticket}
    texts = {name: text.strip() for name, text in texts.items()}
    for name, text in texts.items():
        if not text:
            raise RequestError(f"--{name}: the text is empty, expected some words")
    until = _read_until(options.until, today, read_days(options.max_acceptance))
    return Consent(**texts, since=today.isoformat(), until=until, same_place=options.same_place)


def _read_until(text: str, today: date, max_days: int) -> str:
    until = read_last_day(text, NEVER)
    if until is None:
        return NEVER
    days = (until - today).days
    if days > max_days:
        raise RequestError(
            f"--until {text}: that is in {days:,} days, expected {max_days:,} at most "
            f"(--max-acceptance), or {NEVER}"
        )
    return until.isoformat()


def _word_new_numbers(path: str, findings: Iterable[Finding]) -> str:
    """Say that numbers of an earlier report may mean others now, and list them as they are."""
    listed = "".join(f"\n  {one.number}. {clean(one.title)}" for one in findings)
    return (
        f"{path} keeps no numbers of findings (an earlier netprobe wrote it, or its run did not "
        "come to its end), and a report of it may have had others. They are now as follows; give "
        f"--renumbered to accept by these numbers:{listed}"
    )


def _choose_finding(findings: Mapping[int, Finding], given: int) -> Finding:
    if not findings:
        raise RequestError(f"--finding {given}: this run has no finding")
    if given not in findings:
        known = "only finding 1" if len(findings) == 1 else f"findings 1 to {len(findings)}"
        raise RequestError(f"--finding {given}: this run has {known}")
    return findings[given]


def _choose_members(finding: Finding) -> Sequence[Result]:
    """Give the flows to accept. Raises RequestError for what decides nothing or nobody saw."""
    members = finding.members
    if not any(one.decides for one in members):
        why = excuse_text(members[0])
        raise RequestError(
            f"--finding {finding.number}: it does not decide the exit status anyway ({why})"
        )
    if finding.verdict == "not-tested":
        raise RequestError(
            f"--finding {finding.number}: it is not-tested, and nobody knows what would be "
            "accepted; let netprobe look first"
        )
    return members


def _stdout_has_entries() -> bool:
    """Tell whether standard output is a file with something in it: ``>> accepted.yaml``."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
