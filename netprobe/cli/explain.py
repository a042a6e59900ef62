"""The verb ``explain``: one flow, every step with its evidence, and the verdict of a run."""

from __future__ import annotations

import sys
from datetime import date
from functools import partial

from netprobe.cli.asked import ExplainOptions
from netprobe.cli.launch import make_launcher, settings_of
from netprobe.cli.options import PAGE_FORMATS
from netprobe.cli.outputs import read_outputs
from netprobe.explain.explain import explain, summary_of
from netprobe.explain.request import FlowRequest, parse_wire, plan_flow
from netprobe.judge.verdict import Rules
from netprobe.model.exit import exit_status
from netprobe.model.explanation import Explanation
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.explain import write_explain_json, write_explain_text
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
    plan = plan_flow(request, date.today())
    launcher = make_launcher(options)
    with progress(sys.stderr) as events:

        async def explain_flow() -> Explanation:
            settings, rules = settings_of(options), Rules(options.strict, options.live)
            return await explain(request, plan, settings, rules, launcher, events.host)

        explanation = run_to_end(explain_flow())
    writers = {
        "text": partial(write_explain_text, explanation),
        "json": partial(write_explain_json, explanation),
    }
    write_or_raise(outputs, writers)
    return exit_status(summary_of(explanation), interrupted=False)
