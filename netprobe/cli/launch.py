"""How flows are probed, and how agents get onto hosts, as options say it; the verbs of runtimes."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from pathlib import Path

import click

from netprobe.cli.option_groups import LaunchOptions, LookOptions
from netprobe.cli.streams import tell
from netprobe.errors import REQUEST, FileErrors, Problem, RequestError
from netprobe.files import MIB
from netprobe.model.exit import PASS
from netprobe.model.printable import clean
from netprobe.probe.settings import FORKS, ProbeSettings
from netprobe.vantage.launch import Launcher
from netprobe.vantage.limits import forbid_core_dumps
from netprobe.vantage.runtime.cache import (
    Runtimes,
    cache_folder,
    cache_path,
    keep_runtime,
    lacks_of,
    list_runtimes,
    make_runtime,
)
from netprobe.vantage.runtime.file import Runtime, load_runtime


def settings_of(options: LookOptions, rate: int | None = None, forks: int = FORKS) -> ProbeSettings:
    """Make the probe stage's settings of a verb's options.

    ``rate``: new probes a second over all agents, None: no limit. ``forks``: destinations at once.
    """
    return ProbeSettings(
        timeout_s=options.timeout,
        looks=None if options.retries is None else options.retries + 1,
        rate=rate,
        forks=forks,
        # Where everything is supposed to run, a listener of ours would stand in for a dead service.
        listen=not options.no_listen and not options.live,
        live=options.live,
        record=not options.no_recorder,
    )


def make_launcher(options: LaunchOptions) -> Launcher:
    """Make the launcher of a verb's agents. Raises RequestError where no password can be asked."""
    runtimes = make_runtimes(options.agent_python)
    return Launcher(become_password=read_become_password(options), runtimes=runtimes)


def read_become_password(options: LaunchOptions) -> str | None:
    """Ask for the sudo password, or take it from the environment. Raises RequestError.

    It leaves the environment, which all programs that are started would inherit.
    """
    password = os.environ.pop("NETPROBE_BECOME_PASSWORD", None)
    if password or options.ask_become_pass:
        forbid_core_dumps()
    if options.ask_become_pass:
        try:
            # Without a terminal, getpass would read the password from an echoing standard input.
            os.close(os.open("/dev/tty", os.O_RDWR))
        except OSError as error:
            words = "--ask-become-pass needs a terminal; set NETPROBE_BECOME_PASSWORD instead"
            raise RequestError(words) from error
        password = getpass.getpass("sudo password: ")
    return password


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
    """Make a runtime, write it, and say what it is and where."""
    runtime = make_runtime(python)
    path = cache_path(runtime.arch) if output is None else Path(output)
    try:
        keep_runtime(runtime, path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(clean(f"{path}: {_describe_runtime(runtime)}"))
    return PASS


def list_verb() -> int:
    """List all runtimes, with what is wrong with each; 2 where one cannot be used."""
    status = PASS
    paths = list_runtimes()
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
