"""A file that parsed: its values with their places, and the ``schema:`` line that says its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from netprobe.errors import Problem
from netprobe.load.yaml.wording import quoted, what_it_is

KINDS = {"matrix": "--matrix", "inventory": "-i", "accepted": "--accepted"}
VERSION = 1
# Every object of Kubernetes and every file of OpenShift's installer has this key, and no file of
# ours.
MANIFEST_KEY = "apiVersion"
_SCHEMA = re.compile(r"netprobe\.([a-z]+)/(\d{1,9})\Z", re.ASCII)

PathStep = str | int
YamlPath = Sequence[PathStep]
YamlPlace = tuple[int, int]


class Node(Struct):
    """One value; ``mark`` is its (line, column) from 1. Mappings know the marks of their keys.

    ``begin`` is where the text of a literal block ("|") begins; None for all else.
    """

    value: object
    mark: YamlPlace
    size: int = 1
    keys: dict[str, YamlPlace] = field(default_factory=dict)
    children: dict[PathStep, Node] = field(default_factory=dict)
    begin: YamlPlace | None = None


class Document(Struct, frozen=True):
    """A file's values (``value``), and the list of the request's problems, which it adds to."""

    file: str
    root: Node
    problems: list[Problem]

    @property
    def value(self) -> object:
        """The whole file as plain dicts, lists and scalars."""
        return self.root.value

    def get(self, path: YamlPath) -> object:
        """Give the value that ``path`` leads to; None where it leads nowhere."""
        node, rest = self._walk_to(path)
        return None if rest else node.value

    def items(self, path: YamlPath) -> dict[str, object]:
        """Give the mapping that ``path`` leads to; an empty one where it leads to anything else."""
        value = self.get(path)
        return value if isinstance(value, dict) else {}

    def add_problem(self, path: YamlPath, text: str) -> None:
        """Add a problem at the value that ``path`` leads to (or at what is nearest to it)."""
        self.problems.append(Problem(self.file, *self.mark_of(path), text))

    def add_key_problem(self, path: YamlPath, text: str) -> None:
        """Add a problem at the key that ``path`` ends with; at the value where it is no key."""
        self.problems.append(Problem(self.file, *self.mark_of_key(path), text))

    def mark_of(self, path: YamlPath) -> YamlPlace:
        """Line and column of the value that ``path`` leads to (or of what is nearest to it)."""
        return self._walk_to(path)[0].mark

    def mark_of_key(self, path: YamlPath) -> YamlPlace:
        """Line and column of the key that ``path`` ends with; of the value where it is no key."""
        parent, rest = self._walk_to(path[:-1])
        mark = parent.keys.get(str(path[-1])) if path and not rest else None
        return mark or self.mark_of(path)

    def begin_of(self, path: YamlPath) -> YamlPlace | None:
        """Where the text of a literal block begins, line by line; None for all else."""
        node, rest = self._walk_to(path)
        return None if rest else node.begin

    def place(self, path: YamlPath) -> str:
        """``file:line:column`` of the key that ``path`` ends with."""
        line, column = self.mark_of_key(path)
        return f"{self.file}:{line}:{column}"

    def _walk_to(self, path: YamlPath) -> tuple[Node, YamlPath]:
        node = self.root
        for index, step in enumerate(path):
            child = node.children.get(step)
            if child is None:
                return node, path[index:]
            node = child
        return node, ()


def problem_at(place: str, text: str) -> Problem:
    """A problem at a ``file:line:column`` of :meth:`Document.place`, or at a file without lines."""
    parts = place.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return Problem(parts[0], int(parts[1]), int(parts[2]), text)
    return Problem(place, 0, 0, text)


def kind_of(schema: object) -> str | None:
    """Give the kind that the ``schema:`` line names (``matrix``, ``inventory`` ...), or None."""
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    return match[1] if match else None


def check_header(document: Document, kind: str) -> bool:
    """Tell whether the rest of the file is worth checking as this kind."""
    path = ("schema",)
    schema = document.get(path)
    expected = f"netprobe.{kind}/{VERSION}"
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    if match and schema != expected:
        document.add_problem(path, _word_other_schema(match[1], int(match[2]), kind, expected))
        return False
    if schema is None and MANIFEST_KEY in document.items(()):
        document.add_key_problem((MANIFEST_KEY,), word_manifest(expected))
        return False
    if schema is None:
        words = f'the key "schema" is missing, expected "schema: {expected}"'
        document.add_key_problem(path, words)
    elif not match:
        words = quoted(schema) + " is no schema" if isinstance(schema, str) else what_it_is(schema)
        document.add_problem(path, f"{words}, expected {expected}")
    return True


def word_manifest(expected: str) -> str:
    """Tell that a file is none of ours, and where it belongs."""
    return f"this is a manifest, expected {expected} (a manifest is given with --manifest)"


def _word_other_schema(found: str, version: int, kind: str, expected: str) -> str:
    if found == kind:
        age = "newer" if version > VERSION else "other"
        return f"this file is of the {age} schema netprobe.{kind}/{version}, expected {expected}"
    hint = f" (a file of this kind is given with {KINDS[found]})" if found in KINDS else ""
    return f"this is a netprobe.{found} file, expected {expected}{hint}"
