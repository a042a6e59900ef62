"""The JSON Schema of results and record: fresh, and in agreement with what is written and read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs
from msgspec.structs import asdict, replace

from netprobe.judge.findings import fold
from netprobe.model.accepted import CheckedAcceptance
from netprobe.model.codec import info_to_json, keep_findings, result_to_json
from netprobe.report.record.changes import Changes
from netprobe.report.record.record import RecordWriter, header_of, read_run
from netprobe.report.run.key_words import FINDING_KEYS, OVERVIEW_KEYS, RESULT_KEYS, RUN_KEYS
from netprobe.report.run.schema import run_schema_text
from tests.judge.test_accepted import ENTRY
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, PASSED, everything
from tests.report.test_json_run import document

FILE = Path(__file__).parents[2] / "schemas" / "run.schema.json"
SCHEMA = json.loads(run_schema_text())
MTU = replace(BLOCKED, path_mtu_bytes=1400, needed_mtu_bytes=1500, holder="nginx (pid 5)")
MARKED = replace(BLOCKED, accepted=ENTRY.signature, known="base.json")


def documents(folder: Path) -> Iterator[Any]:
    """A JSON report with every key, and the lines of a record."""
    whole = replace(everything(), changes=Changes())
    entry = CheckedAcceptance(**asdict(ENTRY), state="stale", days_left=3)
    yield document(replace(whole, info=replace(whole.info, accepted=(entry,))))
    writer = RecordWriter(str(folder / "r"), header_of(PLAN, "now"))
    for result in (PASSED, MTU, MARKED):
        writer.add(result)
    writer.close(replace(whole.info, findings=keep_findings(fold([BLOCKED]))))
    yield from map(json.loads, (folder / "r").read_text().splitlines())


def test_checked_in_schema_is_fresh() -> None:
    """The file under ``schemas/`` is what ``netprobe schema run`` prints."""
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        FILE.write_text(run_schema_text(), encoding="utf-8")

    Draft202012Validator.check_schema(SCHEMA)
    assert FILE.read_text(encoding="utf-8") == run_schema_text(), "make docs"


def test_every_key_has_its_words() -> None:
    """Each key of a run, a result, a finding and the summary is described, and no other is."""
    parts = SCHEMA["$defs"]
    run = parts["info"]["properties"] | parts["run"]["properties"]

    assert run.keys() == RUN_KEYS.keys()
    assert run["overview"]["properties"].keys() == OVERVIEW_KEYS.keys()
    assert parts["result"]["properties"].keys() == RESULT_KEYS.keys()
    assert parts["finding"]["properties"].keys() == FINDING_KEYS.keys()
    assert {body["description"] for body in run.values()} == set(RUN_KEYS.values())


def test_what_is_written_fits(tmp_path: Path) -> None:
    """Every document satisfies the schema, and has no key that the schema does not name."""
    closed = _close_objects(SCHEMA)
    some = list(documents(tmp_path))

    assert len(some) == 6
    for value in some:
        assert [error.message for error in Draft202012Validator(closed).iter_errors(value)] == []


def _close_objects(part: Any) -> Any:
    """The schema, with every object closed for keys that it does not name."""
    if isinstance(part, list):
        return [_close_objects(one) for one in part]
    if not isinstance(part, dict):
        return part
    inner = {key: _close_objects(value) for key, value in part.items()}
    # What others refer to is closed where they do it, and what a host says of itself is open.
    if "$defs" in inner:
        for name in ("info", "result"):
            inner["$defs"][name].pop("unevaluatedProperties", None)
        inner["$defs"]["run"]["properties"]["results"]["items"]["unevaluatedProperties"] = False
        inner["$defs"]["record_end"]["properties"]["end"]["unevaluatedProperties"] = False
    elif "properties" in inner:
        inner["unevaluatedProperties"] = False
    return inner


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "netprobe.run/2"},
        {"results": None},
        {"started_at": 5},
        {"hosts": [{"name": "a", "state": "asleep"}]},
        {"requirements": [{"matrix": "m", "id": "a", "from": "b", "to": [], "protocol": "tcp"}]},
        {"requirements": [{"matrix": "m", "id": "a", "to": [], "protocol": "tcp"}]},
        {"results": [{**result_to_json(PASSED), "verdict": "fine"}]},
        {"results": [{**result_to_json(PASSED), "port": "6443"}]},
        {"summary": {"pass": 1}},
    ],
)
def test_what_is_no_run_does_not_fit(change: dict[str, Any]) -> None:
    """A value of another type, and a key that is missing, are found."""
    assert list(Draft202012Validator(SCHEMA).iter_errors({**document(), **change}))


def test_files_of_an_older_netprobe(tmp_path: Path) -> None:
    """What knows no roles, zones and requirements fits, and is read with their defaults."""
    old = document()
    del old["requirements"], old["accepted"], old["baseline"]
    del old["summary"]["accepted"], old["summary"]["known"]
    for host in old["hosts"]:
        del host["roles"], host["zone"]
    (tmp_path / "j").write_text(json.dumps(old))
    end = {key: old[key] for key in info_to_json(everything().info) if key in old}
    header = {"schema": "netprobe.record/1", "started_at": "now", "matrices": [], "ranges": []}
    (tmp_path / "r").write_text(f"{json.dumps(header)}\n{json.dumps({'end': end})}\n")

    for value in (old, header, {"end": end}):
        assert list(Draft202012Validator(SCHEMA).iter_errors(value)) == []
    for name in ("j", "r"):
        info, _ = read_run(str(tmp_path / name))
        assert (info.requirements, info.accepted, info.baseline) == ((), (), None)
        assert {(host.roles, host.zone) for host in info.hosts} == {((), None)}
        assert info.hosts[0].addresses == ("10.0.0.10", "fd00::10")
