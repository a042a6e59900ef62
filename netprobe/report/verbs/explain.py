"""The page of one explained flow, for people and for programs (``netprobe.explain/1``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

import netprobe
from netprobe.model.codec import result_to_json
from netprobe.model.dataclass_json import Json, to_json
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.result import Result, Verdict
from netprobe.report.page.page import Line, PagePart, Style, field, write_page
from netprobe.report.page.wording import duration, port_text, where_text
from netprobe.report.verbs.trail import steps_to_json, trail_fields

EXPLAIN_SCHEMA = "netprobe.explain/1"

_STYLES: dict[Verdict, Style] = {
    "pass": "good", "blocked": "bad", "exposed": "bad",
    "inconclusive": "doubt", "not-tested": "doubt",
}  # fmt: skip


def write_explain_text(explanation: Explanation, stream: TextIO) -> None:
    """Write the page: wrapped and coloured on a terminal, plain anywhere else."""
    write_page(explain_parts(explanation), stream)


def explain_parts(explanation: Explanation) -> Iterator[PagePart]:
    """Show every address of the flow, one after the other, each with its verdict first."""
    for number, story in enumerate(explanation.stories):
        if number:
            yield Line()
        yield from _write_headline(story.result, explanation)
        yield from _write_verdict(story)
        yield Line()
        yield Line(
            "STEP BY STEP (!! here it fails, ?? odd, -- not needed or not possible)", "strong"
        )
        yield from trail_fields(story.steps)
    if explanation.notes:
        yield Line()
        yield from field("notes", explanation.notes)


def _write_headline(result: Result, explanation: Explanation) -> Iterator[Line]:
    port = f" {port_text(result)}" if port_text(result) else ""
    address = f" ({result.address})" if result.address != result.destination else ""
    flow = f"{result.protocol}{port} from {result.source} to {result.destination}{address}"
    yield Line(f"{result.verdict.upper()}: {flow}", _STYLES[result.verdict])
    took = duration(explanation.elapsed_s)
    many = len(explanation.stories)
    of = f" for {many} addresses" if many > 1 else ""
    yield Line(f"netprobe {netprobe.__version__}, {explanation.started_at}, {took}{of}", "quiet")


def _write_verdict(story: FlowStory) -> Iterator[PagePart]:
    result = story.result
    yield from field("purpose", _word_purpose(result))
    yield from field("seen", [f"{result.because} ({result.state}, {result.reason})"])
    if result.verdict == "pass":
        yield from field("proof", [result.proof])
    elif result.verdict != "not-tested":
        yield from field("where", [where_text(result)])
    yield from field("to do", [story.advice])
    yield from field("also", story.remarks)


def _word_purpose(result: Result) -> list[str]:
    """Word the purpose of the flow in its matrix; nothing without a matrix."""
    denied = "; it must NOT be reachable" if result.expect == "denied" else ""
    if not result.purpose and not denied:
        return []
    row = f"; row: {result.row}" if result.row and result.row != result.purpose else ""
    excuse = "; optional" if result.optional else ""
    waived = f"; waived: {result.waived}" if result.waived else ""
    name = f"{result.matrix}, {result.requirement}{row}"
    return [f"{result.purpose or result.requirement} ({name}){denied}{excuse}{waived}"]


def write_explain_json(explanation: Explanation, stream: TextIO) -> None:
    """Write ``netprobe.explain/1``; ``result`` is what ``netprobe.run/1`` has for the flow."""
    document: Json = {
        "schema": EXPLAIN_SCHEMA,
        "netprobe_version": netprobe.__version__,
        "started_at": explanation.started_at,
        "elapsed_s": explanation.elapsed_s,
        "source": explanation.source,
        "destination": explanation.destination,
        "protocol": explanation.protocol,
        "port": explanation.port,
        "flows": [_flow_to_json(story) for story in explanation.stories],
        "hosts": to_json(explanation.hosts),
        "notes": list(explanation.notes),
    }
    stream.write(f"{json.dumps(document, indent=1)}\n")


def _flow_to_json(story: FlowStory) -> Json:
    return {
        "address": story.result.address,
        "steps": steps_to_json(story.steps),
        "result": result_to_json(story.result),
        "advice": story.advice,
        "remarks": list(story.remarks),
    }
