"""reStructuredText, as docutils reads it; what only Sphinx knows is passed over."""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

from drift.tables import Table, build_table

_QUIET = {
    "report_level": 5,
    "halt_level": 5,
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "warning_stream": False,
}
# Directives of Sphinx and its extensions that have text in them, which may have tables.
_AROUND = ("only", "tabs", "tab", "group-tab", "versionchanged", "versionadded", "deprecated")
# Roles of Sphinx: of what they say the words count.
_ROLES = ("ref", "doc", "term", "any", "git-tree", "download")


class _Around(Directive):
    """A directive that is read as if its content stood there alone."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Give what stands in it."""
        around = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, around)
        return around.children


def _read_role(
    _name: str, _rawtext: str, text: str, _line: int, _inliner: object, *_more: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    return [nodes.literal(text, text.partition("<")[0].strip() or text)], []


def read_rst(text: str) -> list[Table]:
    """All tables about ports, in order."""
    for name in _AROUND:
        directives.register_directive(name, _Around)
    for name in _ROLES:
        roles.register_local_role(name, _read_role)  # type: ignore[arg-type]
    tree = publish_doctree(text, settings_overrides=_QUIET)
    for message in list(tree.findall(nodes.system_message)):
        message.parent.remove(message)
    made = (_read_table(one) for one in tree.findall(nodes.table))
    return [table for table in made if table]


def _read_table(table: nodes.table) -> Table | None:
    rows = [_read_row(row) for row in table.findall(nodes.row)]
    return build_table(_heading_of(table), rows[0], [(row, "") for row in rows[1:]])


def _read_row(row: nodes.row) -> list[str]:
    cells: list[str] = []
    for entry in row.findall(nodes.entry):
        cells += [entry.astext()] * (1 + int(entry.get("morecols", 0)))
    return cells


def _heading_of(table: nodes.table) -> str:
    """Its title, or the paragraph that leads to it (it ends in ``:``), or its section's title."""
    title = next(iter(table.findall(nodes.title)), None)
    if title is not None:
        return title.astext()
    before: nodes.Node | None = table.previous_sibling()
    if isinstance(before, nodes.paragraph) and before.astext().endswith(":"):
        return before.astext().rstrip(":")
    parent: Any = table.parent
    while parent is not None:
        title = next((one for one in parent.children if isinstance(one, nodes.title)), None)
        if title is not None:
            return title.astext()
        parent = parent.parent
    return ""
