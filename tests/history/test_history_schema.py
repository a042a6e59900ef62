"""The JSON Schema of a history: fresh, and in agreement with what is written."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs
from msgspec.structs import replace

from netprobe.history.outages import replay
from netprobe.model.outage import RouteMark
from netprobe.model.ports import Ports
from netprobe.model.result import PORTLESS
from netprobe.report.verbs.history import write_history_json
from netprobe.report.verbs.history_schema import history_schema_text
from tests.history.test_outages import ECHO, REJECT, TCP, bad, look

FILE = Path(__file__).parents[2] / "schemas" / "history.schema.json"
SCHEMA = json.loads(history_schema_text())
BLIND: dict[Any, Ports] = {TCP: ((1, 4),)}


def document() -> Any:
    """A history with every key: an open outage, one that ended, a blind host, and a mark."""
    drop = bad({TCP: ((5, 9), (12, 12))})
    mark = RouteMark("next-hop", "a", ("b",), 5, 8, "10.0.0.1", "10.0.0.2")
    looks = [
        look(5, blind=BLIND), replace(look(10, drop), marks=(mark,)), look(20),
        look(30, bad({ECHO: PORTLESS}, REJECT), blind=BLIND),
    ]  # fmt: skip
    stream = io.StringIO()
    write_history_json(replay(looks), stream)
    return json.loads(stream.getvalue())


def test_checked_in_schema_of_histories_is_fresh() -> None:
    """The file under ``schemas/`` is what ``netprobe schema history`` prints."""
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        FILE.write_text(history_schema_text(), encoding="utf-8")

    Draft202012Validator.check_schema(SCHEMA)
    assert FILE.read_text(encoding="utf-8") == history_schema_text(), "make docs"


def test_a_history_fits() -> None:
    """What is written satisfies the schema, and has no key that the schema does not name."""
    stream = io.StringIO()
    write_history_json(replay([]), stream)
    closed = Draft202012Validator(close_objects(SCHEMA))

    for value in (document(), json.loads(stream.getvalue())):
        assert [error.message for error in closed.iter_errors(value)] == []


def close_objects(part: Any) -> Any:
    """The schema, with every object closed for keys that it does not name."""
    if isinstance(part, list):
        return [close_objects(one) for one in part]
    if not isinstance(part, dict):
        return part
    inner = {key: close_objects(value) for key, value in part.items()}
    return {**inner, "additionalProperties": False} if part.get("type") == "object" else inner


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "netprobe.history/2"},
        {"outages": None},
        {"begin": "2026-11-20 10:00"},
        {"marks": [{"kind": "mood"}]},
        {"blind": [{"host": "a"}]},
        {"outages": [{**document()["outages"][0], "first_bad": None}]},
    ],
)
def test_what_is_no_history_does_not_fit(change: dict[str, Any]) -> None:
    """A value of another type, and a key that is missing, are found."""
    assert list(Draft202012Validator(SCHEMA).iter_errors({**document(), **change}))
