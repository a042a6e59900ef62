"""The folder from which any engine drives a run: commands, what they are fed, and for whom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netprobe.agent.wire.frames import NO_PYTHON_STATUS
from netprobe.batch.commands import (
    EARLY_STEP,
    FIRST_STEPS,
    LAST_STEP,
    NEXT_STEPS,
    host_word,
    make_commands,
)
from netprobe.batch.file_names import safe_name
from netprobe.batch.script import HostScript, pack_script
from netprobe.batch.step_limits import limit_bytes, limit_steps
from netprobe.files import write_secret
from netprobe.vantage.pack import bundle
from netprobe.vantage.runtime.file import Runtime

ENGINE_FILE = "engine.json"
AGENT_FILE, RUNTIME_FILE = "agent", "runtime"
WITH_RUNTIME = "start-runtime"
# How long a command may wait beyond the time that probing may take.
SPARE_S = 90


def write_engine_folder(
    folder: Path, scripts: Sequence[HostScript], runtime: Runtime | None = None
) -> None:
    """Write what an engine needs for a round; folders and files are for nobody else.

    ``engine.json``: ``commands``, the command line of each step, which the host's ``word`` follows;
    ``hosts``: by name, with the ``steps`` of this round, each on all hosts before the next, and for
    steps that are fed the files of their ``stdin``, one behind the other; ``limits``: the seconds
    that each step may take on a host, and ``most_bytes``: what it may print, above which the host
    has failed; ``last``: the step that ends the run, and ``early``: the one that ends it early, and
    prints what there is. What hosts print is appended to ``results/FILE.npr``. ``instead``: what to
    do after a step that ended with a status: with a runtime, ``start-runtime`` after 97 (no
    Python).
    """
    number = scripts[0].start.round
    first = number == 1
    _make_folder(folder)
    for name in ("hosts", "results"):
        _make_folder(folder / name)
    if first:
        write_secret(str(folder / AGENT_FILE), bundle(batch=True))
        if runtime is not None:
            write_secret(str(folder / RUNTIME_FILE), runtime.payload)
    hosts = {script.start.name: _write_host(folder, script, first=first) for script in scripts}
    if runtime is not None and first:
        for told in hosts.values():
            told["stdin"][WITH_RUNTIME] = [RUNTIME_FILE, *told["stdin"]["start"]]
    start = scripts[0].start
    limit_s = round(max(script.start.window_s for script in scripts)) + SPARE_S
    write_secret(
        str(folder / ENGINE_FILE),
        json.dumps(
            {
                "format": start.format,
                "run": start.run,
                "round": number,
                "hosts": hosts,
                "commands": make_commands(start.run, limit_s, runtime),
                "instead": {"start": {str(NO_PYTHON_STATUS): WITH_RUNTIME}} if runtime else {},
                "limits": limit_steps(scripts, _measure_fed(folder, hosts), limit_s),
                "most_bytes": max(map(limit_bytes, scripts)),
                "last": LAST_STEP,
                "early": EARLY_STEP,
            },
            indent=1,
        ).encode("ascii"),
    )


def results_file(folder: Path, host: str) -> Path:
    """Give the file that a host's output is appended to."""
    return folder / "results" / f"{safe_name(host)}.npr"


def _write_host(folder: Path, script: HostScript, *, first: bool) -> dict[str, Any]:
    """Write what one host is fed, and give what the engine needs to know of it."""
    start = script.start
    steps = FIRST_STEPS if first else NEXT_STEPS
    place = f"hosts/{safe_name(start.name)}"
    _make_folder(folder / place)
    fed = f"{place}/{steps[0]}"
    write_secret(str(folder / fed), pack_script(script))
    return {
        "word": host_word(start.host),
        "steps": list(steps),
        "stdin": {steps[0]: [AGENT_FILE, fed] if first else [fed]},
        "results": f"results/{safe_name(start.name)}.npr",
    }


def _measure_fed(folder: Path, hosts: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """Give the most bytes that a host is fed in each step."""
    sizes: dict[str, int] = {}
    for host in hosts.values():
        for step, files in host["stdin"].items():
            size = sum((folder / file).stat().st_size for file in files)
            sizes[step] = max(sizes.get(step, 0), size)
    return sizes


def _make_folder(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
