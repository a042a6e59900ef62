"""What rich draws: pages, wrapped and coloured unless NO_COLOR is set, and the line of progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from netprobe.model.printable import clean
from netprobe.model.result import HostReport
from netprobe.report.page.page import INDENT, LABEL_WIDTH, Field, Line, PagePart, Style, encodable
from netprobe.report.page.progress import HostEvents, host_text, progress_text

_STYLES: dict[Style, str] = {
    "plain": "", "good": "bold green", "bad": "bold red", "doubt": "bold yellow",
    "quiet": "dim", "strong": "bold",
}  # fmt: skip


def write_terminal(parts: Iterable[PagePart], stream: TextIO, width: int | None = None) -> None:
    """Write the parts with rich's Text only: its markup would take ``[fd00::10]`` for a style.

    ``width`` None: as wide as the terminal is.
    """
    console = _make_console(stream, width)
    for line in _render_parts(parts, console):
        console.print(line, soft_wrap=True)


def count_lines(parts: Iterable[PagePart], stream: TextIO, most: int) -> int:
    """Count the lines that these parts take on a terminal, at most so many."""
    return sum(1 for _ in islice(_render_parts(parts, _make_console(stream)), most))


def _make_console(stream: TextIO, width: int | None = None) -> Console:
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def _render_parts(parts: Iterable[PagePart], console: Console) -> Iterator[Text]:
    for part in parts:
        if isinstance(part, Line):
            yield from _render_line(part, console)
        else:
            yield from _render_field(part, console)


def _render_line(part: Line, console: Console) -> Iterator[Text]:
    """Wrap a line; what does not fit on the first hangs under it."""
    text = clean(part.text)
    indent = len(text) - len(text.lstrip(" "))
    first, *more = _wrap_text(text.strip(), indent, part.style, console)
    yield Text.assemble(" " * indent, first)
    if more:
        rest = text.strip()[len(first.plain) :].lstrip(" ")
        for line in _wrap_text(rest, part.hang, part.style, console):
            yield Text.assemble(" " * part.hang, line)


def _render_field(part: Field, console: Console) -> Iterator[Text]:
    """Render a label, and beside it text that wraps under itself."""
    margin = len(INDENT) + LABEL_WIDTH + 1
    label = f"{INDENT}{part.label}".ljust(margin)
    for text in part.lines:
        for line in _wrap_text(clean(str(text)), margin, "plain", console):
            yield Text.assemble((label, _STYLES["quiet"]), line)
            label = " " * margin


def _wrap_text(text: str, margin: int, style: Style, console: Console) -> Iterator[Text]:
    whole = Text(encodable(text, console.file), style=_STYLES[style])  # type: ignore[arg-type]
    for line in whole.wrap(console, max(20, console.width - margin), overflow="fold"):
        line.rstrip()
        yield line


@contextmanager
def live_progress(stream: TextIO) -> Iterator[HostEvents]:
    """Draw until left; then the line is gone, and lines about hosts stay."""
    console = _make_console(stream)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Live(bar, bar.add_task("starting", total=None, note=""))


class _Live:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task
        self._agents = 0

    def host(self, report: HostReport) -> None:
        if report.state in ("failed", "lost"):
            self.tell_line(host_text(report))
        elif report.state == "agent":
            self._agents += 1
            self._bar.update(self._task, note=f"{self._agents} agents")

    def tell_line(self, text: str) -> None:
        line = encodable(clean(text), self._bar.console.file)  # type: ignore[arg-type]  # rich: IO
        self._bar.console.print(Text(line, style="yellow"))

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        self._bar.update(
            self._task,
            description=progress_text(done_flows, total_flows),
            completed=done_flows,
            total=total_flows,
            note=clean(note),
        )
