"""A file that parsed: its plain values, and the place in the file where each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from netprobe.errors import Problem

Step = str | int
Path = Sequence[Step]
Mark = tuple[int, int]


@dataclass(slots=True)
class Node:
    """One value; ``mark`` is its (line, column) from 1. Mappings know the marks of their keys."""

    value: object
    mark: Mark
    size: int = 1
    keys: dict[str, Mark] = field(default_factory=dict)
    children: dict[Step, Node] = field(default_factory=dict)


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
