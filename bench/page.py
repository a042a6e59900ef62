"""The words of docs/performance.md around the table: ``page.md`` with its blanks filled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import tools
from bench.table import Row, markdown

TEMPLATE = Path(__file__).with_name("page.md")


def text(rows: Sequence[Row], machine: str, *, full: bool) -> str:
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
