"""Explains one flow: probes it as `run` does, notes every step, and adds the judge's verdict.

It uses the parts of the probe stage and the tables of the judge, so it cannot contradict a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from netprobe.explain import far_steps as far
from netprobe.explain import near_steps as near
from netprobe.explain import seen_steps as seen
from netprobe.explain.extra_checks import Further, Watched, watch
from netprobe.explain.hops import hops_step, say_where_lost, say_where_nearer
from netprobe.explain.request import FlowRequest
from netprobe.explain.view import View
from netprobe.judge.findings import fold
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.plan import PATH_MTU, Plan
from netprobe.model.reasons import find_reason
from netprobe.model.result import VERDICTS, HostReport, Result, Summary
from netprobe.model.story import Step
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.launch import Launcher

_STEPS: tuple[Callable[[View], Step], ...] = (
    near.agents_step, near.name_step, near.route_step, near.listener_step, near.probe_step,
    seen.story_step, seen.silence_step, near.reset_step, hops_step,
    far.arrival_step, far.way_back_step, far.control_step, far.path_mtu_step,
    far.checks_step,
)  # fmt: skip

_OF_REHEARSALS: tuple[Callable[[View], Step], ...] = (near.agents_step, far.rehearsal_step)


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
            tell_story(view) for view in _make_views(watched, rules, recorded=settings.record)
        ),
        hosts=tuple(watched.reports[name] for name in sorted(watched.reports)),
        notes=(*plan.notes, *_list_skipped(plan), *watched.left_out),
    )


def _list_skipped(plan: Plan) -> Iterator[str]:
    return (f"{one.requirement} is skipped: {one.reason}" for one in plan.skipped)


def summary_of(explanation: Explanation) -> Summary:
    """Give the counts that the exit status is made of."""
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    deciding: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    for story in explanation.stories:
        counts[story.result.verdict] += 1
        deciding[story.result.verdict] += story.result.decides
    return Summary(counts, 0, deciding=deciding)


def _make_views(watched: Watched, rules: Rules, *, recorded: bool) -> Iterator[View]:
    """Give each address of the flow; the path's MTU is evidence of its own beside it."""
    # The blocks of an explanation have one source and one destination.
    judged = [(one, judge(one, (one.flow.block.index, 0, 0), rules)[0]) for one in watched.evidence]
    mtus = {
        one.address: (one, result)
        for one, result in judged
        if _is_of_mtu(one) and (one.mtu is not None or one.untested is not None)
    }
    for evidence, result in judged:
        if _is_of_mtu(evidence):
            continue
        further = watched.further.get(evidence.address, Further())
        mtu = mtus.get(evidence.address)
        yield View(evidence, result, further, watched.reports, mtu, recorded)


def _is_of_mtu(evidence: Evidence) -> bool:
    return evidence.flow.block.requirement.probe == PATH_MTU


def tell_story(view: View) -> FlowStory:
    """Take every step of one address, and add what to do."""
    is_played = view.evidence.flow.block.rehearsal is not None
    is_up = "host" in view.result.where and far.lives(view)
    if is_up:
        view = replace(view, result=_exclude_host(view.result))
    steps = tuple(step(view) for step in (_OF_REHEARSALS if is_played else _STEPS))
    remarks = [*_list_remarks(view)]
    if is_up:
        remarks.append(f"asked beside the flow, {view.address} does answer: the host itself is up")
    return FlowStory(steps, view.result, _choose_advice(view), tuple(remarks))


def _choose_advice(view: View) -> str:
    """Give the finding's advice, as a run gives it; for doubt, what would remove it."""
    findings = fold([view.result])
    if findings:
        return findings[0].advice
    if view.result.verdict != "inconclusive":
        return ""
    told = [find_reason(view.result.reason).in_doubt]
    if not view.has_agent(view.destination) and view.has_agent(view.source):
        told.append(
            f"Give {view.destination.name} a vantage in the inventory: an agent there sees whether "
            "the packets arrive."
        )
    return " ".join(filter(None, told))


def _exclude_host(result: Result) -> Result:
    """Give the result with the places that it has in a run whose other flows to the host, for which
    the looks beside this one stand, get an answer."""
    left = tuple(place for place in result.where if place != "host")
    return replace(result, where=left or result.where)


def _list_remarks(view: View) -> Iterator[str]:
    """Warnings, and what the looks beside the flow add to the places of the verdict."""
    yield from view.result.warnings
    yield from say_where_nearer(view)
    yield from say_where_lost(view)
    measured, result = view.mtu or (None, view.result)
    # Where not even small packets were answered, nobody knows what fits.
    tried = measured is not None and measured.mtu is not None and measured.mtu.path is not None
    if tried and result.verdict == "blocked":
        yield f"large packets do not fit: {result.because}"
