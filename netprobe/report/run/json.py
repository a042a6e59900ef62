"""The report for programs: ``netprobe.run/1``, written as a stream, one result a line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, TextIO

import msgspec
from msgspec.structs import replace

import netprobe
from netprobe.model.codec import (
    RUN_SCHEMA,
    finding_to_json,
    info_to_json,
    result_to_json,
    summary_to_json,
)
from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding
from netprobe.model.struct_json import Json, to_json
from netprobe.report.page.flow_groups import EndAddress, Survey
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place
from netprobe.report.run.overview import make_overview


def write_json(report: Report, stream: TextIO) -> None:
    """Write the document; memory holds one result at a time."""
    info = info_to_json(replace(report.info, findings=None))
    skipped = info.pop("skipped")
    warned = sorted(report.collector.warned.items())
    refused = sorted(report.collector.refused.items(), key=lambda item: place(item[1].first))
    document = {
        **info,
        "summary": summary_to_json(report.summary),
        **({} if report.changes is None else {"changes": report.changes.counts()}),
        "warnings": [{"text": text, "count": about.flows} for text, about in warned],
        "refusals": [_refusal_to_json(end, survey) for end, survey in refused],
        "overview": to_json(make_overview(report)),
        "findings": map(_finding_to_json, report.findings),
        "results": map(result_to_json, report.collector.results()),
        "skipped": skipped,
    }
    write_document(RUN_SCHEMA, document, stream)


def write_document(schema: str, keys: Json, stream: TextIO) -> None:
    """Write an object, its schema first: one key a line, and of an iterator one element a line.

    Everything is ASCII, so that no locale, pipe or editor can damage it.
    """
    before = "{"
    head = {"schema": schema, "netprobe_version": netprobe.__version__}
    for key, value in {**head, **keys}.items():
        stream.write(f'{before}"{key}": ')
        if isinstance(value, Iterator):
            stream.writelines(_array_texts(value))
        else:
            stream.write(_value_text(value))
        before = ",\n "
    stream.write("}\n")


def _array_texts(items: Iterator[Json]) -> Iterator[str]:
    yield "["
    before = "\n  "
    for item in items:
        yield f"{before}{_value_text(item)}"
        before = ",\n  "
    yield "]"


def _value_text(value: Any) -> str:
    """Give a value as JSON in ASCII. msgspec is faster than Python's own module, which writes what
    msgspec refuses: subclasses of ``str``, and lone surrogates, which file names may have."""
    with contextlib.suppress(UnicodeEncodeError, TypeError):
        text = msgspec.json.format(msgspec.json.encode(value), indent=0)
        if text.isascii():
            return text.decode("ascii")
    return json.dumps(value)


def _finding_to_json(finding: Finding) -> Json:
    data = finding_to_json(finding)
    members = data.pop("members")
    return {**data, "owner": owner_of(finding), "members": members}


def _refusal_to_json(end: EndAddress, survey: Survey) -> Json:
    """Give one destination's passes that rest on a refusal; ``count`` is in flows."""
    return {
        "destination": end[0],
        "address": end[1],
        "sources": list(survey.sources),
        "ports": survey.ports_text(),
        "count": survey.flows,
    }
