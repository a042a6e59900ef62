"""The verbs about earlier runs, ``report`` and ``diff``; and the end of every run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from netprobe.cli.options import RUN_FORMATS
from netprobe.cli.streams import tell
from netprobe.errors import FAILED
from netprobe.judge.findings import fold
from netprobe.model.exit import exit_status
from netprobe.model.result import Finding
from netprobe.model.run import RunInfo
from netprobe.report import REPORTS
from netprobe.report.changes import Changes, compare, fates_of
from netprobe.report.collector import Collector, Report
from netprobe.report.diff import write_diff
from netprobe.report.evidence import EvidenceFolder
from netprobe.report.headline import totals
from netprobe.report.outputs import OutputTarget, parse_outputs, write_outputs
from netprobe.report.reading import read_run


def report_verb(file: str, outputs: Sequence[str], redact: bool = False) -> int:
    """Print an earlier run again; the exit status is that of the run."""
    wanted = parse_outputs(outputs, RUN_FORMATS)
    info, collector = read_run(file)
    return finish(info, collector, wanted, [], redact=redact)


def finish(
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
        from netprobe.report.redact import redact_run

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
    status = exit_status(report.summary, info.interrupted, info.planned_flows, info.complete)
    return FAILED if unwritten else status


def fold_failures(info: RunInfo, collector: Collector) -> tuple[Finding, ...]:
    """Give the findings of a run, as its report numbers them."""
    zones = {host.name: host.zone for host in info.hosts if host.zone is not None}
    return fold(collector.failures(), collector.passes(), zones)


def diff_verb(old: str, new: str) -> int:
    """Print what changed; 1 where something is newly blocked or exposed."""
    old_info, old_results = read_run(old)
    new_info, new_results = read_run(new)
    changes = compare(fates_of(old_results.results()), new_results.results())
    write_diff(changes, (old_info, new_info), sys.stdout)
    return 1 if changes.worse else 0
