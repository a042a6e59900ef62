"""The ``schema:`` line that says what kind of file this is, and since when."""

from __future__ import annotations

import re

from netprobe.errors import Problem
from netprobe.load.yaml.document import Document
from netprobe.load.yaml.wording import quoted, what_it_is

KINDS = {"matrix": "--matrix", "inventory": "-i"}
VERSION = 1
_SCHEMA = re.compile(r"netprobe\.([a-z]+)/(\d{1,9})\Z", re.ASCII)


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
