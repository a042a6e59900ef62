"""Markdown with tables, and MDX: headings, pipe tables, HTML tables, and tabs around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from drift.formats.html import read_html_tables
from drift.tables import Table, build_table, normalise

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_ANCHOR = re.compile(r"\s*\{#[^}]*\}\s*\Z")
# What MkDocs indents: a tab, which Markdown alone would read as code.
_INDENTED = re.compile(r"===\+? \"(.*)\"\s*\Z")
_TAB = re.compile(r"<TabItem\b[^>]*?\b(?:label|value)=\"([^\"]*)\"")


def read_markdown(text: str) -> list[Table]:
    """All tables about ports, in order."""
    text = "\n".join(_unindent(_FRONT.sub("", text).splitlines()))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return list(_walk(tokens, text.splitlines()))


def _unindent(lines: Sequence[str]) -> Iterator[str]:
    """The lines with the tabs of MkDocs as those of other tools."""
    is_tab = False
    for line in lines:
        if is_tab and line.strip() and not line.startswith("    "):
            is_tab = False
            yield from ("", "</TabItem>", "")
        if found := _INDENTED.match(line):
            is_tab = True
            yield from ("", f'<TabItem label="{found[1]}">', "")
        else:
            yield line.removeprefix("    ") if is_tab else line


def _walk(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Table]:
    heading = tab = ""
    done = 0  # the line behind the last HTML table
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            heading, tab = _ANCHOR.sub("", _plain(tokens[index + 1])), ""
        elif token.type == "html_block":
            tab = _tab_of(token.content, tab)
            first = token.map[0] if token.map else 0
            if "<table" in token.content and first >= done:
                done = _end_of_table(lines, first)
                yield from read_html_tables("\n".join(lines[first:done]), heading)
        elif token.type == "table_open":
            made = _read_table(tokens[index:], f"{heading}, {tab}" if tab else heading)
            if made:
                yield made


def _end_of_table(lines: Sequence[str], first: int) -> int:
    """An empty line ends a block of HTML for Markdown, but not a table for a browser."""
    for number in range(first, len(lines)):
        if "</table" in lines[number]:
            return number + 1
    return len(lines)


def _tab_of(content: str, tab: str) -> str:
    for found in re.finditer(r"</TabItem>|" + _TAB.pattern, content):
        tab = normalise(found[1] or "")
    return tab


def _read_table(tokens: Sequence[Token], heading: str) -> Table | None:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_plain(token))
        elif token.type == "table_close":
            break
    return build_table(heading, rows[0], [(row, "") for row in rows[1:]])


def _plain(token: Token) -> str:
    """The text of a heading or cell: of links and emphasis the words, of HTML nothing."""
    return "".join(
        " " if one.type in ("softbreak", "hardbreak") or one.content.startswith("<br") else
        one.content if one.type in ("text", "code_inline") else ""
        for one in token.children or ()
    )  # fmt: skip
