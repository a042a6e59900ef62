"""The verb ``merge``: the report of a run that hosts carried out by themselves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from netprobe import pipeline
from netprobe.batch.rounds import Replay
from netprobe.batch.stored import StoredRun, open_run
from netprobe.cli.options import RUN_FORMATS, VerbOptions
from netprobe.cli.outputs import read_outputs
from netprobe.cli.run import AskedRun, check_record_path, read_marks, run_and_report
from netprobe.cli.streams import tell
from netprobe.judge.verdict import Rules
from netprobe.model.result import HostReport, Result


def merge_verb(options: VerbOptions) -> int:
    """Read what hosts wrote, judge and report it as a run does."""
    outputs = read_outputs(options, RUN_FORMATS)
    stored = open_run(Path(options["file"]), [Path(one) for one in options["results"]])
    request = stored.request
    marks = read_marks(options, request.plan)
    if options["record"]:
        check_record_path(options["record"])
    replay = Replay(request, stored.recordings)
    rules = Rules(options["strict"], request.live)
    asked = AskedRun(
        options, outputs, request.plan, request.plan, rules, marks, sample=request.sample
    )
    make_fleet = partial(replay.make_fleet, missing=stored.missing)
    status = run_and_report(asked, lambda run: run.replay(request.settings, make_fleet))
    for words in replay.words():
        tell(f"netprobe: note: {words}")
    return status


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
    run = pipeline.PlanRun(request.plan, Rules(strict=False, live=False), nobody, nobody, {})
    run.replay(request.settings, partial(replay.make_fleet, missing=stored.missing))
    return replay
