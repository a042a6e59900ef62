"""Matrix files, bundled or the user's own, with what they extend, become matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from netprobe.errors import FileErrors, Problem
from netprobe.load.matrix.build import build, empty_overrides
from netprobe.load.matrix.bundled import (
    bundled_folder,
    bundled_names,
    bundled_titles,
    is_path,
    unknown_name,
)
from netprobe.load.matrix.checks import Checks
from netprobe.load.matrix.models import MatrixFile
from netprobe.load.matrix.settings import read_settings
from netprobe.load.yaml.document import Document, check_header, is_header_problem
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import validate
from netprobe.load.yaml.wording import quoted
from netprobe.model.matrix import Matrix

__all__ = ["bundled_names", "bundled_titles", "load_matrices", "read_matrices"]


def load_matrices(names_or_paths: Sequence[str]) -> tuple[Matrix, ...]:
    """The chosen matrices in the order given, each once; FileErrors with every problem of all."""
    problems: list[Problem] = []
    matrices = read_matrices(names_or_paths, problems)
    if problems:
        raise FileErrors(problems)
    return matrices


def read_matrices(names_or_paths: Sequence[str], problems: list[Problem]) -> tuple[Matrix, ...]:
    """As :func:`load_matrices`, but problems are added to a list and the rest goes on."""
    shelf = _Shelf(problems)
    found: dict[str, tuple[Matrix, str]] = {}
    for given in dict.fromkeys(names_or_paths):
        path = shelf.path_of(given)
        matrix = shelf.matrix(path, ()) if path else None
        if matrix is None:
            continue
        other = found.get(matrix.name)
        if other and Path(other[1]).resolve() != Path(str(path)).resolve():
            words = f"its matrix is called {quoted(matrix.name)} as that of {other[1]}"
            problems.append(Problem(str(path), 0, 0, f"{words}, expected a name of its own"))
        found.setdefault(matrix.name, (matrix, str(path)))
    return tuple(matrix for matrix, _ in found.values())


class _Shelf:
    """The files of one request: each is read once, and its problems are noted once."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.done: dict[Path, Matrix | None] = {}

    def path_of(self, given: str) -> str | None:
        """The file behind ``--matrix``; None after a problem was noted."""
        if is_path(given):
            return given
        problem = unknown_name(given)
        if problem is None:
            return str(bundled_folder() / f"{given}.yaml")
        self.problems.append(problem)
        return None

    def matrix(self, path: str, chain: tuple[Path, ...]) -> Matrix | None:
        """The matrix of a file; None where it, or what it extends, has problems."""
        key = Path(path).absolute()
        if key not in self.done:
            before = len(self.problems)
            document = read_document(path, self.problems)
            made = self._read(document, (*chain, key)) if document else None
            self.done[key] = made if len(self.problems) == before else None
        return self.done[key]

    def _read(self, document: Document, chain: tuple[Path, ...]) -> Matrix | None:
        before = len(self.problems)
        if not check_header(document, "matrix", self.problems):
            return None
        extends = document.get(("extends",)) is not None
        base = self._base(document, chain) if extends else None
        if extends and base is None:
            # What it extends is broken: say what can be said without knowing the names of that.
            self._validated(document)
            return None
        settings = read_settings(document, base.settings if base else {}, self.problems)
        Checks(document, base, settings, self.problems).all()
        if not extends:
            self._complete(document)
        file = self._validated(document)
        if file is None or len(self.problems) > before:
            return None
        matrix = build(file, settings, base, _name(file, base, chain[-1]))
        for name in empty_overrides(matrix, file.override):
            words = "nothing is left to test, expected tcp, udp, icmp or ipproto"
            self.problems.append(document.at_key(("override", name), words))
        return matrix

    def _validated(self, document: Document) -> MatrixFile | None:
        found: list[Problem] = []
        file = validate(MatrixFile, document, found)
        self.problems.extend(p for p in found if not is_header_problem(p, document))
        return file

    def _base(self, document: Document, chain: tuple[Path, ...]) -> Matrix | None:
        extends = document.get(("extends",))
        if not isinstance(extends, str):
            return None
        path = self._extended(document, extends)
        if path is None:
            return None
        key = Path(path).absolute()
        if key in chain:
            way = " > ".join(step.name for step in (*chain[chain.index(key) :], key))
            words = f"the files extend each other in a circle ({way}), expected an end"
            self.problems.append(document.at(("extends",), words))
            return None
        return self.matrix(path, chain)

    def _extended(self, document: Document, extends: str) -> str | None:
        if is_path(extends):
            path = Path(document.file).parent / extends
            if path.exists():
                return str(path)
            words = f"there is no file {path}, expected a path beside this file"
            self.problems.append(document.at(("extends",), words))
            return None
        problem = unknown_name(extends)
        if problem is None:
            return str(bundled_folder() / f"{extends}.yaml")
        self.problems.append(document.at(("extends",), problem.text))
        return None

    def _complete(self, document: Document) -> None:
        """Keys that only a file which extends another may leave out."""
        for key in ("name", "title", "roles", "requirements"):
            if document.get((key,)) in (None, [], {}):
                words = f'the key "{key}" is missing, expected {_NEEDED[key]} (or "extends")'
                self.problems.append(document.at_key((key,), words))


def _name(file: MatrixFile, base: Matrix | None, path: Path) -> str:
    """The file's own name, else that of what it extends with the file's own behind it."""
    if file.name:
        return file.name
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem)
    return f"{base.name}-{stem}" if base else stem


_NEEDED = {
    "name": "a name for the matrix",
    "title": "a title for people",
    "roles": "the roles of the requirements",
    "requirements": "at least one requirement",
}
