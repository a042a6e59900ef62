"""Every file that netprobe writes names hosts and addresses: a new one is for its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from netprobe.batch.engine_folder import ENGINE_FILE
from netprobe.cli.options import DIFF_FORMATS, MATRIX_FORMATS, REQUEST_FORMATS, RUN_FORMATS
from netprobe.judge.findings import fold
from netprobe.report.record.evidence import open_folder
from netprobe.report.record.record import RecordWriter, header_of
from tests.foreign import documents
from tests.foreign.world import UNDOS, run_command, store_plan, store_report
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED
from tests.report.test_evidence import flows


@pytest.fixture(params=[0o000, 0o077], ids=["open", "closed"])
def folder(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder with a report, a matrix and an inventory, in a process with some umask."""
    monkeypatch.chdir(tmp_path)
    store_report(tmp_path, documents.report_document())
    store_plan(tmp_path, documents.plan_documents())
    before = os.umask(request.param)
    yield tmp_path
    os.umask(before)


PLANNED = ("-m", "./matrix.yaml", "-i", "inventory.yaml")
VERBS = {
    "report": (("report", "f"), RUN_FORMATS),
    "redacted": (("report", "f", "--redact"), RUN_FORMATS),
    "diff": (("diff", "f", "f"), DIFF_FORMATS),
    "request": (("request", "f"), REQUEST_FORMATS),
    "plan": (("plan", *PLANNED), ("text", "json")),
    "matrix": (("matrix", "show", "./matrix.yaml"), MATRIX_FORMATS),
}


def modes_of(folder: Path) -> dict[str, int]:
    return {one.name: one.stat().st_mode & 0o777 for one in folder.rglob("*") if one.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_outputs_are_private_whatever_the_umask(folder: Path, verb: str) -> None:
    """Of all formats alike; a file that was there keeps its rights."""
    words, formats = VERBS[verb]
    (folder / "out").mkdir()
    old = (*formats[1::2], formats[0])
    for name in old:
        (folder / "out" / f"{name}-old").touch()
        (folder / "out" / f"{name}-old").chmod(0o644)
    files = {name: name for name in formats} | {f"{name}-old": name for name in old}
    outputs = [word for file, name in files.items() for word in ("-o", f"{name}=out/{file}")]
    status, _, err = run_command(*words, *outputs)

    assert status in (0, 1, 3), err
    expected = {file: 0o644 if file.endswith("-old") else 0o600 for file in files}
    assert modes_of(folder / "out") == expected


def test_undos_are_private(folder: Path) -> None:
    """They name the same hosts as the rules."""
    (folder / "out").mkdir()
    undos = [word for name in UNDOS for word in ("--undo", f"{name}=out/{name}")]
    assert run_command("request", "f", *undos, "-o", "csv=out/new")[0] == 0

    assert set(modes_of(folder / "out").values()) == {0o600}


def test_records_and_packets_are_private(folder: Path) -> None:
    """While they are written too: a record grows for as long as the run takes."""
    writer = RecordWriter("record", header_of(PLAN, "2026-11-20T10:00:00Z"))
    assert (folder / "record").stat().st_mode & 0o777 == 0o600
    writer.close(None)
    evidence = open_folder("packets")
    evidence.keep(flows())
    evidence.write_files(fold([BLOCKED]), ())

    assert modes_of(folder / "packets") == {"finding-01.pcapng": 0o600}
    assert (folder / "packets").stat().st_mode & 0o077 == 0


def test_bundles_are_private(folder: Path) -> None:
    """As a file, and as a folder for an engine."""
    assert run_command("bundle", *PLANNED, "--no-listen", "-o", "run.pyz")[0] == 0
    assert run_command("bundle", *PLANNED, "--folder", "run")[0] == 0

    assert (folder / "run.pyz").stat().st_mode & 0o777 == 0o600
    assert ENGINE_FILE in modes_of(folder / "run")
    assert set(modes_of(folder / "run").values()) == {0o600}
    assert {one.stat().st_mode & 0o077 for one in (folder / "run").rglob("*")} == {0}
