"""The verb ``explain``: one flow, every step with its evidence, and the verdict of a run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import date
from functools import partial

from netprobe.cli.options import EXPLAIN_FORMATS, VerbOptions
from netprobe.cli.run import password_of, raise_problems
from netprobe.explain.explain import explain, summary_of
from netprobe.explain.request import FlowRequest, parse_wire, plan_flow
from netprobe.judge.verdict import Rules
from netprobe.model.exit import exit_status
from netprobe.model.explanation import Explanation
from netprobe.model.plan import Plan
from netprobe.model.result import HostReport
from netprobe.pipeline import Probing, until_signal
from netprobe.report.explain_report import write_explain_json, write_explain_text
from netprobe.report.outputs import parse_outputs, write_outputs
from netprobe.report.progress import progress
from netprobe.vantage.launch import Launcher


def explain_verb(options: VerbOptions) -> int:
    """Probe one flow and print its page; the exit status is that of a run of this flow."""
    outputs = parse_outputs(options["outputs"], EXPLAIN_FORMATS, "text")
    request = FlowRequest(
        options["source"],
        options["destination"],
        parse_wire(options["wire"]),
        options["inventories"],
        options["matrices"],
        options["sets"],
    )
    plan = plan_flow(request, date.today())
    probing = Probing(
        timeout_s=options["timeout"],
        retries=options["retries"],
        listen=not options["no_listen"],
        strict=options["strict"],
        live=options["live"],
        become_password=password_of(options),
    )
    with progress(sys.stderr) as events:
        explanation = _explain(request, plan, probing, events.host)
    formats = {
        "text": partial(write_explain_text, explanation),
        "json": partial(write_explain_json, explanation),
    }
    raise_problems(write_outputs(outputs, lambda format_, stream: formats[format_](stream)))
    return exit_status(summary_of(explanation), interrupted=False)


def _explain(
    request: FlowRequest, plan: Plan, probing: Probing, tell: Callable[[HostReport], None]
) -> Explanation:
    """Probe; half an explanation is none, so a signal ends it without a page."""
    found: list[Explanation] = []
    rules = Rules(probing.strict, probing.live)

    async def go() -> None:
        async with Launcher(become_password=probing.become_password) as launcher:
            settings = probing.settings()
            found.append(await explain(request, plan, settings, rules, launcher, tell))

    if asyncio.run(until_signal(go())):
        raise KeyboardInterrupt
    return found[0]
