"""Rows of measurements: medians, ratios, goals, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.tools import Timed

HEAD = ("work", "netprobe", "against", "result", "goal", "met", "wrong")


@dataclass(frozen=True)
class Row:
    """One line of the table; ``met`` None: there is no goal, it is for comparison."""

    work: str
    ours: str
    against: str
    result: str
    goal: str = ""
    met: bool | None = None
    wrong: str = ""

    def cells(self) -> tuple[str, ...]:
        """The cells in the order of HEAD."""
        met = {None: "", True: "yes", False: "no"}[self.met]
        return (self.work, self.ours, self.against, self.result, self.goal, met, self.wrong)


def seconds(runs: Sequence[Timed]) -> str:
    """Median wall and processor seconds."""
    wall_s, cpu_s = median(run.wall_s for run in runs), median(run.cpu_s for run in runs)
    return f"{wall_s:.2f} s ({cpu_s:.2f} s CPU)"


def ratio(ours: Sequence[Timed], theirs: Sequence[Timed], cpu: bool) -> float:
    """How many times faster we are: the median over the pairs of interleaved runs."""

    def pick(run: Timed) -> float:
        return run.cpu_s if cpu else run.wall_s

    pairs = zip(ours, theirs, strict=True)
    return median(pick(theirs_) / pick(ours_) for ours_, theirs_ in pairs)


def wall_ratio(ours: Sequence[Timed], theirs: Sequence[Timed]) -> float:
    """How many times faster we are in wall time."""
    return ratio(ours, theirs, cpu=False)


def against(
    work: str, ours: Sequence[Timed], name: str, theirs: Sequence[Timed], goal: float | None
) -> Row:
    """A row of two programs on the same work; the goal is a ratio of wall time."""
    wall, cpu = ratio(ours, theirs, cpu=False), ratio(ours, theirs, cpu=True)
    wrong = f"{max(run.wrong for run in ours):,}; {name} {max(run.wrong for run in theirs):,}"
    return Row(
        work, seconds(ours), f"{name} {seconds(theirs)}", f"{wall:.2f}x ({cpu:.2f}x CPU)",
        "" if goal is None else f">= {goal}x",
        None if goal is None else round(wall, 2) >= goal, wrong,
    )  # fmt: skip


def line(row: Row) -> str:
    """A row as Markdown."""
    return _line(row.cells())


def markdown(lines: Sequence[str]) -> str:
    """The table of these lines."""
    return "\n".join([_line(HEAD), _line(["---"] * len(HEAD)), *lines])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
