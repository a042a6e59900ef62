"""The folder from which any engine drives a run: commands, what they are fed, and for whom.

How long a host may take for a step, and how much it may print: from its own orders.

Who is above a limit has failed, and the others go on without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from netprobe.agent.wire import orders
from netprobe.agent.wire.batch import PHASES
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
from netprobe.files import write_secret
from netprobe.vantage.pack import bundle
from netprobe.vantage.patience import OrderPatience, effort_of
from netprobe.vantage.runtime.file import Runtime

ENGINE_FILE = "engine.json"
AGENT_FILE, RUNTIME_FILE = "agent", "runtime"
WITH_RUNTIME = "start-runtime"
# How long a command may wait beyond the time that probing may take.
SPARE_S = 90

# A login, a sudo, a start of Python; and a slow line.
CONNECT_S = 30.0
FED_BYTES_PER_S = 100_000
# People wait for the end that they asked for; a host that is slower ends by itself.
HALT_S = 15.0
# What a host asks again by itself takes as long once more.
TIMES_ASKED = 2
# A host of which little is asked prints less, and an answer to one probe is shorter.
LEAST_BYTES = 4 * 1024 * 1024
BYTES_A_PROBE = 256
# A host with few descriptors works on fewer probes at a time.
FEW_FILES = 1024

# What an engine must know of ``engine.json``; docs/reach.md prints it.
ENGINE_KEYS: Final[Mapping[str, str]] = {
    "`commands`": "the command line of each step, for `sh` on the host; the host's `word` follows "
    "it",
    "`hosts`, `steps`": "the steps of this round: `start` (later rounds: `next`), `go`, `wait`, "
    "`collect`. Each step ends on all hosts before the next begins: that is the barrier",
    "`hosts`, `stdin`": "what a step is fed: these files of `DIR`, one behind the other",
    "`hosts`, `results`": "the file to which everything is appended that the step prints on "
    "stdout, banners included",
    "`instead`": "with a Python that travels: `start-runtime` in place of a `start` that ended "
    f"with {NO_PYTHON_STATUS}",
    "`limits`, `most_bytes`": "how many seconds each step may take on a host, and how many bytes "
    "it may print: a host above that has failed",
    "`last`; `early`": "`stop`: on every host at the very end, whatever happened; `halt` in its "
    "place where a run ends early: it ends the probes, and prints what there is",
}


def write_engine_folder(
    folder: Path, scripts: Sequence[HostScript], runtime: Runtime | None = None
) -> None:
    """Write what an engine needs for a round; folders and files are for nobody else."""
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


def limit_steps(
    scripts: Sequence[HostScript], fed_bytes: Mapping[str, int], wait_s: float
) -> dict[str, int]:
    """Give how many seconds each step of an engine may take on a host, the way there included.

    That is what the host with the most work may take. ``fed_bytes``: what goes to a host in a step.
    ``wait_s``: how long commands wait at most.
    """
    each = [_measure_steps(script) for script in scripts]
    needed_s = {step: max(one[step] for one in each) for step in each[0]}
    opening_s = needed_s.pop("open")
    needed_s |= {step: opening_s + size / FED_BYTES_PER_S for step, size in fed_bytes.items()}
    limits = {step: round(CONNECT_S + min(one_s, wait_s)) for step, one_s in needed_s.items()}
    return {**limits, EARLY_STEP: round(HALT_S)}


def limit_bytes(script: HostScript) -> int:
    """Give how many bytes a host may print for one round, whatever becomes of its probes."""
    probes = sum(effort_of(order).starts for _, some in script.phases for order in some)
    told = sum(isinstance(order, orders.StoryOrder) for _, some in script.phases for order in some)
    return LEAST_BYTES + BYTES_A_PROBE * (probes + told)


def _measure_steps(script: HostScript) -> dict[str, float]:
    """Give the seconds of work behind each step."""
    everything = [order for _, some in script.phases for order in some]
    rates = [order.per_s for order in everything if isinstance(order, orders.RateOrder)]
    patience = OrderPatience(FEW_FILES, per_s=rates[0] if rates else None)

    def measure(some: Iterable[Any]) -> float:
        """Give how long orders take that are given together."""
        return max(patience.deadlines_s([effort_of(order) for order in some]), default=0.0)

    phases = {name: [some for one, some in script.phases if one == name] for name in PHASES}
    return {
        "open": sum(map(measure, phases["listen"])),
        "go": 0.0,
        "wait": TIMES_ASKED * sum(map(measure, phases["denied"] + phases["go"])),
        "collect": sum(map(measure, phases["tell"])),
        LAST_STEP: 0.0,
    }
