"""The verb ``bundle``: a run that hosts carry out by themselves, as a file or for an engine."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from netprobe.agent.wire.batch import HostBudgets
from netprobe.batch.bundle import bring_runtime, pack_bundle, write_host_bundles
from netprobe.batch.engine_folder import write_engine_folder
from netprobe.batch.request import BatchRequest, write_request
from netprobe.batch.results import PLAN_FILE, end_rounds, open_run, write_private
from netprobe.batch.rounds import make_first_round, make_next_round
from netprobe.batch.script import KEY_BYTES, HostScript
from netprobe.cli.asked import BundleOptions
from netprobe.cli.given import read_seconds, read_start
from netprobe.cli.launch import make_runtimes, settings_of
from netprobe.cli.merge import choose_stored_part, replay_quietly
from netprobe.cli.option_groups import DEFAULT_MARGIN, DEFAULT_WINDOW, ScriptOptions
from netprobe.cli.plan import choose_asked_part, make_plan, tell_note
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.model.exit import PASS
from netprobe.model.plan import Plan
from netprobe.plan.cost import estimate
from netprobe.plan.quality import read_samples
from netprobe.plan.rehearsals import read_rehearsals
from netprobe.signals import run_on_loop
from netprobe.vantage.runtime.cache import NoRuntime
from netprobe.vantage.runtime.file import Runtime, load_runtime

# What a host may ask by itself where nobody comes again; an engine comes again.
CARRIED = HostBudgets(looks=20_000, walks=20, routes=64, stories=256)
ASKED_AGAIN = HostBudgets(looks=20_000, walks=0, routes=0, stories=64)


def bundle_verb(options: BundleOptions) -> int:
    """Write the scripts of the first round, or of a further one."""
    if options.next_:
        return _write_next(options, Path(options.next_))
    if options.results:
        raise RequestError("RESULTS are those of an earlier round: give --next FILE, too")
    _refuse_two_places(options)
    for word, path in _list_places(options).items():
        if os.path.lexists(path):
            # Results of a run are read with its own file alone.
            raise RequestError(f"{word} {path}: exists; choose another name")
    is_shared = not (options.folder or options.per_host)
    request, scripts = make_run(options, partial(_read_when, options), is_shared=is_shared)
    if options.folder:
        runtime = _find_runtime(options) if options.with_runtime else None
        return _write_folder(Path(options.folder), request, scripts, runtime)
    return _write_files(options, request, scripts)


def write_engine_run(options: ScriptOptions, folder: Path) -> int:
    """Write the first round of a run for an engine, with the usual times, into a new folder."""
    request, scripts = make_run(options, lambda _: When("engine"), is_shared=False)
    return _write_folder(folder, request, scripts)


def _list_places(options: BundleOptions) -> dict[str, str]:
    """Give where a run is to be written, by the option that says it."""
    places = {"--folder": options.folder, "--per-host": options.per_host, "-o": options.output}
    return {word: path for word, path in places.items() if path}


def _refuse_two_places(options: BundleOptions) -> None:
    """Raise RequestError for more than one place."""
    given = _list_places(options)
    if len(given) > 1:
        raise RequestError(
            f"{' and '.join(given)}: a run is for an engine, or for files that are carried to "
            "hosts, one for all or one for each; give one of them"
        )


class When(NamedTuple):
    """When hosts probe: as an engine says, by the clock at ``starts_at``, or at once."""

    barrier: Literal["engine", "clock", "none"]
    starts_at: float | None = None
    window: str = DEFAULT_WINDOW
    margin: str = DEFAULT_MARGIN


def _read_when(options: BundleOptions, _probed: Plan) -> When:
    """Read when hosts probe. Raises RequestError."""
    starts_at = None
    if options.start:
        starts_at = read_start(options.start, datetime.now(UTC))
    if starts_at is not None and options.folder:
        raise RequestError("--start is for hosts that nobody talks to: leave it out with --folder")
    if options.folder:
        return When("engine", None, options.window, options.margin)
    if starts_at is None and not options.no_listen:
        raise RequestError(
            "hosts that nobody talks to need a time at which all of them listen: give --start "
            "TIME, or --no-listen to ask only what runs already, or --folder DIR for an engine"
        )
    barrier: Literal["clock", "none"] = "none" if starts_at is None else "clock"
    return When(barrier, starts_at, options.window, options.margin)


def make_run(
    options: ScriptOptions,
    read_when: Callable[[Plan], When],
    *,
    is_shared: bool,
    prepare: Callable[[Plan], Plan] = lambda plan: plan,
) -> tuple[BatchRequest, list[HostScript]]:
    """Make the first round. ``prepare``: what becomes of the plan first; ``read_when``: when hosts
    probe so much. Raises RequestError."""
    tell_unplayed(options.rehearse, options.quality)
    plan = prepare(make_plan(options, options.zone_groups, probing=True))
    part = choose_asked_part(options, plan)
    when, about = read_when(part.plan), part.plan.coverage
    request = BatchRequest(
        run=secrets.token_hex(8),
        key=secrets.token_bytes(KEY_BYTES),
        results_key=secrets.token_bytes(KEY_BYTES),
        is_shared=is_shared,
        plan=plan if about else part.plan,
        hosts=(),
        settings=settings_of(options, options.rate),
        barrier=when.barrier,
        starts_at=when.starts_at,
        window_s=read_seconds("--window", when.window),
        margin_s=read_seconds("--margin", when.margin),
        budgets=ASKED_AGAIN if when.barrier == "engine" else CARRIED,
        live=options.live,
        sample=part.sample,
        cover=(about.copies, about.seed) if about else None,
    )
    _note_short_window(part.plan, request.window_s)
    return make_first_round(request, choose_stored_part(request).plan)


def tell_unplayed(rehearse: str | None, quality: str | None) -> None:
    """Say what hosts that probe by themselves leave out of what is asked for. Raises
    RequestError."""
    if read_rehearsals(rehearse):
        tell_note(
            "--rehearse is not possible here: hosts that probe by themselves cannot play the two "
            "ends of a tunnel together, nor netprobe the back ends of a balancer; nothing is "
            "rehearsed"
        )
    if read_samples(quality) is not None:
        tell_note(
            "--quality is not possible here: samples need listeners that wait for them; no way is "
            "measured"
        )


def _note_short_window(plan: Plan, window_s: float) -> None:
    """Say so where hosts may not come to the end of what they have to ask."""
    needed_s = estimate(plan).seconds_dropped
    if needed_s > window_s:
        tell_note(
            f"probing may take {needed_s:g} s, and --window gives it {window_s:g} s: what is not "
            "asked by then is not tested, and left to a next round"
        )


def _write_next(options: BundleOptions, path: Path) -> int:
    _refuse_two_places(options)
    stored = open_run(path, [Path(one) for one in options.results])
    if os.path.isdir(path):
        if options.per_host:
            raise RequestError(f"--next {path}: an engine's folder is where its next round goes")
    elif not options.per_host and not stored.request.is_shared:
        raise RequestError(
            "--next: this run has a file for each host, and so has its next round: give "
            "--per-host DIR"
        )
    for note in stored.notes:
        tell(f"netprobe: note: {note}")
    fleet = replay_quietly(stored)
    starts_at = _read_next_start(options, stored.request)
    probed = choose_stored_part(stored.request).plan
    request, scripts = make_next_round(stored.request, probed, fleet, starts_at=starts_at)
    if not scripts:
        tell("netprobe: nothing is left to ask")
        if os.path.isdir(path):
            end_rounds(path)
        return PASS
    if os.path.isdir(path):
        return _write_folder(path, request, scripts)
    return _write_files(options, request, scripts)


def _read_next_start(options: BundleOptions, request: BatchRequest) -> float | None:
    """Read when hosts that nobody talks to probe again. Raises RequestError."""
    if request.barrier != "clock":
        return None
    if not options.start:
        raise RequestError("--next: hosts that nobody talks to need a new time; give --start TIME")
    return read_start(options.start, datetime.now(UTC))


def _write_folder(
    folder: Path, request: BatchRequest, scripts: list[HostScript], runtime: Runtime | None = None
) -> int:
    if not scripts:
        raise RequestError("the plan has no flow: an engine has nothing to do (`netprobe plan`)")
    with _refusing_to_write(folder):
        write_engine_folder(folder, scripts, runtime)
    write_private(folder / PLAN_FILE, write_request(request))
    _tell_round(request, scripts)
    return PASS


def _write_files(options: BundleOptions, request: BatchRequest, scripts: list[HostScript]) -> int:
    """Write what is carried to hosts: one file for all of them, or one for each."""
    header, plan = make_header(request), write_request(request)
    runtime = _find_runtime(options) if options.with_runtime else None
    if options.per_host:
        with _refusing_to_write(options.per_host):
            write_host_bundles(Path(options.per_host), header, scripts, plan, runtime)
    else:
        data = pack_bundle(header, scripts, plan)
        _write_file(options, data if runtime is None else bring_runtime(data, runtime))
    _tell_round(request, scripts)
    return PASS


def _write_file(options: BundleOptions, data: bytes) -> None:
    if options.output:
        write_private(Path(options.output), data)
    elif sys.stdout.isatty():
        raise RequestError("a bundle is no text for a terminal: give -o FILE, or send it to a file")
    else:
        _keep_private(sys.stdout.fileno())
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def _refusing_to_write(place: str | Path) -> Iterator[None]:
    """Raise RequestError instead of OSError, with the path that could not be written."""
    try:
        yield
    except OSError as error:
        words = f"{error.filename or place} cannot be written: {error.strerror}"
        raise RequestError(words) from None


def _keep_private(number: int) -> None:
    """Let nobody else read the file that standard output is sent to: it holds the run's key."""
    with contextlib.suppress(OSError):  # not our file: its owner sees to that
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.fchmod(number, 0o600)


