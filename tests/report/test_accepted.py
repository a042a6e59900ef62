"""Accepted and known failures in every report: told, never counted as if they passed."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs
from msgspec.structs import replace

from netprobe.judge.accepted import Acceptances
from netprobe.judge.findings import fold
from netprobe.model.accepted import Acceptance
from netprobe.model.exit import exit_status
from netprobe.model.result import AcceptedBy, Result
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.record import RecordWriter, header_of, read_run
from netprobe.report.record.spool import Spool
from netprobe.report.run import REPORTS
from netprobe.report.run.accepted_text import entry_text
from netprobe.report.run.schema import run_schema_text
from tests.judge.test_accepted import ENTRY, TODAY
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, port

ENTRIES = (
    replace(ENTRY, reason="new firewall"),
    replace(ENTRY, id="b2", ports=((2381, 2381),), until="2026-11-27"),
    replace(ENTRY, id="c3", ports=((2382, 2382),), until="2026-11-21"),
    replace(ENTRY, id="d4", ports=((2383, 2383),)),
    replace(ENTRY, id="e5", ports=((2384, 2385),), until="never"),
    replace(ENTRY, id="f6", matrix="other", ports=((2386, 2386),)),
)
RESULTS = [
    PASSED,
    port(BLOCKED, 2380),
    port(BLOCKED, 2381),
    port(BLOCKED, 2382),
    port(PASSED, 2383),
    port(BLOCKED, 2384),
    port(PASSED, 2385),
]


def report_of(
    results: Iterable[Result] = RESULTS,
    entries: tuple[Acceptance, ...] = ENTRIES,
    today: date = TODAY,
    **changes: Any,
) -> Report:
    """A run held against entries, as ``run --accepted`` does it."""
    accepted = Acceptances(entries, today)
    collector = collect(part for one in results for part in accepted.mark(one))
    info = replace(INFO, planned_flows=1, **changes)
    info = replace(info, accepted=accepted.check(collector.results(), info))
    return Report(info, collector, fold(collector.failures(), collector.passes()))


def written(report: Report, name: str = "text") -> str:
    """What a format makes of it."""
    stream = io.StringIO()
    REPORTS[name](report, stream)
    return stream.getvalue()


def status_of(report: Report) -> int:
    """The exit status of the run."""
    return exit_status(report.summary, False, report.info.planned_flows)


def test_text() -> None:
    """One failure counts again; the first line says what is accepted, a section who and why."""
    report = report_of()
    text = written(report)

    assert status_of(report) == 1
    assert text.splitlines()[0] == (
        "BLOCKED: 1 blocked of 4 required flows, 1 finding; "
        "3 accepted (the first until 2026-11-27) did not pass"
    )
    who = "(new firewall; team, CHG-1)"
    assert text.partition("\nACCEPTED (not counted against the result): 3 flows\n")[2].splitlines()[
        :6
    ] == [
        f"   EXPIRED on 2026-11-21, 1 flow blocked counts again: etcd, master-0 → master-1  "
        f"tcp 2382 {who} [c3]",
        f"   STALE, no flow of it is blocked any more, delete it: etcd, master-0 → master-1  "
        f"tcp 2383 {who} [d4]",
        f"   TOO WIDE until 2027-01-31, 1 of its flows passes, 1 flow blocked: etcd, "
        f"master-0 → master-1  tcp 2379-2380 {who} [a1]",
        f"   TOO WIDE without an end, 1 of its flows passes, 1 flow blocked: etcd, "
        f"master-0 → master-1  tcp 2384-2385 {who} [e5]",
        f"   expiring until 2026-11-27 (ends in 5 days), 1 flow blocked: etcd, "
        f"master-0 → master-1  tcp 2381 {who} [b2]",
        f"   not seen until 2027-01-31, this run cannot tell whether its flows fail: etcd, "
        f"master-0 → master-1  tcp 2386 {who} [f6]",
    ]
    assert "OPTIONAL OR WAIVED" not in text
    assert "; 3 accepted; 0 skipped; " in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("results", "line"),
    [
        (
            [PASSED, port(BLOCKED, 2380)],
            "PASS: the other required flow is as it should be; "
            "1 accepted until 2027-01-31 did not pass",
        ),
        (
            [port(BLOCKED, 2380)],
            "PASS: nothing else is required; 1 accepted until 2027-01-31 did not pass",
        ),
        (
            [PASSED, port(PASSED, 2384), port(BLOCKED, 2380)],
            "PASS: all 2 other required flows are as they should be; "
            "1 accepted until 2027-01-31 did not pass",
        ),
        (
            [PASSED, port(BLOCKED, 2384)],
            "PASS: the other required flow is as it should be; "
            "1 accepted without an end did not pass",
        ),
    ],
)
def test_all_that_fails_is_accepted(results: list[Result], line: str) -> None:
    """The run passes, and its first line does not claim that all does."""
    report = report_of(results)

    assert (status_of(report), written(report).splitlines()[0]) == (0, line)


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("2026-11-22", "expiring until 2026-11-22 (ends today), 1 flow blocked: etcd"),
        ("2026-11-23", "expiring until 2026-11-23 (ends tomorrow), 1 flow blocked: etcd"),
        ("2027-11-22", "active until 2027-11-22, 1 flow blocked: etcd"),
        ("never", "active without an end, 1 flow blocked: etcd"),
    ],
)
def test_the_end_is_told(until: str, words: str) -> None:
    """How soon an entry ends is said in days."""
    entry = replace(ENTRY, until=until, ports=((2380, 2380),))
    (checked,) = report_of([port(BLOCKED, 2380)], (entry,)).info.accepted

    assert entry_text(checked).startswith(words)


def test_many_entries() -> None:
    """The page stays short: those that somebody has to look at come first, the rest is counted."""
    entries = tuple(replace(ENTRY, id=f"e{n}", ports=((n, n),)) for n in range(1, 31))
    text = written(report_of([port(BLOCKED, 1, 5), port(PASSED, 6, 30)], entries))
    lines = text.partition("\nACCEPTED (")[2].splitlines()

    assert [line.split()[0] for line in lines[1:22]] == ["STALE,"] * 20 + ["and"]
    assert lines[21] == "   and 10 more, see -o json"


def test_a_doubt_beside_what_is_accepted() -> None:
    """Nothing else is blocked: the first line does not say that nothing is."""
    report = report_of([port(BLOCKED, 2380), port(PASSED, 2390, verdict="inconclusive")])

    assert (status_of(report), written(report).splitlines()[0]) == (
        3,
        "UNKNOWN: nothing else is blocked, but 1 of 1 required flow could not be judged; "
        "1 accepted until 2027-01-31 did not pass",
    )


def test_an_end_that_matches_nothing() -> None:
    """An entry that is over and has nothing to hold can go."""
    (checked,) = report_of([PASSED], (replace(ENTRY, until="2026-11-01"),)).info.accepted

    words = "EXPIRED on 2026-11-01, it matches no flow blocked in this run: etcd"
    assert entry_text(checked).startswith(words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"since": "2026-12-01"},
            "NOT YET, begins on 2026-12-01, 2 flows blocked count until then:",
        ),
        ({"until": "2026-11-21"}, "EXPIRED on 2026-11-21, 2 flows blocked count again:"),
        (
            {"where": ("path",)},
            "ELSEWHERE until 2027-01-31, 2 flows blocked, but not, or not for certain, at path: "
            "not accepted by it: etcd",
        ),
        ({"to": ("master-9",)}, "UNMATCHED, it matches no flow of this run, correct or delete it:"),
    ],
)
def test_why_it_does_not_hold(changes: dict[str, Any], words: str) -> None:
    """Failures that the same report lists are never called gone, nor what it never had."""
    results = [replace(port(BLOCKED, 2379, 2380), where=("destination", "path"))]
    report = report_of(results, (replace(ENTRY, **changes),))

    assert entry_text(report.info.accepted[0]).startswith(words)
    assert status_of(report) == 1


def test_some_of_it_is_elsewhere() -> None:
    """Its other flows are told beside those that it accepts."""
    results = [
        replace(port(BLOCKED, 2379), where=("path",)),
        replace(port(BLOCKED, 2380), where=()),
    ]
    (checked,) = report_of(results, (replace(ENTRY, where=("path",)),)).info.accepted

    assert entry_text(checked).startswith(
        "active until 2027-01-31, 1 flow blocked, 1 flow blocked, but not, or not for certain, at "
        "path: not accepted by it: etcd"
    )


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        (((2379, 2380),), "2 flows blocked, accepted or excused otherwise: etcd"),
        (((2380, 2380),), "2 flows blocked, 1 of them counts again: etcd"),
    ],
)
def test_an_extension(ports: Any, words: str) -> None:
    """What another entry accepts does not count again."""
    entries = (replace(ENTRY, until="2026-11-21"), replace(ENTRY, id="b2", ports=ports))
    old, _ = report_of([port(BLOCKED, 2379, 2380)], entries).info.accepted

    assert entry_text(old).startswith(f"EXPIRED on 2026-11-21, {words}")


def test_json(tmp_path: Path) -> None:
    """Entries with state and counts, results with who accepted them; read again it is the same."""
    report = report_of()
    document = json.loads(written(report, "json"))
    (tmp_path / "j").write_text(json.dumps(document))
    info, collector = read_run(str(tmp_path / "j"))

    assert list(Draft202012Validator(json.loads(run_schema_text())).iter_errors(document)) == []
    assert [(one["id"], one["state"], one["flows"]) for one in document["accepted"]] == [
        ("a1", "too-wide", 1), ("b2", "expiring", 1), ("c3", "expired", 1), ("d4", "stale", 0),
        ("e5", "too-wide", 1), ("f6", "unseen", 0),
    ]  # fmt: skip
    assert {one["port"]: one.get("accepted") for one in document["results"]}[2381] == {
        "id": "b2", "reason": "new firewall", "owner": "team", "until": "2026-11-27",
    }  # fmt: skip
    assert document["summary"]["accepted"] == 3
    assert (document["summary"]["blocked"], document["summary"]["waived"]) == (4, 0)
    assert info.accepted == report.info.accepted
    assert sorted(collector.results(), key=repr) == sorted(report.collector.results(), key=repr)


def test_record_and_spool(tmp_path: Path) -> None:
    """A record keeps who accepted what, and so does the disk when memory is short."""
    report = report_of()
    writer = RecordWriter(str(tmp_path / "r"), header_of(PLAN, "now"))
    spool = Spool(2)
    for one in report.collector.results():
        writer.add(replace(one, known="base.json"))
        spool.add(replace(one, known="base.json"))
    writer.close(report.info)
    info, collector = read_run(str(tmp_path / "r"))

    assert info.accepted == report.info.accepted
    assert list(collector.results()) == list(spool)
    assert {one.accepted for one in spool} >= {ENTRY.signature, None}
    spool.close()


def test_ci_formats() -> None:
    """JUnit skips with the reason, GitHub gets one warning on what is due, Markdown the section."""
    report = report_of([port(BLOCKED, 2381)])
    junit, github = written(report, "junit"), written(report, "github")

    assert (
        '<skipped type="blocked" message="accepted until 2026-11-27: new firewall (team, b2)">'
        in junit
    )
    assert "::error" not in github
    due = "accepted flows: 1 expired, 3 unmatched, 1 expiring; see the report"
    assert f"::warning title=netprobe::{due}" in github
    assert "\n### ACCEPTED (not counted against the result): 1 flow\n" in written(
        report, "markdown"
    )
    assert "accepted until 2026-11-27: new firewall (team, b2)" in written(report, "wide")


def test_the_page_has_the_section_of_the_text() -> None:
    """Every line of it; and no flow leads to a finding that the page does not tell."""
    report = report_of()
    text, page = written(report), html.unescape(written(report, "html"))
    section = text.partition("\nACCEPTED (")[2].partition("\n\n")[0].splitlines()[1:]
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])

    assert "ACCEPTED (not counted against the result): 3 flows" in page
    assert len(section) == len(ENTRIES)
    plain = re.sub(r"</?span[^>]*>", "", page)
    assert [line for line in section if f"<p>{line.strip()}</p>" not in plain] == []
    named = {one["finding"] for one in data["classes"] if "finding" in one}
    assert named
    assert named == {number for number in named if f'id="finding-{number}"' in page}


def test_another_verdict_counts() -> None:
    """A flow that was accepted as blocked and is exposed now fails the run; so does a doubt."""
    exposed = replace(port(BLOCKED, 2380), verdict="exposed", expect="denied")
    doubt = replace(port(BLOCKED, 2380), verdict="inconclusive")

    assert status_of(report_of([PASSED, exposed])) == 1
    assert status_of(report_of([PASSED, doubt])) == 3


def test_a_crash_tells_its_accepted_flows() -> None:
    """A record without its end has no entries; its accepted failures are listed nevertheless."""
    report = report_of([PASSED, port(BLOCKED, 2380)])
    text = written(replace(report, info=replace(report.info, accepted=())))

    assert "[accepted until 2027-01-31: new firewall (team, a1)]" in text


def test_known_failures() -> None:
    """With --fail-on new what the baseline has is told, and does not decide."""
    results = [PASSED, port(replace(BLOCKED, known="base.json"), 2390)]
    report = report_of(results, (), baseline="BASELINE: base.json (begun then): 0 newly ...")
    first, second, *rest = written(report).splitlines()

    assert status_of(report) == 0
    assert first == (
        "PASS: the other required flow is as it should be; 1 known from the baseline did not pass"
    )
    assert second == report.info.baseline
    assert "KNOWN, OPTIONAL OR WAIVED (not counted against the result)" in rest
    assert "[known: base.json has it too]" in "".join(rest)
    assert json.loads(written(report, "json"))["summary"]["known"] == 1
    assert '<skipped type="blocked" message="known: base.json has it too">' in written(
        report, "junit"
    )


def test_hostile_words() -> None:
    """What people write in the file does nothing to a terminal, a page or a runner."""
    entry = replace(ENTRY, reason="\x1b[31mred\n::error::x <b> | [a](b)", owner="@all")
    report = report_of([port(BLOCKED, 2380)], (entry,))

    for name in ("text", "wide", "markdown", "github", "junit"):
        lines = written(report, name).splitlines()
        assert all(line.isprintable() for line in lines), name
        assert not any(line.startswith("::error") for line in lines), name
    assert "\\[a\\](b)" in written(report, "markdown")
    assert report.info.accepted[0].signature == AcceptedBy("a1", entry.reason, "@all", "2027-01-31")
