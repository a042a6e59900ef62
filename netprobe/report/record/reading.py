"""Reads what an earlier run left, record or JSON, as the report it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import NoReturn

from netprobe.errors import FileErrors, Problem
from netprobe.files import MIB, open_file
from netprobe.model.codec import REQUEST_SCHEMA, RUN_SCHEMA, result_from_json, rules_from_json
from netprobe.model.dataclass_json import Json, WrongValue
from netprobe.model.firewall import FirewallRule
from netprobe.model.result import Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Collector, collect
from netprobe.report.record.contradictions import Contradictions
from netprobe.report.record.json_document import JsonPart, WrongDocument, walk_document
from netprobe.report.record.record import (
    EXPECTED,
    FLOW_KEYS,
    Earlier,
    is_record,
    read_info,
    read_record,
    word_schema,
)

RESULTS = "results"
_KEPT = {"schema", "rules", RESULTS, *(field.name for field in fields(RunInfo))}
# Hosts, notes and what is skipped: a thousand hosts take some 2 MiB.
MAX_OWN_CHARACTERS = 12 * MIB
# An empty list takes as much memory as a text of this length.
PART_CHARACTERS = 32


def read_earlier(path: str, *, requests: bool = False) -> Earlier:
    """Read a record or a JSON report, where ``requests`` are taken also a firewall request.

    Raises FileErrors where the file is none of them.
    """
    if is_record(path):
        return read_record(path)
    keys = _read_own_keys(path, (RUN_SCHEMA, REQUEST_SCHEMA) if requests else (RUN_SCHEMA,))
    info = read_info(path, keys)
    rules = _read_rules(path, keys) if keys["schema"] == REQUEST_SCHEMA else None
    # Neighbours are merged already: there are no ranges to merge within.
    return Earlier(path, False, info, {}, partial(_read_results, path, info), rules)


def _read_rules(path: str, keys: Json) -> tuple[FirewallRule, ...]:
    try:
        return rules_from_json(keys)
    except WrongValue as error:
        raise FileErrors([Problem(path, 0, 0, f"is no request ({error})")]) from None


def read_run(path: str) -> tuple[RunInfo, Collector]:
    """Read an earlier run for a report. Raises FileErrors where the file holds none."""
    earlier = read_earlier(path)
    return earlier.info, collect(earlier.read_results(), earlier.ranges)


@contextmanager
def _parts_of(path: str) -> Iterator[Iterator[JsonPart]]:
    """Walk through a JSON report; what is wrong with the file becomes FileErrors."""
    try:
        with open_file(path, EXPECTED) as stream:
            yield walk_document(stream)
    except WrongDocument as error:
        words = f"{error}, expected {EXPECTED}"
        raise FileErrors([Problem(path, error.line, error.column, words)]) from None


def _read_own_keys(path: str, schemas: Sequence[str]) -> Json:
    """Read the keys of a run beside its results; all of the file is parsed."""
    found: Json = {}
    with _parts_of(path) as parts:
        for part in _check_results(path, parts):
            if part.number:
                found[part.key].append(part.value)
            else:
                found[part.key] = part.value
    schema = found.get("schema")
    if schema not in schemas:
        expected = f"{EXPECTED}, or a request ({REQUEST_SCHEMA})" if len(schemas) > 1 else EXPECTED
        raise FileErrors([Problem(path, 1, 1, f"{word_schema(schema)}, expected {expected}")])
    if found.get(RESULTS) != []:
        words = f'the key "{RESULTS}" is missing or no list, expected those of {RUN_SCHEMA}'
        raise FileErrors([Problem(path, 0, 0, words)])
    return found


def _check_results(path: str, parts: Iterable[JsonPart]) -> Iterator[JsonPart]:
    """Pass on the parts that a run keeps, up to a limit, and look only briefly at each result."""
    characters = 0
    for part in parts:
        if part.key == RESULTS and part.number:
            if not isinstance(part.value, dict):
                _refuse_result(path, part, WrongValue("no JSON object, expected a result"))
        elif part.key in _KEPT:
            characters += part.characters + PART_CHARACTERS
            if characters > MAX_OWN_CHARACTERS:
                words = f"has more than {MAX_OWN_CHARACTERS // MIB} MiB beside its results"
                raise FileErrors([Problem(path, 0, 0, f"{words}, expected {EXPECTED}")])
            yield part


def _read_results(path: str, info: RunInfo) -> Iterator[Result]:
    """The file is in plan order; a flow's place is that of its first appearance."""
    places: dict[tuple[str, ...], int] = {}
    contradictions = Contradictions(info)
    with _parts_of(path) as parts:
        for part in parts:
            if part.key == RESULTS and part.number:
                yield _read_result(path, part, places, contradictions)


def _read_result(
    path: str, part: JsonPart, places: dict[tuple[str, ...], int], contradictions: Contradictions
) -> Result:
    flow = tuple(str(part.value.get(name)) for name in FLOW_KEYS)
    try:
        result = result_from_json(part.value, (places.setdefault(flow, len(places)), 0, 0))
        contradictions.check(result)
    except WrongValue as error:
        _refuse_result(path, part, error)
    return result


def _refuse_result(path: str, part: JsonPart, error: WrongValue) -> NoReturn:
    error.add_step(f"{RESULTS}[{part.number - 1}]")
    raise FileErrors([Problem(path, part.line, 1, str(error))]) from None
