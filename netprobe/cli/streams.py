"""The process's own standard streams, made such that neither decides how a command ends."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

from netprobe.model.printable import clean


class _Deaf(io.FileIO):
    """A file that accepts all writes, even where its disk is full or its reader went away."""

    def write(self, data: object, /) -> int:
        """Write what can be written and claim all of it."""
        view = memoryview(data)  # type: ignore[arg-type]  # whatever a BufferedWriter hands on
        with suppress(OSError):
            return super().write(view) or 0
        return view.nbytes


def guard_streams() -> None:
    """Progress and warnings that cannot be written change no verdict; closed streams are nothing.

    A stream that a test or a program put in place of the process's own is left as it is.
    """
    own = sys.__stderr__
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open as long as we are)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as above)
    elif own is not None and sys.stderr is own:
        raw = _Deaf(own.fileno(), "w", closefd=False)
        # Buffered by lines, as Python's own is.
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=own.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def tell(text: str) -> None:
    """Print a line on standard error; what files and hosts said may hold anything."""
    click.echo(clean(text), err=True)


def discard_stdout() -> None:
    """Point standard output at /dev/null: else its buffer would fail again at exit."""
    from netprobe.report import outputs

    outputs.discard_stdout()
