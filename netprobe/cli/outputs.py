"""Where a command writes: never over what it reads or records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from netprobe.cli.given import INVENTORY, GivenFile
from netprobe.errors import RequestError
from netprobe.report.outputs import OutputTarget, parse_outputs


def read_outputs(
    texts: Sequence[str], formats: Sequence[str], asked: object, option: str = "-o"
) -> tuple[OutputTarget, ...]:
    """Read ``-o``, or another option like it. Raises RequestError, also where it names an input.

    ``asked``: the options of the verb, a class of ``cli/asked.py``.
    """
    outputs = parse_outputs(texts, formats, option)
    named = list(_list_files(asked))
    for output in outputs:
        for file in named:
            if output.path is not None and _is_same_file(output.path, file):
                raise RequestError(
                    f"{option} {output.format}={output.path}: that is {file.what}, "
                    "which would be overwritten; choose another name"
                )
    return outputs


def _list_files(asked: object) -> Iterator[GivenFile]:
    """Give the files that a command reads or records."""
    for name, given in vars(asked).items():
        if name == "inventories" and not given:
            from netprobe.load.inventory.discover import find_inventories

            yield from (GivenFile(path, INVENTORY) for path in find_inventories())
        for one in given if isinstance(given, tuple) else (given,):
            if isinstance(one, GivenFile):
                yield one


def _is_same_file(output: str, path: str) -> bool:
    """Tell whether writing the one changes the other; devices and pipes may be named twice."""
    try:
        return os.path.samefile(output, path) and os.path.isfile(path)
    except OSError:  # one of them is not there yet
        return os.path.realpath(output) == os.path.realpath(path)
