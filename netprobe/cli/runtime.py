"""The verbs ``runtime build`` and ``runtime list``, and what a verb may send to hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from netprobe.cli.streams import tell
from netprobe.errors import REQUEST, FileErrors, Problem, RequestError
from netprobe.files import MIB
from netprobe.model.exit import PASS
from netprobe.model.printable import clean
from netprobe.vantage.runtime.build import build_runtime
from netprobe.vantage.runtime.cache import (
    Runtimes,
    cache_folder,
    cache_path,
    cached_runtimes,
    keep_runtime,
    lacks_of,
)
from netprobe.vantage.runtime.file import Runtime, load_runtime


def make_runtimes(paths: Sequence[str]) -> Runtimes:
    """Read the files of ``--agent-python``. Raises FileErrors where one is of no use."""
    given: dict[str, Runtime] = {}
    for path in paths:
        runtime = load_runtime(path)
        if lacks_of(runtime):
            words = f"it lacks modules that the agent imports ({', '.join(lacks_of(runtime))})"
            again = "another netprobe built it: build it again with this one"
            raise FileErrors([Problem(path, 0, 0, f"{words}; {again}")])
        if runtime.arch in given:
            raise RequestError(f"--agent-python {path}: two of them are for {runtime.arch}")
        given[runtime.arch] = runtime
    return Runtimes(given.values(), lambda text: tell(f"netprobe: note: {text}"))


def build_verb(python: str | None, output: str | None) -> int:
    """Build a runtime, write it, and say what it is and where."""
    runtime = build_runtime(python)
    path = cache_path(runtime.arch) if output is None else Path(output)
    try:
        keep_runtime(runtime, path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(clean(f"{path}: {_describe_runtime(runtime)}"))
    return PASS


def list_verb() -> int:
    """List the runtimes that are kept, with what is wrong with each; 2 where one cannot be used."""
    status = PASS
    paths = cached_runtimes()
    for path in paths:
        try:
            runtime = load_runtime(str(path))
        except FileErrors as error:
            click.echo(clean(str(error)))
            status = REQUEST
            continue
        old = "" if not lacks_of(runtime) else "; of another netprobe, and not used: build it again"
        click.echo(clean(f"{path}: {_describe_runtime(runtime)}{old}"))
    if not paths:
        tell(f"netprobe: note: no runtimes in {cache_folder()}; `netprobe runtime build` makes one")
    return status


def _describe_runtime(runtime: Runtime) -> str:
    sizes = f"{len(runtime.payload) / MIB:.1f} MB, unpacked {runtime.unpacked_bytes / MIB:.1f} MB"
    made = runtime.manifest
    return f"Python {made.python} for {made.arch}, {sizes}, built from {made.built_from}"
