"""The record of a run (``netprobe.record/1``, JSON Lines): written as results become final; read.

First line: the header. Then one line a result. Last line: ``{"end": ...}``, which a crash leaves
out. A last line that a crash tore is not read; everything before it is. A JSON report is read as
the run that it was, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from itertools import chain, count
from typing import Any, NoReturn

from msgspec import Struct

import netprobe
from netprobe.errors import FileErrors, NetprobeError, Problem
from netprobe.files import MIB, is_special, open_file, replacing
from netprobe.model.codec import (
    RECORD_SCHEMA,
    REQUEST_SCHEMA,
    RUN_SCHEMA,
    header_from_json,
    info_from_json,
    info_to_json,
    result_from_json,
    result_to_json,
    rules_from_json,
)
from netprobe.model.firewall import FirewallRule
from netprobe.model.json_text import MAX_CHARACTERS, WrongJson, parse_json
from netprobe.model.plan import Plan
from netprobe.model.ports import normalise
from netprobe.model.result import Result
from netprobe.model.run import RunInfo, info_before
from netprobe.model.struct_json import Json, WrongValue
from netprobe.report.record.changes import FLOW_KEYS
from netprobe.report.record.collector import Collector, collect
from netprobe.report.record.contradictions import Contradictions, check_unprobed
from netprobe.report.record.json_document import JsonPart, WrongDocument, walk_document
from netprobe.report.record.merge import PlannedPorts, ranges_of

EXPECTED = f"a JSON report ({RUN_SCHEMA}) or a record ({RECORD_SCHEMA})"


class RecordWriter:
    """A sink that writes every result at once, so that a crash loses nothing that was measured.

    The file takes its name only with its header in it. With ``kept`` results of an earlier record
    these are in it too before the name changes hands: the old record is whole, or the new one is.
    Raises NetprobeError where the file cannot be made. A disk that fills up later does not stop the
    run: ``problem`` then holds one line for the user, and nothing more is written.
    """

    def __init__(self, path: str, header: Json, kept: Iterable[Result] = ()) -> None:
        self.path = path
        self.problem: str | None = None
        try:
            self._file = _create_file(path, chain([_to_line(header)], map(_result_line, kept)))
        except OSError as error:
            raise NetprobeError(self._word_error(error)) from error

    def add(self, result: Result) -> None:
        """Write one result and hand it to the kernel."""
        self._write_line(_result_line(result))

    def close(self, info: RunInfo | None) -> None:
        """Write the last line, unless the run did not come to one, and see all on the disk."""
        if info is not None:
            self._write_line(_to_line({"end": info_to_json(info)}))
        with suppress(OSError):  # a pipe or a device has nothing to sync
            os.fsync(self._file.fileno())
        self._file.close()

    def _write_line(self, line: bytes) -> None:
        if self.problem is None:
            try:
                _write_all(self._file, line)
            except OSError as error:
                self.problem = self._word_error(error)

    def _word_error(self, error: OSError) -> str:
        return f"cannot write the record {self.path}: {error.strerror or error}"


def header_of(plan: Plan, started_at: str, *, live: bool | None = None) -> Json:
    """Give the first line of a record: the plan that is about to run."""
    ranges = ranges_of(plan)
    return {
        "schema": RECORD_SCHEMA,
        "netprobe_version": netprobe.__version__,
        **info_to_json(info_before(plan, started_at, live=live)),
        "ranges": [
            [*key, [list(part) for part in ports]] for key, ports in ranges.items() if ports
        ],
    }


def make_record(header: Json, results: Iterable[Result], info: RunInfo) -> bytes:
    """Make the record of a run that came to its end."""
    last = _to_line({"end": info_to_json(info)})
    return b"".join(chain([_to_line(header)], map(_result_line, results), [last]))


def _create_file(path: str, lines: Iterable[bytes]) -> FileIO:
    """Open the file with these lines in it, under its name only when they are all there."""
    if is_special(path):
        return _begin_file(path, lines)
    with replacing(path) as temporary:
        return _begin_file(temporary, lines)


def _begin_file(path: str, lines: Iterable[bytes]) -> FileIO:
    file = open(path, "wb", buffering=0)  # noqa: SIM115 (open as long as the run)
    try:
        for line in lines:
            _write_all(file, line)
    except OSError:
        file.close()
        raise
    return file


def _write_all(file: FileIO, line: bytes) -> None:
    """Write all bytes: on a nearly full disk one write may take a part, and the next fails."""
    rest = memoryview(line)
    while rest:
        rest = rest[file.write(rest) :]


def _to_line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


def _result_line(result: Result) -> bytes:
    return _to_line({"order": list(result.order), **result_to_json(result)})


class Earlier(Struct, frozen=True):
    """An earlier run, read from a record or from a JSON report.

    ``read_results`` reads them anew at every call, those of a record never all into memory.
    ``info`` of a record is its last line, or its header where a crash left no last line.
    ``rules`` are those of a firewall request: its results are the flows that it asks for. None
    for the file of a run.
    """

    path: str
    is_record: bool
    info: RunInfo
    ranges: PlannedPorts
    read_results: Callable[[], Iterator[Result]]
    rules: tuple[FirewallRule, ...] | None = None


def is_record(path: str) -> bool:
    """Tell whether the first line is the header of a record. Raises FileErrors."""
    with suppress(WrongJson):
        first = parse_json(next(_lines_of(path), b""))
        return isinstance(first, dict) and _is_record_schema(first.get("schema"))
    return False


def _is_record_schema(schema: object) -> bool:
    return isinstance(schema, str) and schema.startswith("netprobe.record/")


def read_record(path: str) -> Earlier:
    """Read header and end of a record. Raises FileErrors where it is none."""
    header: Json = {}
    last: Json | None = None
    for number, line in enumerate(_lines_of(path), 1):
        if number == 1:
            header = _parse_line(path, number, line) or {}
        elif line.startswith(b'{"end":'):
            last = _parse_line(path, number, line)
    if header.get("schema") != RECORD_SCHEMA:
        words = f"{word_schema(header.get('schema'))}, expected {EXPECTED}"
        raise FileErrors([Problem(path, 1, 1, words)])
    end = last.get("end") if last else None
    info = read_info(path, end if isinstance(end, dict) else header)
    try:
        ranges = header_from_json(header).ranges
    except WrongValue as error:
        raise FileErrors([Problem(path, 1, 1, str(error))]) from None
    by_key = {
        (matrix, name, protocol): normalise(ports) for matrix, name, protocol, ports in ranges
    }
    return Earlier(path, True, info, by_key, partial(_read_results, path, info))


def _read_results(path: str, info: RunInfo) -> Iterator[Result]:
    contradictions = Contradictions(info)
    for number, line in enumerate(_lines_of(path), 1):
        data = None if number == 1 else _parse_line(path, number, line)
        if data is not None and "end" not in data:
            yield _read_result(path, number, data, contradictions)


def read_info(path: str, data: Json) -> RunInfo:
    """Read a run's own keys in this file. Raises FileErrors where a value is of another type."""
    try:
        info = info_from_json(data)
        check_unprobed(info)
    except WrongValue as error:
        raise FileErrors([Problem(path, 0, 0, f"is no report of a run ({error})")]) from None
    return info


