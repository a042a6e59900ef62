"""Explains one flow: probes it as `run` does, notes every step, and adds the judge's verdict.

It uses the parts of the probe stage and the tables of the judge, so it cannot contradict a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from netprobe.explain import far_steps as far
from netprobe.explain import near_steps as near
from netprobe.explain import seen_steps as seen
from netprobe.explain.extra_checks import Further, Watched, watch
from netprobe.explain.remarks import advice, remarks
from netprobe.explain.request import FlowRequest
from netprobe.explain.view import View
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.plan import PATH_MTU, Block, Plan
from netprobe.model.result import VERDICTS, HostReport, Result, Summary
from netprobe.model.trail import Step
from netprobe.probe.flows.work import PlanPlace
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.launch import Launcher

_STEPS: tuple[Callable[[View], Step], ...] = (
    near.agents_step, near.name_step, near.route_step, near.listener_step, near.probe_step,
    seen.story_step, seen.silence_step, near.reset_step, near.hops_step,
    far.arrival_step, far.way_back_step, far.control_step, far.path_mtu_step,
    far.checks_step,
)  # fmt: skip


async def explain(
    request: FlowRequest,
    plan: Plan,
    settings: ProbeSettings,
    rules: Rules,
    launcher: Launcher,
    tell: Callable[[HostReport], None],
) -> Explanation:
    """Probe the plan's flow and explain it. ``tell`` gets the hosts' reports."""
    started = datetime.now(UTC)
    begin = time.monotonic()
    watched = await watch(plan, settings, launcher, tell)
    return Explanation(
        started_at=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        elapsed_s=round(time.monotonic() - begin, 3),
        source=request.source,
        destination=request.destination,
        protocol=request.wire.protocol,
        port=request.wire.port,
        stories=tuple(
            tell_story(view) for view in _make_views(plan, watched, rules, recorded=settings.record)
        ),
        hosts=tuple(watched.reports[name] for name in sorted(watched.reports)),
        notes=plan.notes,
    )


def summary_of(explanation: Explanation) -> Summary:
    """Give the counts that the exit status is made of."""
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    deciding: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    for story in explanation.stories:
        counts[story.result.verdict] += 1
        deciding[story.result.verdict] += story.result.decides
    return Summary(counts, 0, deciding=deciding)


def _make_views(plan: Plan, watched: Watched, rules: Rules, *, recorded: bool) -> Iterator[View]:
    mtus = _judge_mtus(plan, watched, rules)
    for block in plan.blocks:
        if block.requirement.probe == PATH_MTU:
            continue
        order = _order_of(block)
        for evidence in watched.evidence.get(order, ()):
            result = judge(evidence, order, rules)[0]
            further = watched.further.get(evidence.address, Further())
            mtu = mtus.get(evidence.address)
            yield View(evidence, result, further, watched.reports, mtu, recorded)


def _judge_mtus(plan: Plan, watched: Watched, rules: Rules) -> dict[str, tuple[Evidence, Result]]:
    return {
        evidence.address: (evidence, judge(evidence, _order_of(block), rules)[0])
        for block in plan.blocks
        if block.requirement.probe == PATH_MTU
        for evidence in watched.evidence.get(_order_of(block), ())
        if evidence.mtu is not None or evidence.untested is not None
    }


def _order_of(block: Block) -> PlanPlace:
    """The blocks of an explanation have one source and one destination."""
    return (block.index, 0, 0)


def tell_story(view: View) -> FlowStory:
    """Take every step of one address, and add what to do."""
    steps = tuple(step(view) for step in _STEPS)
    return FlowStory(steps, view.result, advice(view), tuple(remarks(view)))
