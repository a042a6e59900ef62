"""What both ends and all files of a version agree on: who changes it raises its number.

tests/golden/formats.txt has a line for each number that there ever was, with a digest of what it
stands for. ``make golden`` adds a line for a new number, and changes none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire import batch, batch_pages, failures, frames
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.agent.wire.result_lines import MAC_LENGTH, RESULT_PREFIX
from netprobe.batch.request import REQUEST_FORMAT, write_request
from netprobe.batch.run_values import RunValues
from netprobe.batch.script import KEY_BYTES
from netprobe.model.inventory import Host
from netprobe.model.plan import PlannedMatrix, PlannedRequirement, Skipped
from netprobe.model.struct_json import schema_of_struct
from pages.wire import BATCH, PAGES, parts, print_fields
from tests.batch.world import plan_of, request_of

PATH = Path(__file__).parents[1] / "golden" / "formats.txt"
LIVE: Mapping[str, Any] = {**ORDERS, **ANSWERS}


def list_wire() -> Iterable[str]:
    """Every message and part that live ends say, and the failures that they name."""
    yield from print_fields([*LIVE.values(), *parts(LIVE)])
    yield from failures.FAILURES


def list_batch() -> Iterable[str]:
    """What stands in scripts and results beside these messages."""
    live = parts(LIVE)
    yield from print_fields([*BATCH.values(), *(one for one in parts(BATCH) if one not in live)])
    yield from (*batch.PHASES, *batch.BARRIERS, batch.FOLDER_NAME, batch.STARTED_LINE)
    yield from (batch.RESULTS_FILE, batch.WORDS_FILE, batch.STARTED_FILE, batch.PID_FILE)
    yield from (RESULT_PREFIX, str(MAC_LENGTH), str(KEY_BYTES))


def list_pages() -> Iterable[str]:
    """What a page has beside them; who packs it and who reads it have one dictionary."""
    yield from print_fields(PAGES.values())
    yield from (batch_pages.PAGE_PREFIX, str(batch_pages.PAGE_MAC_LENGTH))
    yield batch_pages.DICTIONARY.decode("ascii")


def list_request() -> Iterable[str]:
    """The keys of a stored run, and the types of what is under them."""
    document = json.loads(write_request(request_of(plan_of(("web", "tcp", ((80, 80),))))))
    yield from _list_keys(document)
    for kind in (RunValues, Host, PlannedMatrix, PlannedRequirement, Skipped):
        yield json.dumps(_without_words(schema_of_struct(kind)), sort_keys=True)


def _list_keys(value: Any, path: str = "") -> Iterable[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield f"{path}.{key}"
            yield from _list_keys(inside, f"{path}.{key}" if path not in (".hosts",) else path)
    elif isinstance(value, list) and value:
        yield from _list_keys(value[0], f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"


def _without_words(schema: Any) -> Any:
    """A schema without descriptions, which may be put better."""
    if isinstance(schema, dict):
        return {key: _without_words(one) for key, one in schema.items() if key != "description"}
    return [_without_words(one) for one in schema] if isinstance(schema, list) else schema


FORMATS = {
    "WIRE_VERSION": (frames.WIRE_VERSION, list_wire),
    "PAGE_FORMAT": (batch_pages.PAGE_FORMAT, list_pages),
    "BATCH_FORMAT": (batch.BATCH_FORMAT, list_batch),
    "REQUEST_FORMAT": (REQUEST_FORMAT, list_request),
}


@pytest.mark.parametrize("name", FORMATS)
def test_who_changes_a_format_raises_its_number(name: str) -> None:
    """The digest of a format is the one that its number has always had."""
    number, lines = FORMATS[name]
    digest = hashlib.sha256("\n".join(lines()).encode()).hexdigest()[:16]
    known = dict(line.rsplit(" ", 1) for line in PATH.read_text("ascii").splitlines())
    key = f"{name} {number}"
    if os.environ.get("NETPROBE_REWRITE") == "golden" and key not in known:
        with PATH.open("a", encoding="ascii") as file:
            file.write(f"{key} {digest}\n")
        known[key] = digest
    assert key in known, f"{name} is new: `make golden` adds it to {PATH.name}"
    assert known[key] == digest, (
        f"what {name} {number} stands for has changed ({known[key]} before, {digest} now): raise "
        f"{name}, then `make golden` adds the new number to {PATH.name}. Change no line there: "
        "programs and files with the old number are in use"
    )
