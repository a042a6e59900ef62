"""The matrices that come with netprobe: where they are, their names and titles, read cheaply."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

import netprobe
from netprobe.errors import RequestError
from netprobe.load.yaml.wording import instead_of, quoted

SUFFIXES = (".yaml", ".yml")


def bundled_folder() -> Path:
    """``netprobe/_matrices`` in a wheel, ``matrices/`` beside the package in a checkout."""
    package = Path(netprobe.__file__).parent
    installed = package / "_matrices"
    return installed if installed.is_dir() else package.parent / "matrices"


def bundled_names() -> tuple[str, ...]:
    """Give the names that ``--matrix NAME`` knows, sorted."""
    return tuple(sorted(path.stem for path in bundled_folder().glob("*.yaml")))


class MatrixTitle(Struct, frozen=True):
    """What ``matrix list`` says of a matrix; ``layer``: it is a part of a platform."""

    title: str
    layer: bool


def bundled_titles() -> dict[str, MatrixTitle]:
    """Name and title of every bundled matrix, without pydantic: ``matrix list`` must be quick."""
    # Shell completion wants the names alone, and quickly: without PyYAML.
    from netprobe.load.yaml.source import head  # noqa: PLC0415

    found = {}
    for name in bundled_names():
        said = head(str(bundled_path(name)), ("title", "layer"), until="roles")
        found[name] = MatrixTitle(said.get("title", ""), said.get("layer") == "true")
    return found


def is_path(text: str) -> bool:
    """Whether this is a file rather than a bundled name: it has a ``/`` or ends in ``.yaml``."""
    return "/" in text or text.endswith(SUFFIXES)


def bundled_path(name: str) -> Path:
    """The file of a bundled matrix; RequestError with the nearest names where there is none."""
    names = bundled_names()
    if name in names:
        return bundled_folder() / f"{name}.yaml"
    words = f"there is no bundled matrix {quoted(name)}, {instead_of(name, names)}"
    if os.path.exists(name):
        words += f"; the file of this name is ./{name}"
    raise RequestError(words)
