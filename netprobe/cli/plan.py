"""Plans of options: the verb ``plan``, and the part that a run probes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from netprobe import pipeline
from netprobe.cli.asked import CostOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.option_groups import CoverOptions, PlanOptions, ScriptOptions
from netprobe.cli.options import PAGE_FORMATS, require_matrix
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.load.manifest.manifests import GivenManifests
from netprobe.model.exit import PASS, UNKNOWN
from netprobe.model.plan import Plan
from netprobe.model.run import RunInfo
from netprobe.plan.asked import keep_asked, keep_ruled
from netprobe.plan.choices import CoverChoice, PlanPart, choose_part, refuse_too_much
from netprobe.plan.cost import estimate
from netprobe.plan.quality import note_quality, read_samples
from netprobe.plan.rehearsals import note_cost, read_rehearsals
from netprobe.plan.select import Selection
from netprobe.report.outputs import OutputTarget, write_or_raise
from netprobe.report.record.earlier import TakeOver
from netprobe.report.verbs.plan import (
    word_warnings,
    write_plan_count,
    write_plan_json,
    write_plan_text,
)

_COVER: Final = re.compile(r"all|zones(?::([1-9]\d{0,3}))?", re.ASCII)


def plan_verb(options: CostOptions) -> int:
    """Print the plan; 3 where nothing would be tested: an installer that reads 0 would go on."""
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    plan = make_plan(
        options, options.zone_groups, rehearse=read_rehearsals(options.rehearse),
        quality=read_samples(options.quality),
    )  # fmt: skip
    return print_plan(options, outputs, plan)


def print_plan(options: CostOptions, outputs: Sequence[OutputTarget], plan: Plan) -> int:
    """Print a plan and what it costs, and give the exit status."""
    covering = read_cover(options).cover(plan)
    plan = note_quality(note_cost(plan if covering is None else covering.plan))
    cost = estimate(plan)
    if options.count:
        tell_notes(plan)
    writers = {
        "text": partial(write_plan_count if options.count else write_plan_text, plan),
        "json": partial(write_plan_json, plan, count=options.count),
    }
    write_or_raise(outputs, writers, cost)
    return PASS if cost.flows else UNKNOWN


def tell_notes(plan: Plan) -> None:
    """Print notes and warnings (names that may be misspelt, ports) that standard output lacks."""
    for note in plan.notes:
        tell_note(note)
    for text in word_warnings(plan):
        tell(f"netprobe: warning: {text}")


def tell_note(note: str) -> None:
    tell(f"netprobe: note: {note}")


def make_plan(
    options: PlanOptions,
    zone_groups: Sequence[str] = (),
    *,
    probing: bool = False,
    rehearse: Sequence[str] = (),
    quality: int | None = None,
) -> Plan:
    """Make the plan of a verb's options. Raises RequestError where no matrix is named."""
    require_matrix(options.matrices)
    selection = Selection(options.limit, options.from_, options.to, options.only, options.protocol)
    return pipeline.make_plan(
        options.matrices, options.inventories, options.sets, selection, options.roles, zone_groups,
        manifests=GivenManifests(options.manifests, options.networks), probing=probing,
        rehearse=rehearse, quality=quality,
    )  # fmt: skip


def read_cover(
    options: CoverOptions, sample: int | None = None, earlier: RunInfo | None = None
) -> CoverChoice:
    """Read ``--cover`` and ``--seed``; without them an earlier run is gone on with as it was.

    Raises RequestError.
    """
    text = options.cover
    if text is None and earlier is not None:
        was = earlier.coverage
        return CoverChoice(is_said=True) if was is None else CoverChoice(was.copies, was.seed, True)
    if text is None:
        return CoverChoice(is_said=sample is not None)
    found = _COVER.fullmatch(text)
    if found is None:
        raise RequestError(
            f"--cover {text}: expected all, zones, or zones:K with K from 1, such as zones:3"
        )
    if text == "all":
        return CoverChoice(is_said=True)
    if sample is not None:
        raise RequestError("--cover zones and --sample contradict each other: give one of them")
    return CoverChoice(int(found[1] or 1), options.seed, True)


def choose_asked_part(
    options: ScriptOptions, plan: Plan, taken: TakeOver | None = None
) -> PlanPart:
    """Choose the part of a plan that is probed.

    Raises RequestError where it has too many results, or takes longer than a run may unasked.
    """
    choice = read_cover(options, options.sample, None if taken is None else taken.earlier.info)
    if taken is not None and taken.earlier.rules is not None:
        plan = _keep_asked(plan, taken)
        choice = CoverChoice(is_said=True)
    again = None if taken is None else taken.asked_again()
    part = choose_part(plan, choice, options.sample, again)
    is_part = part.plan is not plan
    refuse_too_much(part.plan, options.max_results, is_part=is_part, is_said=choice.is_said)
    return part


def _keep_asked(plan: Plan, taken: TakeOver) -> Plan:
    """Keep what a firewall request asks for. Raises RequestError where that is nothing."""
    request = taken.earlier
    if not request.rules:
        raise RequestError(
            f"--retry {request.path}: this request asks for nothing; run without --retry"
        )
    if taken.is_of_plan:
        return keep_ruled(plan, request.rules, request.path)
    return keep_asked(plan, request.read_results(), request.path)
