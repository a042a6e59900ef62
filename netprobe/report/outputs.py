"""Where reports go: ``-o FORMAT[=FILE]``. Standard output is as the shell has made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TextIO, TypeVar

from msgspec import Struct

from netprobe.errors import NetprobeError, RequestError
from netprobe.files import is_special, open_output

# Writes one report in one format.
WriteReport = Callable[[TextIO], None]
Told = TypeVar("Told")
WriteTold = Callable[[Told, TextIO], None]


class OutputTarget(Struct, frozen=True):
    """One ``-o``; ``path`` None is standard output."""

    format: str
    path: str | None = None


def parse_outputs(
    texts: Sequence[str], formats: Sequence[str], option: str = "-o"
) -> tuple[OutputTarget, ...]:
    """Read the ``-o`` options, without any the first format. Raises RequestError for nonsense."""
    read = tuple(_parse_output(text, formats, option) for text in texts)
    outputs = read or (OutputTarget(formats[0]),)
    paths = [output.path or "standard output" for output in outputs]
    for path in dict.fromkeys(paths):
        if paths.count(path) > 1:
            raise RequestError(
                f"{option}: {path} is given more than once; name a file: {option} FORMAT=FILE"
            )
    for output in outputs:
        if output.path is not None:
            check_file(f"{option} {output.format}={output.path}", output.path)
    return outputs


def _parse_output(text: str, formats: Sequence[str], option: str) -> OutputTarget:
    name, equals, path = text.partition("=")
    if name not in formats:
        raise RequestError(f"{option} {text}: no such format, expected one of {', '.join(formats)}")
    if equals and not path:
        raise RequestError(f"{option} {text}: the file's name is missing after '='")
    return OutputTarget(name, None if path in ("", "-") else path)


def check_file(option: str, path: str) -> None:
    """A run may take minutes; a mistyped folder should not cost them. Raises RequestError."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise RequestError(f"{option}: there is no folder {folder}")
    if os.path.isdir(path):
        raise RequestError(f"{option}: that is a folder, expected a file")
    # A file is replaced by a new one beside it.
    if not is_special(path) and not os.access(folder, os.W_OK):
        raise RequestError(f"{option}: you may not write to the folder {folder}")


def write_or_raise(
    outputs: Sequence[OutputTarget], writers: Mapping[str, WriteTold[Told]], told: Told
) -> None:
    """Write every output. Raises NetprobeError with a line for each that cannot be written.

    ``told``: what each of the writers takes, beside the stream.
    """
    problems = write_outputs(outputs, {name: partial(one, told) for name, one in writers.items()})
    if problems:
        raise NetprobeError("\n".join(problems))


def write_outputs(outputs: Sequence[OutputTarget], writers: Mapping[str, WriteReport]) -> list[str]:
    """Write every output, also after one of them failed; give back a line for each that did."""
    problems: list[str] = []
    for output in outputs:
        try:
            with _open_stream(output) as stream:
                writers[output.format](stream)
        except BrokenPipeError:
            discard_stdout()  # `| head` is no failure
        except OSError as error:
            where = output.path or "standard output"
            problems.append(f"cannot write {output.format} to {where}: {error.strerror or error}")
    return problems


@contextmanager
def _open_stream(output: OutputTarget) -> Iterator[TextIO]:
    path = output.path
    if path is None:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError:
            discard_stdout()
            raise
    else:
        with open_output(path) as stream:
            yield stream


def discard_stdout() -> None:
    """Point standard output at /dev/null: else its buffer would fail again at exit."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
