"""The report for programs: ``netprobe.run/1``, written as a stream, one result a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

import netprobe
from netprobe.model.codec import (
    RUN_SCHEMA,
    finding_to_json,
    info_to_json,
    result_to_json,
    summary_to_json,
)
from netprobe.model.dataclass_json import Json
from netprobe.report.collector import Report
from netprobe.report.flow_groups import End, Survey
from netprobe.report.spool import place


def write_json(report: Report, stream: TextIO) -> None:
    """Write the document; memory holds one result at a time."""
    head = _head(report)
    findings: Iterable[Json] = map(finding_to_json, report.findings)
    results: Iterable[Json] = map(result_to_json, report.collector.results())
    stream.write("{")
    for key, value in head.items():
        stream.write(f'"{key}": {_text(value)},\n ')
    stream.writelines(_array("findings", findings))
    stream.write(",\n ")
    stream.writelines(_array("results", results))
    stream.write(f',\n "skipped": {_text(info_to_json(report.info)["skipped"])}')
    stream.write("}\n")


def _head(report: Report) -> Json:
    info = info_to_json(report.info)
    del info["skipped"]
    warnings = [
        {"text": text, "count": about.flows} for text, about in report.collector.warned.items()
    ]
    return {
        "schema": RUN_SCHEMA,
        "netprobe_version": netprobe.__version__,
        **info,
        "summary": summary_to_json(report.summary),
        "warnings": sorted(warnings, key=lambda item: str(item["text"])),
        "refusals": [
            _refusal_to_json(end, survey)
            for end, survey in sorted(
                report.collector.refused.items(), key=lambda item: place(item[1].first)
            )
        ],
    }


def _refusal_to_json(end: End, survey: Survey) -> Json:
    """One destination's passes that rest on a refusal; ``count`` is in flows."""
    return {
        "destination": end[0],
        "address": end[1],
        "sources": list(survey.sources),
        "ports": survey.ports_text(),
        "count": survey.flows,
    }


def _array(name: str, items: Iterable[Json]) -> Iterator[str]:
    yield f'"{name}": ['
    before = "\n  "
    for item in items:
        yield f"{before}{_text(item)}"
        before = ",\n  "
    yield "]"


def _text(value: Any) -> str:
    """ASCII, so that no locale, pipe or editor can damage it."""
    return json.dumps(value)
