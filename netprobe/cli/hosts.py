"""The verb ``check --hosts``."""

from __future__ import annotations

import sys
from functools import partial

from netprobe import pipeline
from netprobe.cli.asked import (
    CheckOptions,
)
from netprobe.cli.launch import make_launcher
from netprobe.cli.options import PAGE_FORMATS
from netprobe.cli.outputs import read_outputs
from netprobe.cli.plan import make_plan, tell_notes
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.result import HostReport
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.hosts import write_hosts_json, write_hosts_text


def check_hosts_verb(options: CheckOptions) -> int:
    """Start and stop every agent, and give the exit status.

    1 where a required port is taken, 3 where an agent cannot be started, or not with the sudo asked
    for, or where another run of netprobe is in the way, or a holder that nobody has asked.
    """
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    plan = make_plan(options)
    tell_notes(plan)
    launcher = make_launcher(options)
    with progress(sys.stderr) as events:
        hosts = pipeline.check_hosts(plan, launcher, events)
    writers = {"text": partial(write_hosts_text, hosts), "json": partial(write_hosts_json, hosts)}
    write_or_raise(outputs, writers)
    if any(host.facts.taken for host in hosts):
        return BLOCKED
    return UNKNOWN if any(map(_falls_short, hosts)) else PASS


def _falls_short(host: HostReport) -> bool:
    facts = host.facts
    doubts = (facts.sudo_failed, facts.other_run, facts.unasked)
    return host.state in ("failed", "lost") or any(doubts)
