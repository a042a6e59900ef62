"""The contrast of a cluster's nodes as a page (the finding first, then the nodes), and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TextIO

import netprobe
from netprobe.model.contrast import ContrastReport, NodeContrast
from netprobe.model.struct_json import to_json
from netprobe.report.page.markdown_page import write_markdown_page
from netprobe.report.page.page import Line, PagePart, align, field, write_page
from netprobe.report.page.wording import plural

_MOST_NAMED = 8
# Rows of nodes that are alike in all columns and fine; the others are all shown.
_MOST_FINE = 10
CONTRAST_SCHEMA = "netprobe.contrast/1"


def contrast_parts(report: ContrastReport) -> Iterator[PagePart]:
    """Show the whole page."""
    finding = report.finding
    place = f"{report.server}:{report.port}"
    yield Line(f"Konnectivity tunnel to {place}, {plural(len(report.nodes), 'node')}", "strong")
    yield Line()
    word = {True: "FAULT", False: "OK", None: "UNSURE"}[finding.is_fault]
    style = {True: "bad", False: "good", None: "doubt"}[finding.is_fault]
    yield Line(f"{word}: {finding.title}", style, hang=3)  # type: ignore[arg-type]
    yield from field("seen", [finding.because])
    yield from field("nodes", [_name_nodes(finding.nodes)] if finding.nodes else [])
    yield from field("to do", [finding.remedy] if finding.remedy else [])
    yield Line()
    yield from _write_nodes(report)
    yield Line()
    yield Line(f"logs: asked of {report.asked:,} of {len(report.nodes):,}")


def _name_nodes(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _write_nodes(report: ContrastReport) -> Iterator[Line]:
    """Write the table: nodes that have something wrong, and some of the others."""
    wrong = [one for one in report.nodes if _has_fault(one)]
    fine = [one for one in report.nodes if not _has_fault(one)]
    shown = [*wrong, *fine[:_MOST_FINE]]
    heads = ["node", "reported", f"tcp {report.port}", "logs", ""]
    head, *lines = align([heads, *map(_make_row, shown)])
    yield Line(head, "strong")
    for one, line in zip(shown, lines, strict=True):
        yield Line(line.rstrip(), "bad" if _has_fault(one) else "plain")
    if len(fine) > _MOST_FINE:
        yield Line(f"... and {len(fine) - _MOST_FINE:,} more without a fault (-o json)")


def _has_fault(one: NodeContrast) -> bool:
    return bool(one.missing) or one.dial == "fails" or one.logs == "fail"


def _make_row(one: NodeContrast) -> list[str]:
    words = one.missing or (one.dial_words if one.dial != "opens" else "") or one.logs_words
    return [one.node, "no" if one.missing else "yes", one.dial, one.logs.replace("-", " "), words]


def write_contrast_json(report: ContrastReport, stream: TextIO) -> None:
    """Write the report as one JSON document."""
    document = {
        "schema": CONTRAST_SCHEMA,
        "netprobe_version": netprobe.__version__,
        **to_json(report),
    }
    json.dump(document, stream, indent=1, ensure_ascii=False)
    stream.write("\n")


def _write_contrast(
    write: Callable[[Iterator[PagePart], TextIO], None], report: ContrastReport, stream: TextIO
) -> None:
    write(contrast_parts(report), stream)


CONTRAST_WRITERS: Final[Mapping[str, Callable[[ContrastReport, TextIO], None]]] = {
    "text": partial(_write_contrast, write_page),
    "json": write_contrast_json,
    "markdown": partial(_write_contrast, write_markdown_page),
}
