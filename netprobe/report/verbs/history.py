"""What ``netprobe history`` says: outages as intervals, for people, tables, programs, browsers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from netprobe.model.outage import History, Interval, Outage, RouteMark
from netprobe.model.ports import count
from netprobe.model.printable import disarm_cell
from netprobe.model.result import PORTLESS, ResultKey
from netprobe.report.page.marks import word_change, word_marks
from netprobe.report.page.page import Line, PagePart, align, section, write_page
from netprobe.report.page.times import word_begin, word_end, word_looks, word_time
from netprobe.report.page.wording import plural
from netprobe.report.run.json import write_document
from netprobe.report.verbs.history_page import write_history_page

HISTORY_SCHEMA: Final = "netprobe.history/1"
TIMES: Final = ("last_good", "first_bad", "last_bad", "first_good", "not_required_since")
_COLUMNS: Final = (
    "finding", "title", "requirement", *TIMES, "looks", "flows", "reason", "proof", "where",
    "rejected_by", "marks",
)  # fmt: skip


def write_history_text(history: History, stream: TextIO) -> None:
    """Write open outages first, then those that ended, then what could not be seen."""
    parts: list[PagePart] = [Line(_word_totals(history), "strong")]
    for name, title, outages in (
        ("open", "OPEN", [one for one in history.outages if one.is_open]),
        ("ended", "ENDED", [one for one in history.outages if not one.is_open]),
    ):
        lines = (line for one in outages for line in _describe_outage(one))
        for part in section(name, Line(title, "strong"), lines):
            parts += [Line(), *part.lines()]
    rows = [
        [one.host, one.reason, word_time(one.since), word_time(one.until) if one.until else "now"]
        for one in history.blind
    ]
    lines = (Line(text) for text in align([["HOST", "REASON", "SINCE", "UNTIL"], *rows]) if rows)
    for part in section("blind", Line("NOT SEEN", "strong"), lines):
        parts += [Line(), *part.lines()]
    for part in section("marks", Line("ROUTES THAT CHANGED", "strong"), _list_marks(history)):
        parts += [Line(), *part.lines()]
    write_page(parts, stream)


def _list_marks(history: History) -> Iterator[Line]:
    for one in history.marks:
        between = f"between {word_time(one.last_before)} and {word_time(one.first_now)}"
        yield Line(f"{between}: {word_change(one)}", hang=3)


def _word_totals(history: History) -> str:
    going_on = sum(one.is_open for one in history.outages)
    outages = plural(len(history.outages), "outage")
    return f"{outages}, {going_on} open; {word_looks(history)}"


def _describe_outage(outage: Outage) -> Iterator[Line]:
    times, seen = outage.times, plural(outage.looks, "look")
    yield Line(f"{outage.id}  {outage.title}")
    yield Line(
        f"          {word_begin(times)}, {word_end(times)}; seen by {seen}", "quiet", hang=13
    )
    for words in word_marks(outage):
        yield Line(f"          {words}", "quiet", hang=13)


def write_history_json(history: History, stream: TextIO) -> None:
    """Write ``netprobe.history/1``: one outage a line."""
    document = {
        "looks": len(history.looks),
        "begin": stamp_time(history.begin),
        "end": stamp_time(history.end),
        "outages": map(_outage_to_json, history.outages),
        "blind": [
            {
                "host": one.host,
                "reason": one.reason,
                "since": stamp_time(one.since),
                "until": stamp_time(one.until),
            }
            for one in history.blind
        ],
        "marks": list(map(_mark_to_json, history.marks)),
    }
    write_document(HISTORY_SCHEMA, document, stream)


def _outage_to_json(outage: Outage) -> dict[str, Any]:
    return {
        "finding": outage.id,
        "title": outage.title,
        "requirement": outage.requirements[0],
        "requirements": list(outage.requirements),
        **_times_to_json(outage.times),
        "looks": outage.looks,
        "verdict": outage.cause.verdict,
        "reason": outage.cause.reason,
        "proof": outage.proof,
        "where": list(outage.cause.where),
        "rejected_by": outage.cause.rejected_by,
        "members": [
            {**_key_to_json(one.key), **_ports_to_json(part), **_times_to_json(one.times)}
            for one in outage.members
            for part in one.ports
        ],
        "marks": list(map(_mark_to_json, outage.marks)),
    }


def _mark_to_json(mark: RouteMark) -> dict[str, Any]:
    return {
        "kind": mark.kind,
        "source": mark.source,
        "destinations": list(mark.destinations),
        "last_before": stamp_time(mark.last_before),
        "first_now": stamp_time(mark.first_now),
        "before": mark.before,
        "now": mark.now,
    }


def _key_to_json(key: ResultKey) -> dict[str, str]:
    names = ("matrix", "requirement", "source", "destination", "address", "protocol")
    return dict(zip(names, key, strict=True))


def _ports_to_json(part: tuple[int, int]) -> dict[str, int | None]:
    first, last = (None, None) if part in PORTLESS else part
    return {"port": first, "end_port": last}


def _times_to_json(times: Interval) -> dict[str, str | None]:
    return {name: stamp_time(getattr(times, name)) for name in TIMES}


def write_history_csv(history: History, stream: TextIO) -> None:
    """Write one outage a line, for spreadsheets: CRLF, and no cell is a formula."""
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for one in history.outages:
        cells = _outage_to_json(one)
        flows = sum(count(member.ports) for member in one.members)
        texts = {
            **cells,
            "requirement": ";".join(one.requirements),
            "where": ";".join(one.cause.where),
            "flows": flows,
            "marks": "; ".join(word_marks(one)),
        }
        writer.writerow(
            disarm_cell("" if texts[name] is None else str(texts[name])) for name in _COLUMNS
        )


def stamp_time(seconds: float | None) -> str | None:
    """Give a time for programs: UTC, with ``Z`` and microseconds."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


HISTORY_WRITERS: Final = {
    "text": write_history_text,
    "json": write_history_json,
    "csv": write_history_csv,
    "html": write_history_page,
}
