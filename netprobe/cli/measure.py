"""The verb ``measure idle``."""

from __future__ import annotations

import sys
from typing import Final

from netprobe.cli.asked import IdleOptions
from netprobe.cli.given import read_outputs, read_seconds
from netprobe.cli.launch import make_launcher
from netprobe.cli.options import PAGE_FORMATS
from netprobe.cli.plan import make_plan, tell_note
from netprobe.errors import INTERRUPTED, RequestError
from netprobe.idle.pairs import ZonePair, find_pairs
from netprobe.idle.run import measure_idle
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.idle import IdleReport
from netprobe.model.plan import BALANCER
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.page.wording import duration, plural
from netprobe.report.verbs.idle import IDLE_WRITERS

# Agents start, connections open; the last silence ends, and a new connection is tried.
AROUND_S: Final = 30


def idle_verb(options: IdleOptions) -> int:
    """Measure and report; 1 where a keepalive is longer than the memory, 3 where it is not known
    of a pair."""
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    up_to_s = int(read_seconds("--up-to", options.up_to))
    plan = make_plan(options, options.zone_groups, probing=True, rehearse=(BALANCER,))
    pairs = find_pairs(plan)
    if not pairs:
        words = "no row of this plan requires TCP, or UDP with answers, between two hosts"
        raise RequestError(f"{words}: nothing to measure")
    launcher = make_launcher(options)
    for note in plan.notes:
        if not note.startswith("--rehearse="):  # of the balancers' rehearsal, which is not played
            tell_note(note)
    tell_note(_word_start(pairs, up_to_s))
    with progress(sys.stderr, quiet=True) as events:
        report = measure_idle(pairs, up_to_s, launcher, events)
    write_or_raise(outputs, IDLE_WRITERS, report)
    return status_of_report(report)


def _word_start(pairs: tuple[ZonePair, ...], up_to_s: int) -> str:
    return (
        f"{plural(len(pairs), 'pair')} of zones, at most {duration(up_to_s + AROUND_S)}; Ctrl-C "
        "ends it, and what is known by then is told"
    )


def status_of_report(report: IdleReport) -> int:
    """Give the exit status: a fault first, then what is not known of some pair."""
    if report.stopped:
        return INTERRUPTED
    if any(pair.is_too_short for pair in report.pairs):
        return BLOCKED
    if any(pair.is_unknown for pair in report.pairs):
        return UNKNOWN
    return PASS if any(pair.alive_s is not None for pair in report.pairs) else UNKNOWN