def word_schema(schema: object) -> str:
    """Begin the sentence about a file whose ``schema`` is another one, or none."""
    if isinstance(schema, str):
        return f"schema is {schema[:60]!r}"
    return "is no report of netprobe"


def _lines_of(path: str) -> Iterator[bytes]:
    """Every line that ends in a newline; a torn last line is one that a crash did not finish."""
    with open_file(path, EXPECTED) as stream:
        for number in count(1):
            line = stream.readline(MAX_CHARACTERS + 1)
            if len(line) > MAX_CHARACTERS:
                words = f"longer than {MAX_CHARACTERS // MIB} MiB, expected a line of a record"
                raise FileErrors([Problem(path, number, 1, words)])
            if not line.endswith(b"\n"):
                return
            yield line


def _parse_line(path: str, number: int, line: bytes) -> Json | None:
    """Parse a line's object, None for a blank line."""
    if not line.strip():
        return None
    try:
        data = parse_json(line)
    except WrongJson as error:
        problem = Problem(path, number, error.place + 1, f"{error}, expected a line of a record")
        raise FileErrors([problem]) from None
    if not isinstance(data, dict):
        raise FileErrors([Problem(path, number, 1, "is no JSON object, expected a result")])
    return data


def _read_result(path: str, number: int, data: Json, contradictions: Contradictions) -> Result:
    try:
        result = result_from_json(data, data.get("order"))
        contradictions.check(result)
    except WrongValue as error:
        words = f"is no result, expected the keys of {RECORD_SCHEMA} ({error})"
        raise FileErrors([Problem(path, number, 1, words)]) from None
    return result


RESULTS = "results"
_KEPT = {"schema", "rules", RESULTS, *RunInfo.__struct_fields__}
# Hosts, notes and what is skipped: a thousand hosts take some 2 MiB.
MAX_OWN_CHARACTERS = 12 * MIB
# A file with larger findings is read as one that keeps no numbers.
FINDINGS = "findings"
MAX_FINDINGS_CHARACTERS = MAX_OWN_CHARACTERS
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
    return Earlier(path, False, info, {}, partial(_read_listed, path, info), rules)


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
    size = 0
    with _parts_of(path) as parts:
        for part in _check_results(path, parts):
            size += part.characters if part.key == FINDINGS else 0
            if part.key == FINDINGS and size > MAX_FINDINGS_CHARACTERS:
                found[FINDINGS] = None
            elif part.number:
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
        elif part.key == FINDINGS:
            yield part
        elif part.key in _KEPT:
            characters += part.characters + PART_CHARACTERS
            if characters > MAX_OWN_CHARACTERS:
                words = f"has more than {MAX_OWN_CHARACTERS // MIB} MiB beside its results"
                raise FileErrors([Problem(path, 0, 0, f"{words}, expected {EXPECTED}")])
            yield part


def _read_listed(path: str, info: RunInfo) -> Iterator[Result]:
    """The file is in plan order; a flow's place is that of its first appearance."""
    places: dict[tuple[str, ...], int] = {}
    contradictions = Contradictions(info)
    with _parts_of(path) as parts:
        for part in parts:
            if part.key == RESULTS and part.number:
                yield _read_element(path, part, places, contradictions)


def _read_element(
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
