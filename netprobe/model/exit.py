"""The exit status of a run, from its counts alone (docs/design.md, section 2.5)."""

from __future__ import annotations

from typing import Final

from netprobe.errors import INTERRUPTED
from netprobe.model.result import UNPROBED, VERDICTS, Summary

PASS: Final = 0
BLOCKED: Final = 1
UNKNOWN: Final = 3


def exit_status(
    summary: Summary,
    interrupted: bool,
    planned_flows: int = 0,
    complete: bool = True,
    *,
    strict: bool = False,
) -> int:
    """Judge a run by the flows that decide; optional, waived, accepted and known ones never do.

    A run in which nothing was tested is 3, whatever it was asked for: an installer that reads 0
    would go on. So is one that has fewer results than ``planned_flows``, or no end (``complete``),
    and with ``strict`` one in which a flow that decides was not probed but covered.
    """
    if interrupted:
        return INTERRUPTED
    deciding = summary.deciding
    if deciding.get("blocked", 0) or deciding.get("exposed", 0):
        return BLOCKED
    if deciding.get("inconclusive", 0) or deciding.get("not-tested", 0):
        return UNKNOWN
    if strict and deciding.get("covered", 0):
        return UNKNOWN
    if sum(summary.counts.values()) < planned_flows or not complete:
        return UNKNOWN
    return PASS if tested(summary) else UNKNOWN


def tested(summary: Summary) -> int:
    """Tell how many flows were tested, whatever the verdict."""
    return sum(summary.counts.get(verdict, 0) for verdict in VERDICTS if verdict not in UNPROBED)
