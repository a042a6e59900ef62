"""What every output says of one estate that has everything, when somebody last read it.

``make golden`` rewrites the files; a human reads the diff.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest
from msgspec.structs import replace

import netprobe
from netprobe.model import notes
from netprobe.model.konnectivity import TunnelReport
from netprobe.model.reasons import REASONS
from netprobe.report.record.record import RecordWriter
from netprobe.report.run import REPORTS
from netprobe.report.verbs.explain import write_explain_json, write_explain_text
from netprobe.report.verbs.konnectivity import (
    write_konnectivity_json,
    write_konnectivity_text,
)
from netprobe.request.build import request_of_run
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from tests.estate.flows import list_views, make_explanation
from tests.estate.run import make_run
from tests.estate.tunnels import SCENES, make_tunnels
from tests.report.golden import check_golden
from tests.report.test_record import HEADER

FOLDER = Path(__file__).parents[1] / "golden" / "estate"
# Its program and its looks have tests of their own.
ASSETS = re.compile(r"(<script type=.module.>|<style>).*?(</script>|</style>)", re.DOTALL)
POLICY = re.compile(r"sha256-[\w+/]+=*")
VERSION = re.compile(
    rf'(netprobe |"netprobe_version": ?"|name="netprobe" value="){re.escape(netprobe.__version__)}'
)
DIAGNOSES = (
    ("diagnose.json", write_konnectivity_json), ("diagnose.text", write_konnectivity_text),
)  # fmt: skip


def check(name: str, text: str) -> None:
    """Hold an output against its file, but for the version."""
    text = POLICY.sub("HASH", ASSETS.sub(r"\1\2", text))
    check_golden(name, VERSION.sub(r"\1VERSION", text), FOLDER)


def shorten(text: str) -> str:
    """A JSON document with a line for each step, so that people can read what changed."""
    document = json.loads(text)
    assert text == json.dumps(document, indent=1, ensure_ascii="\\u" in text) + "\n"
    lines: list[object] = [{**document, "flows": None, "workers": None}]
    for flow in document.get("flows", document.get("workers")):
        steps = "steps" if "steps" in flow else "stages"
        lines += [{**flow, steps: None}, *flow[steps]]
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in lines)


@pytest.mark.parametrize("name", REPORTS)
def test_reports(name: str) -> None:
    """A report of each format says of the run what it said when somebody last looked."""
    stream = io.StringIO()
    REPORTS[name](make_run(), stream)
    check(f"run.{name}", stream.getvalue())


def test_the_record(tmp_path: Path) -> None:
    """The record has the run's results as they were when somebody last looked."""
    report = make_run()
    writer = RecordWriter(str(tmp_path / "r"), HEADER)
    for result in report.collector.results():
        writer.add(result)
    writer.close(report.info)
    check("run.jsonl", (tmp_path / "r").read_text())


@pytest.mark.parametrize("syntax", ["json", "markdown"])
def test_the_request(syntax: str) -> None:
    """The request asks for the same rules, and leaves the same unmended."""
    report = make_run()
    request = request_of_run(report.info, report.findings, (), "run.json", RequestWishes())
    stream = io.StringIO()
    SYNTAXES[syntax].write(request, stream)
    check(f"request.{syntax}", stream.getvalue())


def test_the_explanation() -> None:
    """Every step of an explanation says what it said when somebody last looked."""
    stream = io.StringIO()
    write_explain_json(make_explanation(), stream)
    check("explain.json", shorten(stream.getvalue()))


def test_pages_of_explanations() -> None:
    """The page of each flow reads as it did when somebody last looked."""
    stream = io.StringIO()
    for story in make_explanation().stories:
        write_explain_text(replace(make_explanation(), stories=(story,)), stream)
    check("explain.text", stream.getvalue())


@pytest.mark.parametrize(("name", "write"), DIAGNOSES)
def test_the_diagnosis(name: str, write: Callable[[TunnelReport, TextIO], None]) -> None:
    """Every stage before TLS, and every verdict, says what it said when somebody last looked."""
    stream = io.StringIO()
    write(make_tunnels(), stream)
    check(name, shorten(stream.getvalue()) if name.endswith(".json") else stream.getvalue())


def test_one_worker_has_all_its_stages() -> None:
    """Alone a worker's page has each stage with its words."""
    stream = io.StringIO()
    for one in make_tunnels().diagnoses[: len(SCENES)]:
        write_konnectivity_text(replace(make_tunnels(), diagnoses=(one,)), stream)
    check("diagnose-one.text", stream.getvalue())


def test_flows_have_every_note() -> None:
    """Each kind of note of the model is in a trail, so that a change of it is seen."""
    kinds = {one for name, one in vars(notes).items() if name.endswith("Note")}
    trails = [view.evidence.trail for view in list_views()]
    found = {type(entry.note) for trail in trails for entry in trail}
    # Stands in another note.
    assert kinds - found == {notes.HigherNote}


def test_the_estate_has_everything() -> None:
    """Each reason of the table of reasons is in the run; a router's time-exceeded is a loop."""
    found = {one.reason for one in make_run().collector.results()}
    assert set(REASONS) - found == {"time-exceeded"}
