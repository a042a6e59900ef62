"""The live progress line on a terminal, drawn by rich on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from netprobe.model.printable import clean
from netprobe.model.result import HostReport
from netprobe.model.run import Events
from netprobe.report.page.page import encodable
from netprobe.report.page.progress import host_text, progress_text


@contextmanager
def live_progress(stream: TextIO) -> Iterator[Events]:
    """Draw until left; then the line is gone, and lines about hosts stay."""
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
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
            text = clean(host_text(report))
            line = encodable(text, self._bar.console.file)  # type: ignore[arg-type]  # rich: IO
            self._bar.console.print(Text(line, style="yellow"))
        elif report.state == "agent":
            self._agents += 1
            self._bar.update(self._task, note=f"{self._agents} agents")

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        self._bar.update(
            self._task,
            description=progress_text(done_flows, total_flows),
            completed=done_flows,
            total=total_flows,
            note=clean(f"waits for {note}" if note else ""),
        )