def _find_runtime(options: BundleOptions) -> Runtime:
    """Find the Python of ``--agent-python``, or one for machines like this one. Raises
    RequestError."""
    if len(options.agent_python) > 1:
        raise RequestError("--with-runtime: a bundle brings one Python; give one --agent-python")
    for path in options.agent_python:
        return load_runtime(path)
    try:
        return run_on_loop(make_runtimes(options.agent_python).find(platform.machine()))
    except NoRuntime as error:
        raise RequestError(f"--with-runtime: {error}") from None


def make_header(request: BatchRequest) -> dict[str, Any]:
    """Give what people read who look into a bundle."""
    return {
        "run": request.run,
        "round": request.round,
        "hosts": len(request.hosts),
        "starts_at": request.starts_at,
        "window_s": request.window_s,
    }


def _tell_round(request: BatchRequest, scripts: list[HostScript]) -> None:
    hosts = f"{len(scripts):,} host{'' if len(scripts) == 1 else 's'}"
    when = ""
    if request.starts_at is not None:
        start = datetime.fromtimestamp(request.starts_at, UTC)
        when = f"; they probe at {start:%Y-%m-%dT%H:%M:%SZ}, so start it there before"
    tell(f"netprobe: run {request.run}, round {request.round}, for {hosts}{when}")
