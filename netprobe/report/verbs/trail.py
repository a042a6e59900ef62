"""A trail of checks on a page and in JSON, for ``explain`` and ``diagnose konnectivity``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netprobe.model.dataclass_json import Json
from netprobe.model.story import Step, TrailStatus
from netprobe.report.page.page import Line, PagePart, Style, field

# The mark before an entry's words, so that the failing step stands out.
_MARKS: dict[TrailStatus, str] = {
    "ok": "", "bad": "!! ", "doubt": "?? ", "not-needed": "-- ", "not-possible": "-- ",
}  # fmt: skip
# The column of a table; in lower case they are the status words of ``netprobe.konnectivity/1``.
_COLUMN: dict[TrailStatus, str] = {
    "ok": "ok", "bad": "FAIL", "doubt": "warn", "not-needed": "-", "not-possible": "-",
}  # fmt: skip
_STYLES: dict[TrailStatus, Style] = {
    "ok": "plain", "bad": "bad", "doubt": "doubt", "not-needed": "quiet", "not-possible": "quiet",
}  # fmt: skip


def trail_fields(entries: Iterable[Step]) -> Iterator[PagePart]:
    """Give each entry as a labelled field, one line a sentence."""
    for entry in entries:
        first, *rest = entry.words
        yield from field(entry.name.replace("-", " "), [f"{_MARKS[entry.status]}{first}", *rest])


def trail_lines(entries: Iterable[Step], width: int) -> Iterator[PagePart]:
    """Each entry as one line: its name in a column of this width, its status, its sentences."""
    for entry in entries:
        words = "; ".join(entry.words)
        text = f"   {entry.name:<{width}}  {_COLUMN[entry.status]:<4}  {words}"
        yield Line(text.rstrip(), _STYLES[entry.status], hang=width + 11)


def status_column(entries: Iterable[Step], name: str) -> str:
    """Give one word for the status of the entry of this name, as a table shows it."""
    return next((_COLUMN[entry.status] for entry in entries if entry.name == name), "-")


def steps_to_json(entries: Iterable[Step]) -> list[Json]:
    """``steps`` of ``netprobe.explain/1``."""
    return [
        {
            "name": entry.name,
            "status": entry.status,
            "facts": dict(entry.facts),
            "words": list(entry.words),
        }
        for entry in entries
    ]


def stages_to_json(entries: Iterable[Step]) -> list[Json]:
    """``stages`` of ``netprobe.konnectivity/1``, with status words of their own."""
    return [
        {
            "name": entry.name,
            "status": "skipped" if entry.is_skipped else _COLUMN[entry.status].lower(),
            "said": "; ".join(entry.words),
            "elapsed_ms": entry.elapsed_ms,
            "facts": dict(entry.facts),
        }
        for entry in entries
    ]
