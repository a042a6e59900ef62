"""``netprobe.run/1``: the keys that programs rely on."""

from __future__ import annotations

import io
import json
from typing import Any

from netprobe.report.run.json import write_json
from tests.report.samples import BLOCKED, PASSED, everything, finding, report_of

RUN_KEYS = (
    "schema netprobe_version started_at elapsed_s complete matrices summary findings results "
    "skipped accepted baseline"
)
SUMMARY_KEYS = (
    "pass blocked exposed inconclusive not_tested covered skipped refusals waived optional "
    "accepted known spared"
)
RESULT_KEYS = (
    "matrix requirement purpose row optional expect waived source destination address protocol "
    "port end_port verdict state reason proof where rejected_by last_hop next_hop because warnings "
    "rtt_ms attempts"
)
MEMBER_KEYS = "requirement source destination address protocol port end_port matrix"


def document(report: Any = None) -> dict[str, Any]:
    """The JSON of a report, read back."""
    stream = io.StringIO()
    write_json(everything() if report is None else report, stream)
    read: dict[str, Any] = json.loads(stream.getvalue())
    return read


def test_keys() -> None:
    """The run has every key of docs/result-json.md, and a result has exactly those it lists."""
    run = document()

    assert set(RUN_KEYS.split()) <= set(run)
    assert list(run["summary"]) == SUMMARY_KEYS.split()
    assert {tuple(result) for result in run["results"]} == {tuple(RESULT_KEYS.split())}
    assert run["schema"] == "netprobe.run/1"


def test_summary_counts_flows() -> None:
    """A range of ports counts as many flows as it has ports, and skipped counts requirements."""
    summary = document()["summary"]

    assert summary == {
        "pass": 1002,
        "blocked": 27,
        "exposed": 1,
        "inconclusive": 2,
        "not_tested": 3,
        "covered": 0,
        "skipped": 3,
        "refusals": 1000,
        "waived": 1,
        "optional": 1,
        "accepted": 0,
        "known": 0,
        "spared": 0,
    }


def test_findings_refer_to_results() -> None:
    """Each member of a finding is found among the results by its keys."""
    run = document()
    keys = MEMBER_KEYS.split()
    known = [{key: result[key] for key in keys} for result in run["results"]]

    for one in run["findings"]:
        assert one["count"] == len(one["members"])
        assert all(member in known for member in one["members"])


def test_settings_keep_their_types() -> None:
    """Lists stay lists and booleans booleans in the settings of a matrix."""
    assert document()["matrices"][0]["settings"] == {
        "cni": "cilium",
        "modules": ["sds", "cloud"],
        "ha": True,
    }


def test_empty_run_is_a_document() -> None:
    """A run without results is valid JSON all the same."""
    run = document(report_of([]))

    assert run["results"] == []
    assert run["findings"] == []


def test_any_text_is_ascii_json() -> None:
    """What a host said may hold anything; the document stays ASCII."""
    odd = report_of([PASSED], finding("ü\x1b\ud800", "", BLOCKED))
    stream = io.StringIO()
    write_json(odd, stream)

    assert stream.getvalue().isascii()
    assert json.loads(stream.getvalue())["findings"][0]["title"] == "ü\x1b\ud800"
