"""One small document in every markup that documents of platforms are written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

COLUMNS = ["Protocol", "Port", "Source", "Destination", "Notes"]
Rows = list[list[str]]


@dataclass
class Tables:
    """Two tables with a title each, and a third that is not about ports."""

    first: Rows
    second: Rows
    titles: tuple[str, str] = ("Between nodes", "From outside")


def shop() -> Tables:
    """The document as it was read."""
    return Tables(
        [
            ["TCP", "6443", "agents", "servers", "API"],
            ["UDP", "8472", "all nodes", "all nodes", "only with VXLAN"],
            ["TCP", "2379-2380", "servers", "servers", "only with `etcd`"],
            ["ESP", "N/A", "all nodes", "all nodes", "only with IPsec"],
        ],
        [["TCP", "443", "clients", "servers", ""]],
    )


def markdown(tables: Tables) -> str:
    """Pipe tables, the second one in a tab."""
    first, second = tables.titles
    head, tab = (
        f"---\ntitle: Shop\n---\n\n## {first}\n\n",
        f'\n<Tabs>\n<TabItem value="{second}">\n\n',
    )
    other = "\n</TabItem>\n</Tabs>\n\n## Sizes\n\n| RAM | CPU |\n|---|---|\n| 2 GB | 1 |\n"
    return head + _pipes(tables.first) + tab + _pipes(tables.second) + other


def _pipes(rows: Rows) -> str:
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def jsx(tables: Tables) -> str:
    """HTML tables between headings; a note with "only" is a condition around its row, too."""
    first, second = tables.titles
    body = f"## {first}\n\n{_html(tables.first)}\n### {second}\n\n{_html(tables.second)}"
    return body + "\n## Sizes\n\n<table><tr><th>RAM</th></tr><tr><td>2 GB</td></tr></table>\n"


def _html(rows: Rows) -> str:
    lines = ["<table className='x'>", "  <thead>", _html_row(COLUMNS, "th"), "  </thead>"]
    for row in rows:
        text = _html_row(row, "td")
        if row[-1].startswith("only"):
            text = f"<If condition={{props.mode === '{row[-1]}' || props.all}}>\n{text}\n</If>"
        lines.append(text)
    return "\n".join([*lines, "</table>"]) + "\n"


def _html_row(cells: Sequence[str], tag: str) -> str:
    words = (re.sub("`(.+?)`", r"<code>\1</code>", cell) for cell in cells)
    return "  <tr>" + "".join(f"\n    <{tag}>{word}</{tag}>" for word in words) + "\n  </tr>"


def asciidoc(tables: Tables) -> str:
    """Cells on lines of their own; the protocol of rows that follow each other stands once."""
    first, second = tables.titles
    other = '.Sizes\n[cols="1,1",options="header"]\n|===\n|RAM |CPU\n|2 GB |1\n|===\n'
    code = "\n[source,text]\n----\n|===\n|Port\n|===\n----\n"
    return f"= Shop\n\n{_bars(first, tables.first)}{code}\n{_bars(second, tables.second)}\n{other}"


def _bars(title: str, rows: Rows) -> str:
    lines = [f".{title}", '[cols="1a,1,1,1,2a",options="header"]', "|===", ""]
    lines += [f"|{column}" for column in COLUMNS]
    number = 0
    while number < len(rows):
        run = number
        while run < len(rows) and rows[run][0] == rows[number][0]:
            run += 1
        span = f".{run - number}+" if run - number > 1 else ""
        lines += ["", f"{span}|{rows[number][0]}"]
        for row in rows[number:run]:
            lines += [f"|{cell}" for cell in row[1:]] + [""]
        number = run
    return "\n".join([*lines, "|===", ""])


def rst(tables: Tables) -> str:
    """Simple tables: the title is the section's, or the sentence that leads to the table."""
    first, second = tables.titles
    head = f"Shop\n====\n\n{first}\n{'-' * len(first)}\n\n{_ruled(tables.first)}\n"
    other = "\nSizes\n-----\n\n===== ===\nRAM   CPU\n===== ===\n2 GB  1\n===== ===\n"
    return f"{head}{second}:\n\n{_ruled(tables.second)}{other}"


def _ruled(rows: Rows) -> str:
    rows = [[cell.replace("`", "``") or "\\ " for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in [COLUMNS, *rows]) for place in range(len(COLUMNS))]
    rule = " ".join("=" * width for width in widths)
    lines = (
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    head = " ".join(cell.ljust(width) for cell, width in zip(COLUMNS, widths, strict=True))
    return "\n".join([rule, head, rule, *lines, rule, ""])


MARKUPS: dict[str, Callable[[Tables], str]] = {
    "shop.md": markdown,
    "shop.mdx": jsx,
    "shop.adoc": asciidoc,
    "shop.rst": rst,
}
