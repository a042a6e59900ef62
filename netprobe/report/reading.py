"""Reads what an earlier run left, record or JSON, as the report it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from netprobe.errors import FileErrors, Problem
from netprobe.model.codec import RECORD_SCHEMA, RUN_SCHEMA, result_from_json
from netprobe.model.dataclass_json import Json
from netprobe.model.result import Result
from netprobe.model.run import RunInfo
from netprobe.report.collector import Collector, collect
from netprobe.report.record import FLOW_KEYS, Earlier, read_info, read_record


def read_earlier(path: str) -> Earlier:
    """Read a record or a JSON report. Raises FileErrors where the file is neither."""
    if _is_record(path):
        return read_record(path)
    data = _read_document(path)
    results = partial(_read_results, path, data.get("results", ()))
    # Neighbours are merged already: there are no ranges to merge within.
    return Earlier(path, False, read_info(path, data), {}, results)


def read_run(path: str) -> tuple[RunInfo, Collector]:
    """Read an earlier run for a report. Raises FileErrors where the file holds none."""
    earlier = read_earlier(path)
    return earlier.info, collect(earlier.read_results(), earlier.ranges)


def _is_record(path: str) -> bool:
    """Tell whether the first line is the header of a record."""
    try:
        with Path(path).open("rb") as file:
            first = json.loads(file.readline())
    except OSError as error:
        raise FileErrors([Problem(path, 0, 0, f"cannot be read: {error.strerror}")]) from error
    except ValueError:
        return False
    return isinstance(first, dict) and str(first.get("schema", "")).startswith("netprobe.record/")


def _read_document(path: str) -> Json:
    try:
        data = json.loads(Path(path).read_bytes())
    except json.JSONDecodeError as error:
        words = f"{error.msg}, expected JSON ({RUN_SCHEMA}) or a record ({RECORD_SCHEMA})"
        raise FileErrors([Problem(path, error.lineno, error.colno, words)]) from error
    except UnicodeDecodeError as error:
        raise FileErrors([Problem(path, 0, 0, "is not UTF-8, expected JSON")]) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != RUN_SCHEMA:
        words = f"schema is {schema!r}, expected {RUN_SCHEMA!r} or {RECORD_SCHEMA!r}"
        raise FileErrors([Problem(path, 1, 1, words)])
    return dict(data)


def _read_results(path: str, items: Iterable[Mapping[str, Any]]) -> Iterator[Result]:
    """The file is in plan order; a flow's place is that of its first appearance."""
    places: dict[tuple[Any, ...], int] = {}
    for number, item in enumerate(items, 1):
        try:
            key = tuple(item[name] for name in FLOW_KEYS)
            place = places.setdefault(key, len(places))
            yield result_from_json(item, (place, 0, 0))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            words = f"element {number} of results is no result ({error!r})"
            raise FileErrors([Problem(path, 0, 0, words)]) from error
