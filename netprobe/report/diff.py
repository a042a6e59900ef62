"""The page of ``netprobe diff``: what became worse first, then the counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from netprobe.model.run import RunInfo
from netprobe.report.changes import Changes, change_parts
from netprobe.report.flow_groups import addresses_of
from netprobe.report.page import Line, PagePart
from netprobe.report.text_run import write_parts
from netprobe.report.wording import number


def write_diff(changes: Changes, runs: tuple[RunInfo, RunInfo], stream: TextIO) -> None:
    """Write what became worse first."""
    write_parts(_page_parts(changes, runs), stream)


def _page_parts(changes: Changes, runs: tuple[RunInfo, RunInfo]) -> Iterator[PagePart]:
    old, new = runs
    for part in change_parts(changes, addresses_of(old, new)):
        yield from (*part, Line())
    gone = ""
    if changes.gone:
        failed = f" ({number(changes.gone_failed)} failed there)" if changes.gone_failed else ""
        gone = f", {number(changes.gone)} only in the earlier run{failed}"
    told = {kind: number(flows) for kind, flows in changes.counts().items()}
    yield Line(
        f"{old.started_at} to {new.started_at}: {told['worse']} newly blocked or exposed, "
        f"{told['unknown']} no longer known, {told['fixed']} fixed, {told['still']} still blocked "
        f"or exposed, {told['otherwise']} in another way, {told['known']} newly known to pass, "
        f"{told['unchanged']} unchanged{gone}"
    )
