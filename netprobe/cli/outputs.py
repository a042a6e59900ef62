"""Where a command writes: never over what it reads or records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from netprobe.cli.options import VerbOptions
from netprobe.errors import RequestError
from netprobe.load.matrix.bundled import is_path
from netprobe.report.outputs import OutputTarget, parse_outputs

# Parameters of any verb that name files, and what users call them.
FILE_PARAMETERS: Final = {
    "file": "the file to read",
    "files": "a file to check",
    "old": "the earlier run",
    "new": "the later run",
    "record": "--record",
    "resume": "--resume",
    "retry": "--retry",
    "baseline": "--baseline",
    "manifests": "--manifest",
    "pods": "--pods",
    "accepted": "--accepted",
    "evidence": "--evidence",
    "inventories": "the inventory",
    "matrices": "--matrix",
    "name": "the matrix",
    "results": "a result file",
    "agent_python": "--agent-python",
    "ca": "--ca",
    "client_cert": "--client-cert",
    "client_key": "--client-key",
}
# Of these a word without a path is a bundled name.
_NAMES_OR_FILES: Final = ("matrices", "name")


def read_outputs(
    options: VerbOptions, formats: Sequence[str], option: str = "-o"
) -> tuple[OutputTarget, ...]:
    """Read ``-o``, or another option like it. Raises RequestError, also where it names an input."""
    name = "outputs" if option == "-o" else option.removeprefix("--")
    outputs = parse_outputs(options[name], formats, option)
    named = list(_list_files(options))
    for output in outputs:
        for path, what in named:
            if output.path is not None and _is_same_file(output.path, path):
                raise RequestError(
                    f"{option} {output.format}={output.path}: that is {what}, "
                    "which would be overwritten; choose another name"
                )
    return outputs


def _list_files(options: VerbOptions) -> Iterator[tuple[str, str]]:
    """Give the files that a command reads or records, and what each is."""
    for name, what in FILE_PARAMETERS.items():
        given = options.get(name) or ()
        if name == "inventories" and name in options and not given:
            from netprobe.load.inventory.discover import find_inventories

            given = find_inventories()
        for path in (given,) if isinstance(given, str) else given:
            if name not in _NAMES_OR_FILES or is_path(path):
                yield path, what


def _is_same_file(output: str, path: str) -> bool:
    """Tell whether writing the one changes the other; devices and pipes may be named twice."""
    try:
        return os.path.samefile(output, path) and os.path.isfile(path)
    except OSError:  # one of them is not there yet
        return os.path.realpath(output) == os.path.realpath(path)
