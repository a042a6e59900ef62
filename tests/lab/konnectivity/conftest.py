"""Prints the score of the Konnectivity lab, situation by situation."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line a situation, after everything else."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if report.when == "call" and "test_the_verdict_is_right" in report.nodeid
    ]
    if not reports:
        return
    terminalreporter.section("Konnectivity: situations")
    for report in reports:
        name = report.nodeid.partition("[")[2].removesuffix("]")
        verdict = dict(report.user_properties).get("verdict", "no verdict")
        mark = "right" if report.passed else "WRONG"
        terminalreporter.write_line(f"{mark}  {name:<58} {verdict}")
    right = sum(1 for report in reports if report.passed)
    terminalreporter.write_line(f"{right} of {len(reports)} verdicts are right")
