"""A plan for people and programs: every flow that a run would send, and the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from netprobe.model.codec import skipped_to_json
from netprobe.model.coverage import Coverage
from netprobe.model.matrix import probe_to_file
from netprobe.model.plan import Flow, Plan, PlanCost
from netprobe.model.ports import text as ports_text
from netprobe.model.printable import clean, word_note
from netprobe.model.struct_json import Json, to_json
from netprobe.report.page.flow_groups import also_texts
from netprobe.report.page.page import write_line
from netprobe.report.page.wording import duration, listed, plural
from netprobe.report.run.coverage_text import coverage_line
from netprobe.report.run.json import write_document

SCHEMA = "netprobe.plan/1"

_HEADS = ("SOURCE", "DESTINATION", "ADDRESS", "PROTOCOL", "PORTS", "REQUIREMENT", "PURPOSE")
_WIDEST_PORTS = 40
_OF_RUNS = ("strict", "completed", "mixed", "host_sets", "unprobed")


def write_plan_text(plan: Plan, cost: PlanCost, stream: TextIO) -> None:
    """Write one line a flow, then skipped requirements, notes and totals."""
    widths = _measure_widths(plan)
    for row in _make_rows(plan):
        cells = [clean(cell).ljust(width) for cell, width in zip(row, widths, strict=True)]
        write_line("  ".join(cells), stream)
    for line in _lines_after_table(plan):
        write_line(line, stream)
    write_plan_count(plan, cost, stream)


def write_plan_count(plan: Plan, cost: PlanCost, stream: TextIO) -> None:
    """Write the totals only; nothing is walked."""
    paced = (
        f", {duration(cost.paced_udp_seconds)} of them UDP pacing"
        if cost.paced_udp_seconds >= 1
        else ""
    )
    stream.write(
        f"{plural(cost.flows, 'flow')}, about {plural(cost.packets, 'packet')}, "
        f"{plural(cost.listeners, 'listener')}, about {duration(cost.seconds)}{paced} "
        f"where nothing is blocked, {duration(cost.seconds_dropped)} where something is dropped, "
        "if each host is an idle machine of its own; "
        f"{plural(len(plan.skipped), 'requirement')} skipped\n"
    )
    if plan.coverage is not None:
        stream.write(f"coverage: {coverage_line(plan.coverage, 'are probed')}\n")


def _measure_widths(plan: Plan) -> list[int]:
    """Widths from the blocks' hosts, so that no flow is walked twice."""
    widths = [len(head) for head in _HEADS[:-1]]
    for block in plan.blocks:
        cells = (
            max((len(host.name) for host in block.sources), default=0),
            max((len(host.name) for host, _ in block.destinations), default=0),
            max((len(address.text) for _, address in block.destinations), default=0),
            len(block.protocol),
            min(len(ports_text(block.ports)), _WIDEST_PORTS),
            len(block.requirement.id),
        )
        widths = [max(pair) for pair in zip(widths, cells, strict=True)]
    return [*widths, 0]


def _make_rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    if plan.blocks:
        yield _HEADS
    for flow in plan.flows():
        block = flow.block
        ends = (flow.source.name, flow.destination.name, flow.address.text)
        ports = ports_text(block.ports) or "-"
        yield (*ends, block.protocol, ports, block.requirement.id, _word_purpose(flow))


def _word_purpose(flow: Flow) -> str:
    requirement = flow.block.requirement
    marks = [
        *(["optional"] if requirement.optional else []),
        *(["must not get through"] if requirement.expect == "denied" else []),
        *(["waived"] if flow.block.waiver else []),
        *([f"one of {flow.block.group_name} is enough"] if flow.block.group_name else []),
    ]
    purposes = "; ".join((requirement.purpose, *also_texts(flow.block.also)))
    return f"{purposes} [{', '.join(marks)}]" if marks else purposes


def _lines_after_table(plan: Plan) -> Iterator[str]:
    if plan.blocks:
        yield ""
    if plan.selection:
        yield f"selection: {plan.selection}"
    by_reason: dict[str, list[str]] = {}
    for item in plan.skipped:
        by_reason.setdefault(item.reason, []).append(item.requirement)
    for reason, ids in by_reason.items():
        names = list(dict.fromkeys(ids))
        yield f"skipped: {reason}: {listed(names, 12)}"
    yield from _lines_of_taken(plan)
    yield from map(word_note, plan.notes)
    yield from (f"warning: {text}" for text in word_warnings(plan))


def _lines_of_taken(plan: Plan) -> Iterator[str]:
    """Give a line for everything that manifests gave: where it stands, and what it became."""
    if plan.taken:
        yield "taken from manifests:"
    for one in plan.taken:
        yield f"  {one.place}: {one.path}: {one.value} -> {one.gives}"


def word_warnings(plan: Plan) -> list[str]:
    """Give each warning of the plan's requirements once, behind their ids."""
    return [f"{listed(ids, 12)}: {text}" for text, ids in _ids_by_warning(plan).items()]


def _ids_by_warning(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for block in plan.blocks:
        for text in block.warnings:
            found.setdefault(text, {})[block.requirement.id] = None
    return {text: list(ids) for text, ids in found.items()}


def write_plan_json(plan: Plan, cost: PlanCost, stream: TextIO, *, count: bool) -> None:
    """Write ``netprobe.plan/1`` as a stream, one flow a line; ``count`` leaves the flows out."""
    document: Json = {
        "matrices": to_json(plan.matrices),
        "selection": plan.selection,
        "totals": {
            "flows": cost.flows,
            "packets": cost.packets,
            "listeners": cost.listeners,
            "seconds": round(cost.seconds, 1),
            "seconds_dropped": round(cost.seconds_dropped, 1),
            "paced_udp_seconds": round(cost.paced_udp_seconds, 1),
            "skipped": len(plan.skipped),
        },
        **({} if plan.coverage is None else {"coverage": _coverage_json(plan.coverage)}),
        "taken": to_json(plan.taken),
        "notes": list(plan.notes),
        "warnings": [
            {"text": text, "requirements": ids} for text, ids in _ids_by_warning(plan).items()
        ],
        "skipped": [skipped_to_json(item) for item in plan.skipped],
    }
    if not count:
        document["flows"] = map(_flow_json, plan.flows())
    write_document(SCHEMA, document, stream)


def _coverage_json(about: Coverage) -> Json:
    """Give how the plan covers a larger one; what is covered is known only after a run."""
    data: Json = to_json(about)
    return {key: value for key, value in data.items() if key not in _OF_RUNS}


def _flow_json(flow: Flow) -> Json:
    block = flow.block
    requirement = block.requirement
    return {
        "matrix": block.matrix,
        "requirement": requirement.id,
        "purpose": requirement.purpose,
        "row": requirement.row,
        "optional": requirement.optional,
        "expect": requirement.expect,
        "waived": block.waiver.reason if block.waiver else None,
        "source": flow.source.name,
        "destination": flow.destination.name,
        "address": flow.address.text,
        "protocol": block.protocol,
        "ports": [list(part) for part in block.ports],
        "probe": probe_to_file(requirement.probe),
        "any_of": block.group_name,
        "also": to_json(block.also),
    }
