"""What ``netprobe diff`` says of two runs: for people, for tickets, and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TextIO

from msgspec import Struct

from netprobe.model.codec import result_to_json
from netprobe.model.printable import escape_markdown
from netprobe.model.result import Result
from netprobe.model.run import RunInfo
from netprobe.model.struct_json import Json
from netprobe.report.page.flow_groups import addresses_of
from netprobe.report.page.page import Line, PageSection, write_page
from netprobe.report.page.wording import number, plural
from netprobe.report.record.changes import Changes, Fate, Unshared
from netprobe.report.run.change_sections import change_sections
from netprobe.report.run.json import write_document
from netprobe.report.run.markdown import MOST_BYTES, MarkdownRoom, section_lines

DIFF_SCHEMA = "netprobe.diff/1"


class RunDiff(Struct, frozen=True):
    """Two runs, each with its file and what is known of it, and what changed between them."""

    files: tuple[str, str]
    runs: tuple[RunInfo, RunInfo]
    changes: Changes


def write_diff_text(diff: RunDiff, stream: TextIO) -> None:
    """Write what became worse first, the counts last."""
    sections = ((*section.lines(), Line()) for section in _list_sections(diff))
    write_page([*chain.from_iterable(sections), Line(_word_totals(diff))], stream)


def write_diff_markdown(diff: RunDiff, stream: TextIO) -> None:
    """Write the counts first, then the sections as far as there is room."""
    room = MarkdownRoom(stream, MOST_BYTES)
    old, new = map(escape_markdown, diff.files)
    room.write_block([f"# {old} to {new}", "", escape_markdown(_word_totals(diff))])
    for section in _list_sections(diff):
        room.write_block(section_lines(section))


def write_diff_json(diff: RunDiff, stream: TextIO) -> None:
    """Write ``netprobe.diff/1``: one flow, or one range of ports, a line."""
    changes = diff.changes
    earlier, later = map(_run_to_json, diff.files, diff.runs)
    document = {
        "earlier": earlier,
        "later": later,
        "counts": changes.counts(),
        "worse": map(result_to_json, changes.worse),
        "decided": map(result_to_json, changes.decided),
        "unknown": map(result_to_json, changes.unknown),
        "fixed": map(result_to_json, changes.fixed),
        "moved": _list_with_before(changes.moved),
        "otherwise": _list_with_before(changes.otherwise),
        "still": map(result_to_json, changes.still),
        "only_later": _list_unshared(changes.only_later),
        "only_earlier": _list_unshared(changes.only_earlier),
    }
    write_document(DIFF_SCHEMA, document, stream)


def _list_sections(diff: RunDiff) -> Iterator[PageSection]:
    return change_sections(diff.changes, addresses_of(*diff.runs))


def _word_totals(diff: RunDiff) -> str:
    old, new = diff.runs
    told = {kind: number(flows) for kind, flows in diff.changes.counts().items()}
    compared = diff.changes.compared
    if not compared:
        return f"{old.started_at} to {new.started_at}: nothing is compared: {_word_only(diff)}"
    return (
        f"{old.started_at} to {new.started_at}: {plural(compared, 'flow')} of both runs compared: "
        f"{told['worse']} newly blocked or exposed, {told['decided']} now decided to be, "
        f"{told['unknown']} no longer known, "
        f"{told['fixed']} fixed, {told['still']} still blocked or exposed, "
        f"{told['otherwise']} in another way, {told['moved']} moved, "
        f"{told['known']} newly known to pass, {told['unchanged']} unchanged; {_word_only(diff)}"
    )


def word_nothing_shared(diff: RunDiff) -> str:
    """Say that two runs share no flow, and of which matrices each is."""
    of = (
        f"{file} is of {', '.join(matrix.name for matrix in info.matrices)}"
        for file, info in zip(diff.files, diff.runs, strict=True)
    )
    return (
        f"nothing is compared: both runs probed no flow in common ({'; '.join(of)}); give two runs "
        "of the same matrix and hosts"
    )


def _word_only(diff: RunDiff) -> str:
    """Say how much only one of the runs has probed."""
    later, earlier = diff.changes.only_later, diff.changes.only_earlier
    return f"{_word_unshared(later, 'later')}, {_word_unshared(earlier, 'earlier')}"


def _word_unshared(some: Unshared, which: str) -> str:
    failed = f" ({number(some.failed)} failed there)" if some.failed else ""
    return f"{number(some.flows)} probed by the {which} run only{failed}"


def _run_to_json(file: str, info: RunInfo) -> Json:
    return {
        "file": file,
        "started_at": info.started_at,
        "complete": info.complete,
        "matrices": [matrix.name for matrix in info.matrices],
        "selection": info.selection,
        "sample": info.sample,
    }


def _list_with_before(by_fate: Mapping[Fate, Iterable[Result]]) -> Iterator[Json]:
    for before, results in by_fate.items():
        for result in results:
            yield {"before": str(before), **result_to_json(result)}


def _list_unshared(some: Unshared) -> Iterator[Json]:
    for (matrix, requirement), names in some.names.items():
        yield {
            "matrix": matrix,
            "requirement": requirement,
            "sources": list(names.sources),
            "destinations": [
                {"host": host, "address": address} for host, address in names.destinations
            ],
            "ports": names.ports_text(),
            "flows": names.flows,
        }


DIFF_WRITERS: Final[Mapping[str, Callable[[RunDiff, TextIO], None]]] = {
    "text": write_diff_text,
    "json": write_diff_json,
    "markdown": write_diff_markdown,
}
