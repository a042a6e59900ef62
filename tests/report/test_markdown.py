"""Markdown for summaries and merge requests: bounded, and nothing in it acts."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from netprobe.model.printable import escape_markdown
from netprobe.report.record.collector import Report
from netprobe.report.run import markdown as markdown_run
from netprobe.report.run.github import write_github
from netprobe.report.run.markdown import MOST_BYTES, write_markdown
from tests.report.samples import BLOCKED, INFO, PASSED, everything, finding, flow, report_of


def text_of(report: Report) -> str:
    stream = io.StringIO()
    write_markdown(report, stream)
    return stream.getvalue()


def annotate(report: Report) -> list[str]:
    stream = io.StringIO()
    write_github(report, stream)
    return stream.getvalue().splitlines()


def make_findings(count: int, more: str = "") -> Report:
    """A run with so many findings of one flow each."""
    flows = [flow(BLOCKED, place, source=f"s{place}", because=f"silence{more}")
             for place in range(count)]  # fmt: skip
    findings = [finding(f"title {one.source}{more}", "open it", one) for one in flows]
    return report_of(flows, *findings)


def test_headline_findings_and_totals_are_there() -> None:
    """In the order of the report for people."""
    text = text_of(everything())

    parts = [
        "# BLOCKED: ", "## CAN THE INSTALLATION START? ", "| 1 | blocked | ", "## 1. BLOCKED: ",
        "**to do**: Allow tcp 2380", "### INCONCLUSIVE", "### NOT TESTED", "### SKIPPED",
        "**1,035 flows",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_verdict_is_the_first_heading() -> None:
    """Whatever else the first lines say stands below it."""
    lines = {
        "earlier": "RETRIED: what run.jsonl asks for", "selection": "--only etcd",
        "baseline": "BASELINE: base.json: 0 newly blocked",
    }  # fmt: skip
    partial = replace(INFO, complete=False, interrupted=True, **lines)
    text = text_of(report_of([PASSED, flow(BLOCKED, 1)], info=partial))

    assert text.startswith("# BLOCKED: 1 blocked of 2 required flows\n\n- RETRIED: what run")
    assert "\n- PARTIAL RUN: it was interrupted" in text
    assert "\n- SELECTION: " in text
    assert "\n- BASELINE: " in text


def test_any_run_stays_below_what_github_takes() -> None:
    """Whole findings are cut, and how many is said; the totals stay."""
    report = make_findings(600, " and so on" * 100)
    text = text_of(report)
    report.collector.close()

    assert len(text.encode()) < MOST_BYTES < 1024 * 1024
    assert "more findings: see the report itself" in text
    assert text.rstrip().endswith("**")


def test_a_table_that_has_no_room_does_not_take_the_findings_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is left out first."""
    monkeypatch.setattr(markdown_run, "MOST_BYTES", 20_000)
    text = text_of(make_findings(400, " and so on"))

    assert "| 1 |" not in text
    assert "## 1. BLOCKED" in text
    assert len(text) < 20_000


def test_names_of_others_do_nothing() -> None:
    """No link, no mention, no row of a table, no HTML."""
    evil = "<img src=x> [a](http://x) | @team `code` #1 *bold* \x1b[31m\nnext"

    text = escape_markdown(evil)

    assert "<" not in text
    assert "@" not in text
    assert "\n" not in text
    assert "\x1b" not in text
    for mark in "[]|`*#":
        assert text.count(mark) == text.count(f"\\{mark}") + text.count("&#64;") * (mark == "#")


def test_annotations_are_at_most_ten_of_a_kind() -> None:
    """Nine findings, and how many more there are."""
    lines = annotate(make_findings(12))

    errors = [line for line in lines if line.startswith("::error ")]
    assert len(errors) == 10
    assert errors[-1].endswith("::and 3 more findings: see the report")
    assert lines[-1].startswith("::notice title=netprobe::12 flows")


def test_annotations_cannot_begin_another_command() -> None:
    """A title ends at a comma or colon, a message at a line's end."""
    bad = flow(BLOCKED, 1, because="a%0A\n::error::b")
    (line, _) = annotate(report_of([bad], finding("x,file=y::z", "open it", bad)))

    assert line == "::error title=BLOCKED%3A x%2Cfile=y%3A%3Az::a%250A ::error::b. open it"


def test_without_findings_the_headline_is_annotated() -> None:
    """A pass is a notice, a run without its end a warning."""
    assert annotate(report_of([PASSED]))[0].startswith("::notice title=netprobe::PASS")
    partial = replace(INFO, complete=False, interrupted=True)
    assert annotate(report_of([PASSED], info=partial))[0].startswith("::warning title=")
