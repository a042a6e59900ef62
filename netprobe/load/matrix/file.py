"""Matrix files, bundled or the user's own, with what they extend, become matrices."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from netprobe.errors import Problem, RequestError, all_problems
from netprobe.load.matrix.build import build
from netprobe.load.matrix.bundled import bundled_folder, bundled_path, is_path
from netprobe.load.matrix.checks import PROTOCOL_KEYS, Checks
from netprobe.load.matrix.models import MatrixFile
from netprobe.load.matrix.settings import read_settings
from netprobe.load.yaml.document import Document, check_header
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import validate
from netprobe.load.yaml.wording import quoted
from netprobe.model.matrix import Matrix

# Keys that only a file which extends another may leave out.
_NEEDED = {
    "name": "a name for the matrix",
    "title": "a title for people",
    "roles": "the roles of the requirements",
    "requirements": "at least one requirement",
}


def load_matrices(names_or_paths: Sequence[str]) -> tuple[Matrix, ...]:
    """The chosen matrices in the order given, each once; FileErrors with every problem of all."""
    with all_problems() as problems:
        return read_matrices(names_or_paths, problems)


def read_matrices(names_or_paths: Sequence[str], problems: list[Problem]) -> tuple[Matrix, ...]:
    """As :func:`load_matrices`, but problems are added to a list and the rest goes on."""
    shelf = _Shelf(problems)
    found: dict[str, tuple[Matrix, str]] = {}
    for given in dict.fromkeys(names_or_paths):
        path = shelf.find_file(given)
        matrix = shelf.matrix(path, ()) if path else None
        if path is None or matrix is None:
            continue
        _, other = found.setdefault(matrix.name, (matrix, path))
        if os.path.realpath(other) != os.path.realpath(path):
            words = f"its matrix is called {quoted(matrix.name)} as that of {other}"
            problems.append(Problem(path, 0, 0, f"{words}, expected a name of its own"))
    return tuple(matrix for matrix, _ in found.values())


# Each file of a chain is read before the one that extends it.
MAX_CHAIN = 20


class _Shelf:
    """The files of one request: each is read once, and its problems are noted once."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.done: dict[Path, Matrix | None] = {}

    def find_file(self, given: str) -> str | None:
        """Find the file behind ``--matrix``; None after a problem was noted."""
        try:
            return given if is_path(given) else str(bundled_path(given))
        except RequestError as error:
            self.problems.append(Problem("--matrix", 0, 0, str(error)))
            return None

    def matrix(self, path: str, chain: tuple[Path, ...]) -> Matrix | None:
        """Give the matrix of a file; None where it, or what it extends, has problems."""
        key = Path(os.path.realpath(path))
        if key not in self.done:
            before = len(self.problems)
            document = read_document(path, self.problems)
            made = self._read_matrix(document, (*chain, key)) if document else None
            self.done[key] = made if len(self.problems) == before else None
        return self.done[key]

    def _read_matrix(self, document: Document, chain: tuple[Path, ...]) -> Matrix | None:
        before = len(self.problems)
        if not check_header(document, "matrix"):
            return None
        file = validate(MatrixFile, document)
        extends = document.get(("extends",)) is not None
        base = self._read_base(document, chain) if extends else None
        if extends and base is None:
            # Roles and settings may be those of the extended file, which is broken.
            return None
        settings = read_settings(document, base.settings if base else {})
        Checks(document, base, settings).check_all()
        for key in _NEEDED if base is None else ():
            if document.get((key,)) in (None, [], {}):
                words = f'the key "{key}" is missing, expected {_NEEDED[key]} (or "extends")'
                document.add_key_problem((key,), words)
        if file is None or len(self.problems) > before:
            return None
        matrix = build(file, settings, base, _choose_name(file, base, chain[-1]), document)
        for one in matrix.requirements:
            if one.id in file.override and not any(getattr(one, key) for key in PROTOCOL_KEYS):
                words = "nothing is left to test, expected tcp, udp, icmp or ipproto"
                document.add_key_problem(("override", one.id), words)
        return matrix

    def _read_base(self, document: Document, chain: tuple[Path, ...]) -> Matrix | None:
        path = self._find_extended(document)
        if path is None:
            return None
        key = Path(os.path.realpath(path))
        if key in chain:
            way = " > ".join(step.name for step in (*chain[chain.index(key) :], key))
            words = f"the files extend each other in a circle ({way}), expected an end"
        elif len(chain) >= MAX_CHAIN:
            words = f"{MAX_CHAIN} files extend each other up to here, expected fewer"
        elif _is_beside(path, document.file) or key in self.done:
            return self.matrix(path, chain)
        else:
            return self._read_foreign(path, document, chain)
        document.add_problem(("extends",), words)
        return None

    def _read_foreign(
        self, path: str, document: Document, chain: tuple[Path, ...]
    ) -> Matrix | None:
        """Read a file of another folder: who wrote ``extends:`` need not be its reader.

        What is wrong there is not told: a problem would quote what stands in the file.
        """
        hidden = _Shelf([])
        matrix = hidden.matrix(path, chain)
        if matrix is None:
            words = f"{path} is no matrix without problems; netprobe check {path} lists them"
            document.add_problem(("extends",), words)
        return matrix

    def _find_extended(self, document: Document) -> str | None:
        extends = document.get(("extends",))
        if not isinstance(extends, str):
            return None
        if is_path(extends):
            path = Path(document.file).parent / extends
            if os.path.exists(path):
                return str(path)
            words = f"there is no file {path}, expected a path beside this file"
            document.add_problem(("extends",), words)
            return None
        try:
            return str(bundled_path(extends))
        except RequestError as error:
            document.add_problem(("extends",), str(error))
            return None


def _is_beside(path: str, file: str) -> bool:
    """Whether this is a bundled matrix, or a file in the other one's folder or below."""
    folders = (Path(file).parent, bundled_folder())
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _choose_name(file: MatrixFile, base: Matrix | None, path: Path) -> str:
    """Choose the name that the file gives, else the extended matrix's name and the file's stem."""
    if file.name:
        return file.name
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem)
    return f"{base.name}-{stem}" if base else stem
