"""The JSON Schema of what runs leave: ``netprobe.run/1``, and each line of a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from netprobe.model.codec import (
    LEFT_OUT_OF_RESULT,
    NEEDED_OF_RUN,
    RECORD_SCHEMA,
    RESULT_DEFAULTS,
    RUN_SCHEMA,
    RecordHeader,
    StoryJson,
    summary_to_json,
)
from netprobe.model.kept_finding import Member
from netprobe.model.plan import Skipped
from netprobe.model.reason import OWNERS
from netprobe.model.result import VERDICTS, Finding, Result, Summary
from netprobe.model.run import RunInfo
from netprobe.model.struct_json import Json, schema_of_struct
from netprobe.report.record.changes import Changes
from netprobe.report.run.key_words import FINDING_KEYS, OVERVIEW_KEYS, RESULT_KEYS, RUN_KEYS
from netprobe.report.run.overview import Overview

COUNT: Json = {"type": "integer", "minimum": 0}
_TEXT: Json = {"type": "string"}
# Counts that files of an older netprobe lack.
_LATER_COUNTS = frozenset({
    "accepted", "known", "spared", "covered", "moved", "only_later", "only_later_failed",
    "only_earlier", "only_earlier_failed",
})  # fmt: skip


def run_schema_text() -> str:
    """Give the schema as ``netprobe schema run`` prints it."""
    info = schema_of_struct(RunInfo)
    # A skipped requirement has the keys of hosts only where the reason is about hosts.
    info["properties"]["skipped"] = _list_of(_leave_out_null(Skipped))
    info["required"] = list(NEEDED_OF_RUN)
    # A JSON report says more of each than a record keeps.
    kept = info["properties"].pop("findings")
    _describe_keys(info, RUN_KEYS)
    parts = ("run", "record_header", "record_result", "record_end")
    order = schema_of_struct(Result)["properties"]["order"]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:netprobe:schema:run:1",
        "title": "netprobe run",
        "description": f"A {RUN_SCHEMA}, or one line of a {RECORD_SCHEMA}. Keys may be added.",
        "anyOf": [_refer_to(part) for part in parts],
        "$defs": {
            "info": info,
            "result": _schema_of_result(),
            "finding": _schema_of_finding(),
            "run": {"allOf": [_refer_to("info")], **_schema_of_document()},
            "record_header": {"allOf": [_refer_to("info")], **_schema_of_header()},
            "record_result": {"allOf": [_refer_to("result")], **make_object({"order": order})},
            "record_end": make_object({"end": _make_end(kept)}),
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def _make_end(kept: Json) -> Json:
    return {"allOf": [_refer_to("info")], "type": "object", "properties": {"findings": kept}}


def _schema_of_document() -> Json:
    """Give the keys of a JSON report that are not its run's own."""
    texts = {"destination": _TEXT, "address": _TEXT, "ports": _TEXT}
    refusal = make_object({**texts, "sources": _list_of(_TEXT), "count": COUNT})
    known = {
        "schema": {"const": RUN_SCHEMA},
        "netprobe_version": _TEXT,
        "summary": _make_counts(summary_to_json(Summary(dict.fromkeys(VERDICTS, 0), 0))),
        "changes": _make_counts(Changes().counts()),
        "overview": schema_of_struct(Overview),
        "warnings": _list_of(make_object({"text": _TEXT, "count": COUNT})),
        "refusals": _list_of(refusal),
        "findings": _list_of(_refer_to("finding")),
        "results": _list_of(_refer_to("result")),
    }
    _describe_keys(known["overview"], OVERVIEW_KEYS)
    document = {**make_object(known), "required": ["schema", "results"]}
    return _describe_keys(document, RUN_KEYS)


def _schema_of_result() -> Json:
    result = _leave_out_null(Result, LEFT_OUT_OF_RESULT)
    del result["properties"]["order"]
    result["properties"]["story"] = schema_of_struct(StoryJson)
    may_lack = {"order", "end_port", *RESULT_DEFAULTS}
    result["required"] = [key for key in result["required"] if key not in may_lack]
    return _describe_keys(result, RESULT_KEYS)


def _schema_of_finding() -> Json:
    finding = _leave_out_null(Finding, ("evidence", "stops", "no_evidence"))
    del finding["properties"]["shown_by"]
    finding["properties"] |= {"owner": {"enum": list(OWNERS)}}
    finding["properties"] |= {"count": COUNT, "members": _list_of(schema_of_struct(Member))}
    return _describe_keys(finding, FINDING_KEYS)


def _schema_of_header() -> Json:
    ranges = schema_of_struct(RecordHeader)
    own = {"schema": {"const": RECORD_SCHEMA}, "netprobe_version": _TEXT}
    return {**ranges, "properties": {**own, **ranges["properties"]}, "required": ["schema"]}


def _leave_out_null(kind: type, names: Iterable[str] | None = None) -> Json:
    """Give the schema of a Struct, of which these fields (else: all) are left out when null."""
    schema = schema_of_struct(kind)
    for name in list(schema["properties"]) if names is None else names:
        choices = schema["properties"][name].get("anyOf", ())
        kept = [one for one in choices if one != {"type": "null"}]
        if len(kept) == 1:
            schema["properties"][name] = kept[0]
    return schema


def _describe_keys(schema: Json, words: Mapping[str, str]) -> Json:
    """Add what each key means to the schema of an object."""
    for key, body in schema["properties"].items():
        if key in words:
            schema["properties"][key] = {**body, "description": words[key]}
    return schema


def _refer_to(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _list_of(item: Json) -> Json:
    return {"type": "array", "items": item}


def _make_counts(keys: Iterable[str]) -> Json:
    counts = make_object(dict.fromkeys(keys, COUNT))
    counts["required"] = [key for key in counts["required"] if key not in _LATER_COUNTS]
    return counts


def make_object(properties: Json) -> Json:
    """Give the schema of an object that has all of these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}
