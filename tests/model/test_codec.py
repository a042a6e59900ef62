"""The JSON codec of results and runs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from netprobe.model.codec import (
    info_from_json,
    info_to_json,
    result_from_json,
    result_to_json,
)
from netprobe.model.result import Result
from tests.report.samples import BLOCKED, INFO, everything
from tests.report.strategies import results


@given(results())
def test_result_round_trip(result: Result) -> None:
    """Any result survives JSON, to the last field."""
    text = json.dumps(result_to_json(result))

    assert result_from_json(json.loads(text), result.order) == result


@pytest.mark.parametrize("interrupted", [False, True])
def test_info_round_trip(interrupted: bool) -> None:
    """What is known of a run survives JSON, to the last field."""
    info = replace(everything().info, interrupted=interrupted, complete=not interrupted)
    text = json.dumps(info_to_json(info))

    assert info_from_json(json.loads(text)) == info


def test_unknown_and_missing_keys() -> None:
    """A reader ignores keys that it does not know, and defaults those that may be missing."""
    needed = "matrix requirement source destination address protocol port verdict state reason"
    data = result_to_json(BLOCKED)
    small = {key: data[key] for key in needed.split()}
    read = result_from_json({**small, "path_mtu_bytes": 1400}, (0, 0, 0))

    assert read.end_port == BLOCKED.port
    assert (read.proof, read.where, read.because, read.optional) == ("none", (), "", False)
    assert info_from_json({"brand": "new"}).matrices == ()


def test_a_result_without_its_keys_is_none() -> None:
    """What lacks a key that names the flow or its fate is refused."""
    with pytest.raises(KeyError):
        result_from_json({"matrix": "m"}, (0, 0, 0))


def test_info_has_no_secrets() -> None:
    """The run's own keys are those of the contract and the documented extra ones."""
    assert sorted(info_to_json(INFO)) == sorted(
        [
            *("started_at", "elapsed_s", "complete", "interrupted", "planned_flows"),
            *("selection", "sample", "matrices", "hosts", "notes", "skipped"),
        ]
    )
