"""The verbs about earlier runs, ``report`` and ``diff``; and the end of every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from functools import partial

from netprobe.cli.asked import AcceptedOptions, DiffOptions, ReportOptions
from netprobe.cli.options import DIFF_FORMATS, RUN_FORMATS
from netprobe.cli.outputs import read_outputs
from netprobe.cli.result_options import read_days
from netprobe.cli.streams import tell
from netprobe.errors import FAILED
from netprobe.judge.accepted import Acceptances
from netprobe.judge.findings import fold
from netprobe.model.exit import BLOCKED, PASS, exit_status
from netprobe.model.result import Finding, Result
from netprobe.model.run import RunInfo
from netprobe.report.outputs import OutputTarget, write_or_raise, write_outputs
from netprobe.report.record.changes import Changes, compare, fates_of
from netprobe.report.record.collector import Collector, Report, collect
from netprobe.report.record.evidence import EvidenceFolder
from netprobe.report.record.reading import read_earlier, read_run
from netprobe.report.run import REPORTS
from netprobe.report.run.headline import totals
from netprobe.report.verbs.diff import DIFF_WRITERS, RunDiff


def report_verb(options: ReportOptions) -> int:
    """Print an earlier run again; the exit status is that of the run, as it is accepted now."""
    wanted = read_outputs(options.outputs, RUN_FORMATS, options)
    accepted = read_acceptances(options)
    info, collector = _read_marked(options.file, accepted)
    with closing(collector):
        if accepted is not None:
            info = replace(info, accepted=accepted.check(collector.results(), info))
        return finish(info, collector, wanted, [], redact=options.redact)


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
    evidence: EvidenceFolder | None = None,
    *,
    redact: bool = False,
) -> int:
    """Write every output, say what could not be written, and give the exit status.

    ``redact``: with numbers for names. The collector is closed.
    """
    if redact:
        from netprobe.report.record.redact import redact_run

        info, collector, changes = redact_run(info, collector, changes)
    unwritten = [*problems]
    with closing(collector):
        findings = fold_failures(info, collector)
        if evidence is not None:
            findings = evidence.write_files(findings)
            unwritten += evidence.problems
        report = Report(info, collector, findings, changes)
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


def fold_failures(info: RunInfo, collector: Collector) -> tuple[Finding, ...]:
    """Give the findings of a run, as its report numbers them."""
    zones = {host.name: host.zone for host in info.hosts if host.zone is not None}
    return fold(collector.failures(), collector.passes(), zones)


def diff_verb(options: DiffOptions) -> int:
    """Print what changed; 1 where something that both runs probed is newly blocked or exposed."""
    wanted = read_outputs(options.outputs, DIFF_FORMATS, options)
    old, new = options.old, options.new
    old_info, old_results = read_run(old)
    new_info, new_results = read_run(new)
    with closing(old_results), closing(new_results):
        changes = compare(fates_of(old_results.results()), new_results.results())
        diff = RunDiff((old, new), (old_info, new_info), changes)
        write_or_raise(wanted, {name: partial(write, diff) for name, write in DIFF_WRITERS.items()})
    return BLOCKED if changes.worse else PASS
