"""The page of one explained flow, for people and for programs (``netprobe.explain/1``).

Trails of steps are also those of ``diagnose konnectivity``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

import netprobe
from netprobe.model.codec import result_to_json
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.result import Result, Verdict
from netprobe.model.story import Step, TrailStatus
from netprobe.model.struct_json import Json, to_json
from netprobe.report.page.flow_groups import need, wire_text
from netprobe.report.page.page import Line, PagePart, Style, field, write_page
from netprobe.report.page.wording import duration, where_text

# The mark before an entry's words, so that the failing step stands out.
_MARKS: dict[TrailStatus, str] = {
    "ok": "", "bad": "!! ", "doubt": "?? ", "not-needed": "-- ", "not-possible": "-- ",
}  # fmt: skip
# The column of a table; in lower case they are the status words of ``netprobe.konnectivity/1``.
_COLUMN: dict[TrailStatus, str] = {
    "ok": "ok", "bad": "FAIL", "doubt": "warn", "not-needed": "-", "not-possible": "-",
}  # fmt: skip
_STEP_STYLES: dict[TrailStatus, Style] = {
    "ok": "plain", "bad": "bad", "doubt": "doubt", "not-needed": "quiet", "not-possible": "quiet",
}  # fmt: skip


def trail_fields(entries: Iterable[Step]) -> Iterator[PagePart]:
    """Give each entry as a labelled field, one line a sentence."""
    for entry in entries:
        first, *rest = entry.words
        yield from field(entry.name.replace("-", " "), [f"{_MARKS[entry.status]}{first}", *rest])


def trail_lines(entries: Iterable[Step], width: int) -> Iterator[PagePart]:
    """Each entry as one line: its name in a column of this width, its status, its sentences."""
    for entry in entries:
        words = "; ".join(entry.words)
        text = f"   {entry.name:<{width}}  {_COLUMN[entry.status]:<4}  {words}"
        yield Line(text.rstrip(), _STEP_STYLES[entry.status], hang=width + 11)


def status_column(entries: Iterable[Step], name: str) -> str:
    """Give one word for the status of the entry of this name, as a table shows it."""
    return next((_COLUMN[entry.status] for entry in entries if entry.name == name), "-")


def steps_to_json(entries: Iterable[Step]) -> list[Json]:
    """``steps`` of ``netprobe.explain/1``."""
    return [
        {
            "name": entry.name,
            "status": entry.status,
            "facts": dict(entry.facts),
            "words": list(entry.words),
        }
        for entry in entries
    ]


def stages_to_json(entries: Iterable[Step]) -> list[Json]:
    """``stages`` of ``netprobe.konnectivity/1``, with status words of their own."""
    return [
        {
            "name": entry.name,
            "status": "skipped" if entry.is_skipped else _COLUMN[entry.status].lower(),
            "said": "; ".join(entry.words),
            "elapsed_ms": entry.elapsed_ms,
            "facts": dict(entry.facts),
        }
        for entry in entries
    ]


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
    address = f" ({result.address})" if result.address != result.destination else ""
    wire = wire_text([(result.protocol, result.ports)])
    flow = f"{wire} from {result.source} to {result.destination}{address}"
    yield Line(f"{result.verdict.upper()}: {flow}", _STYLES[result.verdict])
    took = duration(explanation.elapsed_s)
    many = len({story.result.address for story in explanation.stories})
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
    excuse = "; optional" if result.optional else ""
    waived = f"; waived: {result.waived}" if result.waived else ""
    return [f"{need(result)}{denied}{excuse}{waived}"]


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


EXPLAIN_WRITERS: Final = {"text": write_explain_text, "json": write_explain_json}
