"""A file that parsed: its values with their places, and the ``schema:`` line that says its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from netprobe.errors import Problem
from netprobe.load.yaml.wording import quoted, what_it_is

KINDS = {"matrix": "--matrix", "inventory": "-i"}
VERSION = 1
_SCHEMA = re.compile(r"netprobe\.([a-z]+)/(\d{1,9})\Z", re.ASCII)

PathStep = str | int
Path = Sequence[PathStep]
Mark = tuple[int, int]


@dataclass(slots=True)
class Node:
    """One value; ``mark`` is its (line, column) from 1. Mappings know the marks of their keys."""

    value: object
    mark: Mark
    size: int = 1
    keys: dict[str, Mark] = field(default_factory=dict)
    children: dict[PathStep, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values (``value``) and a way to say where something in it is wrong."""

    file: str
    root: Node

    @property
    def value(self) -> object:
        """The whole file as plain dicts, lists and scalars."""
        return self.root.value

    def get(self, path: Path) -> object:
        """The value that ``path`` leads to; None where it leads nowhere."""
        node, rest = self._walk(path)
        return None if rest else node.value

    def at(self, path: Path, text: str) -> Problem:
        """A problem at the value that ``path`` leads to (or at what is nearest to it)."""
        return self._problem(self._walk(path)[0].mark, text)

    def at_key(self, path: Path, text: str) -> Problem:
        """A problem at the key that ``path`` ends with; at the value where it is no key."""
        parent, rest = self._walk(path[:-1])
        name = path[-1] if path and not rest else None
        mark = parent.keys.get(name) if isinstance(name, str) else None
        return self._problem(mark, text) if mark else self.at(path, text)

    def place(self, path: Path) -> str:
        """``file:line:column`` of the key that ``path`` ends with."""
        problem = self.at_key(path, "")
        return f"{problem.file}:{problem.line}:{problem.column}"

    def _walk(self, path: Path) -> tuple[Node, Path]:
        node = self.root
        for index, step in enumerate(path):
            child = node.children.get(step)
            if child is None:
                return node, path[index:]
            node = child
        return node, ()

    def _problem(self, mark: Mark, text: str) -> Problem:
        return Problem(self.file, mark[0], mark[1], text)


def problem_at(place: str, text: str) -> Problem:
    """A problem at a ``file:line:column`` of :meth:`Document.place`, or at a file without lines."""
    parts = place.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return Problem(parts[0], int(parts[1]), int(parts[2]), text)
    return Problem(place, 0, 0, text)


def kind_of(schema: object) -> str | None:
    """``matrix``, ``inventory``, another kind of ours, or None."""
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    return match[1] if match else None


def check_header(document: Document, kind: str, out: list[Problem]) -> bool:
    """Whether the rest of the file is worth checking as this kind."""
    schema = document.get(("schema",))
    expected = f"netprobe.{kind}/{VERSION}"
    if schema is None:
        words = f'the key "schema" is missing, expected "schema: {expected}"'
        out.append(document.at_key(("schema",), words))
        return True
    if schema == expected:
        return True
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    if match is None:
        words = quoted(schema) + " is no schema" if isinstance(schema, str) else what_it_is(schema)
        out.append(document.at(("schema",), f"{words}, expected {expected}"))
        return True
    out.append(document.at(("schema",), _other(match[1], int(match[2]), kind, expected)))
    return False


def is_header_problem(problem: Problem, document: Document) -> bool:
    """Whether pydantic complains about the ``schema:`` line, which was judged here already."""
    here = document.at(("schema",), "")
    on_line = (
        document.get(("schema",)) is not None and problem.sort_key()[:3] == here.sort_key()[:3]
    )
    return on_line or problem.text.startswith('the key "schema" is missing')


def _other(found: str, version: int, kind: str, expected: str) -> str:
    if found == kind:
        age = "newer" if version > VERSION else "other"
        return f"this file is of the {age} schema netprobe.{kind}/{version}, expected {expected}"
    hint = f" (a file of this kind is given with {KINDS[found]})" if found in KINDS else ""
    return f"this is a netprobe.{found} file, expected {expected}{hint}"
