"""Files that users name: a type of click says that a word is one, and what users call it."""

from __future__ import annotations

from typing import Any

import click


class GivenFile(str):
    """A file that a command reads or records; ``what``: the option, or words for an argument."""

    __slots__ = ("what",)
    what: str

    def __new__(cls, path: str, what: str) -> GivenFile:
        """Name the file of an option or an argument."""
        made = super().__new__(cls, path)
        made.what = what
        return made


class FileType(click.Path):
    """The type of an option that names a file. ``what``: how messages call the file; None: by the
    name of the option."""

    def __init__(self, what: str | None = None) -> None:
        super().__init__()
        self._what = what

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenFile:
        """Give the file with its words."""
        path = str(super().convert(value, param, ctx))
        long = next((one for one in param.opts if one.startswith("--")), "") if param else ""
        return GivenFile(path, self._what or long)


class MatrixType(click.types.StringParamType):
    """A bundled name, or a file."""

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give a file with its words, and a name as it is."""
        from netprobe.load.matrix.bundled import is_path

        text = str(super().convert(value, param, ctx))
        return GivenFile(text, self._what) if is_path(text) else text


INVENTORY = "the inventory"

FILE = FileType()
