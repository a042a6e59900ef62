"""The verb ``merge``: the report of a run that hosts carried out by themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from netprobe import pipeline
from netprobe.batch.replay import Replay
from netprobe.batch.request import BatchRequest
from netprobe.batch.stored import StoredRun, open_run
from netprobe.cli.marks import read_marks
from netprobe.cli.options import RUN_FORMATS, VerbOptions
from netprobe.cli.outputs import read_outputs
from netprobe.cli.run import AskedRun, check_record_path, run_and_report
from netprobe.cli.streams import tell
from netprobe.judge.verdict import Rules
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.plan.choices import CoverChoice

# What is true of a report whose hosts all had one bundle.
SHARED = (
    "one bundle held the keys of all hosts, so that each of them could have written the results of "
    "the others (`netprobe bundle --per-host` gives each host its own)"
)


def merge_verb(options: VerbOptions, *, interrupted: bool = False) -> int:
    """Read what hosts wrote, judge and report it as a run does; one that a signal ended, maybe."""
    outputs = read_outputs(options, RUN_FORMATS)
    stored = open_run(Path(options["file"]), [Path(one) for one in options["results"]])
    request = stored.request
    marks = read_marks(options, request.plan)
    if options["record"]:
        check_record_path(options["record"])
    replay = Replay(request, stored.recordings)
    rules = Rules(options["strict"], request.live)
    part = choose_stored_part(request)
    asked = AskedRun(options, outputs, part, rules, marks)
    make_fleet = partial(replay.make_fleet, missing=stored.missing)

    def start(run: pipeline.PlanRun) -> RunInfo:
        info = run.replay(request.settings, make_fleet)
        info = replace(info, trust=SHARED if request.is_shared else None)
        return replace(info, interrupted=True, complete=False) if interrupted else info

    status = run_and_report(asked, start)
    for words in (*stored.notes, *replay.words()):
        tell(f"netprobe: note: {words}")
    return status


def choose_stored_part(request: BatchRequest) -> pipeline.PlanPart:
    """Choose what of a stored plan was probed; of a sample only that is stored."""
    if request.cover is None:
        return pipeline.PlanPart(request.plan, request.plan, request.sample)
    return pipeline.choose_part(request.plan, CoverChoice(*request.cover, is_said=True))


class Silent:
    """Takes results and events, and tells nobody."""

    def add(self, result: Result) -> None:
        """Forget a result."""

    def progress(self, done: int, total: int, waits_for: str = "") -> None:
        """Forget how far it is."""

    def host(self, report: HostReport) -> None:
        """Forget a host's report."""


def replay_quietly(stored: StoredRun) -> Replay:
    """Merge for what is left open only."""
    request = stored.request
    replay = Replay(request, stored.recordings)
    nobody = Silent()
    run = pipeline.PlanRun(
        choose_stored_part(request), Rules(strict=False, live=False), nobody, nobody, {}
    )
    run.replay(request.settings, partial(replay.make_fleet, missing=stored.missing))
    return replay
