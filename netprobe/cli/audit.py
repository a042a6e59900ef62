"""The verb ``audit ports``."""

from __future__ import annotations

import sys
from functools import partial

from netprobe.audit.run import AuditJob, audit_ports
from netprobe.cli.asked import AuditOptions
from netprobe.cli.launch import make_launcher
from netprobe.cli.options import AUDIT_FORMATS, require_matrix
from netprobe.cli.outputs import read_outputs
from netprobe.load.pods import read_pods
from netprobe.load.request import load_request
from netprobe.model.audit import PortAudit
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.audit import write_audit_json, write_audit_text
from netprobe.report.verbs.audit_junit import write_audit_junit


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
    writers = {
        "text": partial(write_audit_text, audit),
        "json": partial(write_audit_json, audit),
        "junit": partial(write_audit_junit, audit),
    }
    write_or_raise(outputs, writers)
    return _exit_status(audit)


def _exit_status(audit: PortAudit) -> int:
    if audit.of_weight("violation"):
        return BLOCKED
    states = {host.state for host in audit.hosts}
    sure = "looked-at" in states and "failed" not in states and not audit.of_weight("unseen")
    return PASS if sure else UNKNOWN
