"""The words of docs/performance.md around the table: ``page.md`` with its blanks filled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from bench import tools
from bench.table import markdown

TEMPLATE = Path(__file__).with_name("page.md")


def text(rows: Sequence[str], machine: str, *, full: bool) -> str:
    """The whole page."""
    return TEMPLATE.read_text(encoding="utf-8").format(
        size=" (`--full`)" if full else "",
        machine=machine,
        table=markdown(rows),
        nmap=" ".join(tools.NMAP_TCP),
        nmap_udp=" ".join(tools.NMAP_UDP),
        masscan=" ".join(tools.MASSCAN),
        fping=" ".join(tools.FPING),
    )


def merged(page: str, lines: Sequence[str]) -> list[str]:
    """The page's rows with these in the place of those that measured the same work."""
    table = page[page.index("| --- |") :].splitlines()[1:]
    new = {_work(line): line for line in lines}
    kept = [new.pop(_work(line), line) for line in takewhile(lambda line: line[:1] == "|", table)]
    return [*kept, *new.values()]


def _work(line: str) -> tuple[str, str]:
    """What a row measures, whatever its numbers: the work, and against whom."""
    cells = [re.sub(r"\d[\d,.]*", "", cell).strip() for cell in line.split("|")]
    return cells[1], cells[3].partition(" s ")[0]
