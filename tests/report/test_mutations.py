"""Odd values at any key of a record or a JSON report: one line that says where, no traceback."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from netprobe.cli.asked import DiffOptions, ReportOptions
from netprobe.cli.report import diff_verb, report_verb
from netprobe.errors import RequestError
from netprobe.model.accepted import CheckedAcceptance
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.earlier import TakeOver, done_ports
from netprobe.report.record.record import RecordWriter, header_of, read_earlier
from netprobe.report.run.json import write_json
from tests.judge.test_accepted import ENTRY
from tests.mutations import damaged, json_of, mutated
from tests.report.plans import PLAN
from tests.report.samples import everything

SEED = 20261122


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good record ``good`` and a good JSON report ``good.json``."""
    monkeypatch.chdir(tmp_path)
    whole = _with_marks(everything())
    writer = RecordWriter("good", header_of(PLAN, "2026-11-20T10:00:00Z"))
    for result in whole.collector.results():
        writer.add(result)
    writer.close(whole.info)
    with Path("good.json").open("w") as stream:
        write_json(whole, stream)
    return tmp_path


def _with_marks(report: Report) -> Report:
    """The report, with failures that somebody accepted and that a baseline has."""
    entry = CheckedAcceptance(**asdict(ENTRY), state="active", flows=2)
    marks: dict[str, Any] = {"accepted": entry.signature, "known": "base.json"}
    results = [
        replace(one, **marks) if one.requirement == "etcd" and one.verdict != "pass" else one
        for one in report.collector.results()
    ]
    return replace(report, collector=collect(results), info=replace(report.info, accepted=(entry,)))


def mutated_record(chance: random.Random) -> bytes:
    """A record with an odd value in some line, or without some line."""
    lines = mutated([json.loads(line) for line in Path("good").read_bytes().splitlines()], chance)
    texts = [json.dumps(line, separators=(",", ":")) for line in lines]
    return damaged("".join(f"{text}\n" for text in texts), chance)


def mutated_report(chance: random.Random) -> bytes:
    """A JSON report with an odd value somewhere."""
    return json_of(mutated(json.loads(Path("good.json").read_bytes()), chance), chance)


def outcome_of(verb: Callable[[], object]) -> str:
    """What a command says about the file ``f``: the line that refuses it, or nothing."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            verb()
    except RequestError as error:
        return str(error)
    text = out.getvalue()
    text.encode()
    assert text.replace("\n", "").isprintable()
    return ""


REPORT = ReportOptions(
    file="f", accepted=(), max_acceptance="365d", redact=False, title="",
    outputs=("text", "wide=wide", "json=json"),
)  # fmt: skip
WAYS: tuple[Callable[[], object], ...] = (
    lambda: report_verb(REPORT),
    lambda: diff_verb(DiffOptions(old="f", new="good", outputs=())),
    lambda: diff_verb(DiffOptions(old="good.json", new="f", outputs=())),
    lambda: done_ports(TakeOver("--resume", read_earlier("f")).kept(PLAN)),
    lambda: TakeOver("--retry", read_earlier("f")).fates(),
)


def refusal_of(raw: bytes) -> str:
    """Read a file as ``report``, ``diff`` and ``--resume`` do, up to the first that refuses it."""
    Path("f").write_bytes(raw)
    return next(filter(None, map(outcome_of, WAYS)), "")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mutated_record, mutated_report])
@pytest.mark.parametrize(
    "count",
    [60, pytest.param(150, marks=pytest.mark.full), pytest.param(5000, marks=pytest.mark.full)],
)
def test_odd_values(kind: Callable[[random.Random], bytes], count: int, folder: Path) -> None:
    """Each such file is reported, or refused in one printable line with its name."""
    chance = random.Random(SEED + count)
    refused = list(filter(None, (refusal_of(kind(chance)) for _ in range(count))))

    assert count / 2 < len(refused) < count
    for line in refused:
        assert line.isprintable(), line
        assert line.startswith(("f:", "--resume f: that run is of ")), line


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"results": [{"port": 1}]}, 'f:1:1: results[0]: the key "matrix" is missing'),
        ({"hosts": [{"name": "a", "state": "up"}]}, "is no report of a run (hosts[0].state: 'up'"),
        ({"matrices": [{"name": "m", "settings": {"a": [1]}}]}, "matrices[0].settings.a[0]: a who"),
        ({"elapsed_s": 1e300}, "elapsed_s: a number that is too large, expected one below 2**53"),
        ({"planned_flows": 10**400}, "planned_flows: a number that is too large"),
        ({"hosts": [{"name": "a", "state": "agent", "facts": {"x": [[]] * 3}}]}, None),
        ({"brand": {"new": "key"}}, None),
    ],
)  # fmt: skip
def test_the_key_is_named(change: dict[str, object], problem: str | None, folder: Path) -> None:
    """The line names the keys that lead to the value; what a newer version adds is no problem."""
    data = {**json.loads(Path("good.json").read_bytes()), **change}
    Path("f").write_bytes(json.dumps(data).encode())
    lines = list(map(outcome_of, WAYS))

    assert all((problem in line) if problem else not line for line in lines), lines
