"""The exit status (docs/design.md, section 2.5)."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.model.exit import exit_status
from netprobe.model.result import Summary
from netprobe.report.record.collector import collect
from tests.report.samples import BLOCKED, PASSED, flow


def summary(*changes: dict[str, Any]) -> Summary:
    """The summary of results that differ from a blocked one in this."""
    return collect(flow(BLOCKED, place, **change) for place, change in enumerate(changes)).summary(
        0
    )


PASS = {"verdict": "pass", "proof": "nonce"}
OPEN = {"verdict": "inconclusive"}
UNSEEN = {"verdict": "not-tested"}
OPTIONAL = {"optional": True}
WAIVED = {"waived": "a reason"}


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([PASS], 0),
        ([PASS, OPTIONAL], 0),
        ([PASS, WAIVED], 0),
        ([PASS, {**OPEN, **OPTIONAL}, {**UNSEEN, **WAIVED}], 0),
        ([WAIVED], 0),
        ([PASS, {}], 1),
        ([PASS, {"verdict": "exposed"}], 1),
        ([OPEN, {}, UNSEEN], 1),
        ([PASS, OPEN], 3),
        ([PASS, UNSEEN], 3),
        ([], 3),
        ([UNSEEN], 3),
        ([{**UNSEEN, **OPTIONAL}], 3),
    ],
)
def test_status(results: list[dict[str, Any]], status: int) -> None:
    """Deciding flows decide; where nothing was tested the status is never 0."""
    assert exit_status(summary(*results), interrupted=False) == status


def test_interrupted() -> None:
    """An interrupted run is 130, whatever it found."""
    assert exit_status(summary(PASS, {}), interrupted=True) == 130


def test_what_is_covered_is_enough_but_for_strict() -> None:
    """0 where all that was probed passes, 3 with --strict; alone it is nothing that was tested."""
    covered = {"verdict": "covered"}
    assert exit_status(summary(PASS, covered), interrupted=False) == 0
    assert exit_status(summary(PASS, covered), interrupted=False, strict=True) == 3
    assert exit_status(summary(PASS, {**covered, **OPTIONAL}), False, strict=True) == 0
    assert exit_status(summary(covered), interrupted=False) == 3


def test_counts() -> None:
    """Excused failures are counted in their verdict, and once more as waived or optional."""
    counted = summary(PASS, OPTIONAL, WAIVED, {**WAIVED, **OPTIONAL}, {"end_port": 2383})

    assert counted.counts["blocked"] == 8
    assert counted.deciding["blocked"] == 5
    assert (counted.waived, counted.optional) == (2, 1)
    assert collect([PASSED]).summary(4).skipped == 4


@pytest.mark.parametrize(
    ("results", "planned", "status"),
    [([PASS], 1, 0), ([PASS, PASS], 1, 0), ([PASS], 2, 3), ([PASS, {}], 3, 1), ([OPTIONAL], 2, 3)],
)
def test_flows_without_a_result(results: list[dict[str, Any]], planned: int, status: int) -> None:
    """Fewer results than planned flows are never a pass, whoever lost the others."""
    assert exit_status(summary(*results), interrupted=False, planned_flows=planned) == status


def test_a_run_without_its_end_is_no_pass() -> None:
    """A record that was cut off has all results by chance: what came after them nobody knows."""
    passed = summary(PASS)

    assert exit_status(passed, interrupted=False, planned_flows=1) == 0
    assert exit_status(passed, interrupted=False, planned_flows=1, complete=False) == 3
    assert exit_status(summary({}), interrupted=False, complete=False) == 1
