"""The verbs that look and keep no record: ``explain``, ``check --hosts`` and ``audit ports``."""

from __future__ import annotations

import sys
from datetime import date

from netprobe import pipeline
from netprobe.audit.run import AuditJob, audit_ports
from netprobe.cli.asked import AuditOptions, CheckOptions, ExplainOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.launch import make_launcher, settings_of
from netprobe.cli.options import AUDIT_FORMATS, PAGE_FORMATS, require_matrix
from netprobe.cli.plan import make_plan, tell_note, tell_notes
from netprobe.explain.explain import explain, summary_of
from netprobe.explain.request import FlowRequest, parse_wire, plan_flow
from netprobe.judge.verdict import Rules
from netprobe.load.pods import read_pods
from netprobe.load.request import load_request
from netprobe.model.audit import PortAudit
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN, exit_status
from netprobe.model.explanation import Explanation
from netprobe.model.result import HostReport
from netprobe.plan.quality import note_quality, read_samples, with_quality
from netprobe.plan.rehearsals import note_cost, read_rehearsals, word_change
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.audit import AUDIT_WRITERS
from netprobe.report.verbs.explain import EXPLAIN_WRITERS
from netprobe.report.verbs.hosts import HOSTS_WRITERS
from netprobe.signals import run_to_end


def explain_verb(options: ExplainOptions) -> int:
    """Probe one flow and print its page; the exit status is that of a run of this flow."""
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    request = FlowRequest(
        options.source,
        options.destination,
        parse_wire(options.wire),
        options.inventories,
        options.matrices,
        options.sets,
        options.roles,
    )
    rehearse = read_rehearsals(options.rehearse)
    plan = plan_flow(request, date.today(), rehearse)
    plan = with_quality(plan, read_samples(options.quality))
    if any(block.rehearsal in rehearse for block in plan.blocks):
        tell_note(word_change(rehearse))
    for note in note_quality(note_cost(plan)).notes[len(plan.notes) :]:
        tell_note(note)
    launcher = make_launcher(options)
    with progress(sys.stderr) as events:

        async def explain_flow() -> Explanation:
            settings, rules = settings_of(options), Rules(options.strict, options.live)
            return await explain(request, plan, settings, rules, launcher, events.host)

        explanation = run_to_end(explain_flow())
    write_or_raise(outputs, EXPLAIN_WRITERS, explanation)
    return exit_status(summary_of(explanation), interrupted=False)


def check_hosts_verb(options: CheckOptions) -> int:
    """Start and stop every agent, and give the exit status.

    1 where a required port is taken, 3 where an agent cannot be started, or not with the sudo asked
    for, or where another run of netprobe is in the way, or a holder that nobody has asked.
    """
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    plan = make_plan(options, rehearse=read_rehearsals(options.rehearse))
    tell_notes(plan)
    launcher = make_launcher(options)
    with progress(sys.stderr) as events:
        hosts = pipeline.check_hosts(plan, launcher, events)
    write_or_raise(outputs, HOSTS_WRITERS, hosts)
    if any(host.facts.taken for host in hosts):
        return BLOCKED
    return UNKNOWN if any(map(_falls_short, hosts)) else PASS


def _falls_short(host: HostReport) -> bool:
    facts = host.facts
    doubts = (facts.sudo_failed, facts.other_run, facts.unasked)
    return host.state in ("failed", "lost") or any(doubts)


def audit_ports_verb(options: AuditOptions) -> int:
    """Compare and report; 0 where every listening port is registered, 1 where one is not."""
    outputs = read_outputs(options.outputs, AUDIT_FORMATS, options)
    require_matrix(options.matrices)
    chosen, inventory, notes = load_request(
        options.matrices, options.inventories, options.sets, options.roles, probing=True
    )
    pods = None if options.pods is None else read_pods(options.pods)
    with progress(sys.stderr) as events:
        job = AuditJob(chosen, inventory, pods, notes)
        audit = audit_ports(job, make_launcher(options), events)
    write_or_raise(outputs, AUDIT_WRITERS, audit)
    return _exit_status(audit)


def _exit_status(audit: PortAudit) -> int:
    if audit.of_weight("violation"):
        return BLOCKED
    states = {host.state for host in audit.hosts}
    sure = "looked-at" in states and "failed" not in states and not audit.of_weight("unseen")
    return PASS if sure else UNKNOWN
