"""The lab's comparison of verdicts: it finds what is missing, invented or misplaced."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

CHECK = Path(__file__).parents[2] / "compose" / "jump" / "check.py"
CUT = {
    "requirement": "drbd",
    "protocol": "tcp",
    "ports": "7400-7401",
    "where": "path",
    "flows": [["a", "b"]],
}
EXPECTED: dict[str, Any] = {"blocked": [CUT], "flows": 4, "skipped": ["ntp"]}
UNKNOWN = {
    "reason": "unknown-holder",
    "requirement": "drbd",
    "protocol": "tcp",
    "ports": 7399,
    "flows": [["a", "b"]],
}


def _wrong(
    *results: dict[str, Any], expected: dict[str, Any] = EXPECTED, **changes: Any
) -> list[str]:
    """What check.py says of a run with these results."""
    spec = importlib.util.spec_from_file_location("lab_check", CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    run = {
        "complete": True,
        "results": list(results),
        "skipped": [{"requirement": "ntp"}],
    } | changes
    return list(module.wrong(run, expected))


def _result(first: int, last: int, verdict: str = "pass", where: str = "path") -> dict[str, Any]:
    return {
        "requirement": "drbd",
        "source": "a",
        "destination": "b",
        "protocol": "tcp",
        "port": first,
        "end_port": last,
        "verdict": verdict,
        "where": [where],
    }


def test_as_expected() -> None:
    """A run that says just what is expected is as expected."""
    assert _wrong(_result(7399, 7399), _result(7400, 7401, "blocked"), _result(7402, 7402)) == []


def test_missed() -> None:
    """A stopped flow that passes is named, also where it is one port of a range."""
    found = _wrong(_result(7399, 7400), _result(7401, 7402, "blocked"))
    assert found == [
        "drbd: a -> b tcp/7400: pass, but the firewall stops it",
        "drbd: a -> b tcp/7402: blocked, but nothing stops it",
    ]


def test_inconclusive_is_no_pass() -> None:
    """An open flow must be open: anything but pass is named."""
    found = _wrong(_result(7399, 7399, "inconclusive"), _result(7400, 7401, "blocked"),
                   _result(7402, 7402))  # fmt: skip
    assert found == ["drbd: a -> b tcp/7399: inconclusive, but nothing stops it"]


def test_unknown_holder() -> None:
    """An open flow whose service cannot be known must be inconclusive for that reason."""
    expected = EXPECTED | {"inconclusive": [UNKNOWN]}
    usual = [_result(7400, 7401, "blocked"), _result(7402, 7402)]
    unknown = _result(7399, 7399, "inconclusive")
    right = unknown | {"reason": "unknown-holder"}
    assert _wrong(right, *usual, expected=expected) == []
    other = unknown | {"reason": "machine-busy"}
    passed = _result(7399, 7399) | {"reason": "syn-ack"}
    for wrong, words in (other, "inconclusive (machine-busy)"), (passed, "pass (syn-ack)"):
        assert _wrong(wrong, *usual, expected=expected) == [
            f"drbd: a -> b tcp/7399: {words}, expected inconclusive (unknown-holder)"
        ]
    assert _wrong(*usual, _result(7403, 7403), expected=expected) == [
        "drbd: a -> b tcp/7399: not in the report, but something answers it"
    ]


def test_added_flows_are_not_counted() -> None:
    """Flows that netprobe adds to the matrix must pass too, and do not count."""
    usual = [_result(7399, 7399), _result(7400, 7401, "blocked"), _result(7402, 7402)]
    assert _wrong(*usual, _result(1, 1) | {"requirement": "path-mtu"}) == []
    bad = _result(1, 1, "inconclusive") | {"requirement": "path-mtu"}
    assert _wrong(*usual, bad) == ["path-mtu: a -> b tcp/1: inconclusive, but nothing stops it"]


def test_wrong_place() -> None:
    """The true place must be among those that are held possible."""
    found = _wrong(_result(7399, 7399), _result(7400, 7401, "blocked", "host"),
                   _result(7402, 7402))  # fmt: skip
    assert [line.split(": ", 2)[2] for line in found] == [
        "where is ['host'], without the true place, path"
    ] * 2


def test_unfinished_or_short() -> None:
    """A run that ended early, has fewer flows, or skipped more, is not as expected."""
    found = _wrong(_result(7400, 7401, "blocked"), complete=False, skipped=[])
    assert found == [
        "the run did not come to its end",
        "flows: 2, expected 4",
        "skipped requirements: [], expected ['ntp']",
    ]
