"""Earlier runs, read again."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.errors import FileErrors
from netprobe.report.record.collector import Report
from netprobe.report.record.record import RecordWriter, header_of, read_run
from netprobe.report.run.json import write_json
from tests.report.plans import PLAN
from tests.report.samples import PASSED, everything, port

RUN = '{"schema": "netprobe.run/1", "started_at": "", "matrices": []'


def text_of(report: Report) -> str:
    """The report as JSON."""
    stream = io.StringIO()
    write_json(report, stream)
    return stream.getvalue()


def test_json_again(tmp_path: Path) -> None:
    """JSON that is read and written again is the same, to the last byte."""
    report = everything()
    (tmp_path / "run.json").write_text(text_of(report))
    info, collector = read_run(str(tmp_path / "run.json"))

    assert text_of(Report(info, collector, report.findings)) == text_of(report)


def test_record_again(tmp_path: Path) -> None:
    """A record gives the same report as the run that wrote it, ranges merged."""
    writer = RecordWriter(str(tmp_path / "r"), header_of(PLAN, "now"))
    drbd = replace(PASSED, requirement="drbd", address="10.9.0.11")
    parts = [port(drbd, 7000, 7009), port(drbd, 7010)]
    for result in [*everything().collector.results(), *parts]:
        writer.add(result)
    writer.close(everything().info)
    info, collector = read_run(str(tmp_path / "r"))
    results = list(collector.results())

    assert info == everything().info
    assert [(one.port, one.end_port) for one in results[1:2]] == [(7000, 7010)]
    assert len(results) == len(list(everything().collector.results())) + 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f:1:1: ends in the middle of its JSON, expected a JSON report (netprobe.run/1) or"),
        ('{"schema": "netprobe.run/2"}', "f:1:1: schema is 'netprobe.run/2', expected"),
        (
            "[1]",
            "f:1:1: is not JSON, expected a JSON report (netprobe.run/1) or a record (netprobe.re",
        ),
        ("{}", "f:1:1: is no report of netprobe, expected a JSON report"),
        (RUN + "}", 'f: the key "results" is missing or no list, expected those of netprobe.run/1'),
        (RUN + ', "results": [{}]}', 'f:1:1: results[0]: the key "matrix" is missing'),
        (RUN + ', "results": [7]}', "f:1:1: results[0]: no JSON object, expected a result"),
        (RUN + ', "results": [], "hosts": [7]}', "f: is no report of a run (hosts[0]: a whole"),
        (RUN + ', "results": [], "notes": [1, x]}', "f:1:92: is not JSON, expected a JSON"),
        ("\xff", "f:1:1: is not UTF-8, expected a JSON report"),
    ],
)
def test_neither(tmp_path: Path, text: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is neither says so with its place."""
    monkeypatch.chdir(tmp_path)
    Path("f").write_bytes(text.encode("latin-1"))

    with pytest.raises(FileErrors) as caught:
        read_run("f")
    assert str(caught.value).startswith(problem)
