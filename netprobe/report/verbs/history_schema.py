"""The JSON Schema of ``netprobe.history/1``."""

from __future__ import annotations

import json
from typing import Final, get_args

from netprobe.model.outage import MarkKind
from netprobe.model.result import PROOFS, Place
from netprobe.model.struct_json import Json
from netprobe.report.run.schema import COUNT, make_object
from netprobe.report.verbs.history import HISTORY_SCHEMA, TIMES

_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_TIME: Final[Json] = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$",
}
_TIME_OR_NULL: Final[Json] = {"anyOf": [_TIME, {"type": "null"}]}
_PORT: Final[Json] = {"type": ["integer", "null"], "minimum": 1, "maximum": 65535}


def history_schema_text() -> str:
    """Give the schema as ``netprobe schema history`` prints it."""
    document = {
        "schema": {"const": HISTORY_SCHEMA},
        "netprobe_version": _TEXT,
        "looks": COUNT,
        "begin": _TIME_OR_NULL,
        "end": _TIME_OR_NULL,
        "outages": {"type": "array", "items": make_object(_list_outage_keys())},
        "blind": {
            "type": "array",
            "items": make_object(
                {"host": _TEXT, "reason": _TEXT, "since": _TIME, "until": _TIME_OR_NULL}
            ),
        },
        "marks": _list_marks(),
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:netprobe:schema:history:1",
        "title": "netprobe history",
        "description": f"A {HISTORY_SCHEMA}. Keys may be added.",
        **make_object(document),
    }
    return json.dumps(schema, indent=2) + "\n"


def _list_outage_keys() -> Json:
    ends = ("matrix", "requirement", "source", "destination", "address", "protocol")
    member = {**dict.fromkeys(ends, _TEXT), "port": _PORT, "end_port": _PORT, **_list_times()}
    return {
        "finding": _TEXT,
        "title": _TEXT,
        "requirement": _TEXT,
        "requirements": _TEXTS,
        **_list_times(),
        "looks": COUNT,
        "verdict": {"enum": ["blocked", "exposed"]},
        "reason": _TEXT,
        "proof": {"enum": list(PROOFS)},
        "where": {"type": "array", "items": {"enum": list(get_args(Place))}},
        "rejected_by": {"type": ["string", "null"]},
        "members": {"type": "array", "items": make_object(member)},
        "marks": _list_marks(),
    }


def _list_marks() -> Json:
    mark = {
        "kind": {"enum": list(get_args(MarkKind))},
        "source": _TEXT,
        "destinations": _TEXTS,
        "last_before": _TIME,
        "first_now": _TIME,
        "before": _TEXT,
        "now": _TEXT,
    }
    return {"type": "array", "items": make_object(mark)}


def _list_times() -> Json:
    """Some times may be null: the flow was never seen good before, is not good again, or is still
    required."""
    open_ends = ("last_good", "first_good", "not_required_since")
    return {name: _TIME_OR_NULL if name in open_ends else _TIME for name in TIMES}
