"""One flow under the microscope: what `run` does for it, every step noted, and the judge's verdict.

It probes with the probe stage's own parts and judges with the judge's own tables, so that it cannot
say something else than a run does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from netprobe.explain.extra_checks import Further, Watched, watch
from netprobe.explain.far import (
    arrival_step,
    control_step,
    path_mtu_step,
    way_back_step,
)
from netprobe.explain.remarks import advice, remarks
from netprobe.explain.request import FlowRequest
from netprobe.explain.steps import (
    agents_step,
    hops_step,
    listener_step,
    name_step,
    probe_step,
    reset_step,
    route_step,
)
from netprobe.explain.view import View
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.plan import PATH_MTU, Block, Plan
from netprobe.model.result import VERDICTS, HostReport, Result, Summary
from netprobe.model.trail import TrailEntry
from netprobe.probe.flows.work import Order
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.launch import Launcher

Found = Mapping[Order, list[Evidence]]

_STEPS: tuple[Callable[[View], TrailEntry], ...] = (
    agents_step,
    name_step,
    route_step,
    listener_step,
    probe_step,
    reset_step,
    hops_step,
    arrival_step,
    way_back_step,
    control_step,
    path_mtu_step,
)


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
        stories=tuple(_story(view) for view in _views(plan, watched, rules)),
        hosts=tuple(watched.reports[name] for name in sorted(watched.reports)),
        notes=plan.notes,
    )


def summary_of(explanation: Explanation) -> Summary:
    """The counts that the exit status is made of."""
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    deciding: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    for story in explanation.stories:
        counts[story.result.verdict] += 1
        deciding[story.result.verdict] += story.result.decides
    return Summary(counts, 0, deciding=deciding)


def _views(plan: Plan, watched: Watched, rules: Rules) -> Iterator[View]:
    mtus = _mtus(plan, watched, rules)
    for block in plan.blocks:
        if block.requirement.probe == PATH_MTU:
            continue
        order = _order(block)
        for evidence in watched.evidence.get(order, ()):
            result = judge(evidence, order, rules)[0]
            further = watched.further.get(evidence.address, Further())
            yield View(
                evidence,
                result,
                further,
                watched.reports,
                mtus.get(evidence.address),
            )


def _mtus(plan: Plan, watched: Watched, rules: Rules) -> dict[str, tuple[Evidence, Result]]:
    return {
        evidence.address: (evidence, judge(evidence, _order(block), rules)[0])
        for block in plan.blocks
        if block.requirement.probe == PATH_MTU
        for evidence in watched.evidence.get(_order(block), ())
        if evidence.mtu is not None or evidence.untested is not None
    }


def _order(block: Block) -> Order:
    """The blocks of an explanation have one source and one destination."""
    return (block.index, 0, 0)


def _story(view: View) -> FlowStory:
    steps = tuple(step(view) for step in _STEPS)
    return FlowStory(steps, view.result, advice(view), tuple(remarks(view)))
