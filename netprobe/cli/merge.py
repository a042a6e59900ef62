"""The verb ``merge``: the report of a run that hosts carried out by themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from netprobe.batch.bundle import open_bundle
from netprobe.batch.recorded import RecordedFleet
from netprobe.batch.replay import Replay
from netprobe.batch.request import BatchRequest, read_request
from netprobe.batch.results import StoredRun, open_run
from netprobe.batch.rounds import make_first_round
from netprobe.cli.asked import MergeOptions, TellingOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.options import RUN_FORMATS
from netprobe.cli.report import read_marks
from netprobe.cli.run import AskedRun, check_record_path, run_and_report
from netprobe.cli.streams import tell
from netprobe.cluster.pods import is_pods, read_pods
from netprobe.files import read_file
from netprobe.judge.verdict import Rules
from netprobe.model.json_text import MAX_CHARACTERS
from netprobe.model.result import Result
from netprobe.model.run import Silent
from netprobe.plan.choices import CoverChoice, PlanPart, choose_part
from netprobe.probe.collect import list_hosts
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.report.outputs import OutputTarget
from netprobe.session import RunRequest, Session
from netprobe.signals import run_on_loop

# What is true of a report whose hosts all had one bundle.
SHARED = (
    "one bundle held the keys of all hosts, so that each of them could have written the results of "
    "the others (`netprobe bundle --per-host` gives each host its own)"
)


def merge_verb(options: MergeOptions) -> int:
    """Read what hosts wrote, judge and report it as a run does."""
    outputs = read_outputs(options.outputs, RUN_FORMATS, options)
    stored = _open_stored(Path(options.file), [Path(one) for one in options.results])
    return report_stored(options, outputs, stored)


def _open_stored(path: Path, results: Sequence[Path]) -> StoredRun:
    """Open a run with results of hosts, or with lists of pods of a cluster. Raises RequestError."""
    if not (results and all(os.path.isfile(one) and is_pods(one) for one in results)):
        return open_run(path, results)
    request = read_request(open_bundle(path).plan, str(path))
    _, scripts = make_first_round(request, choose_stored_part(request).plan)
    raws = {str(one): read_file(str(one), "pods of a cluster", MAX_CHARACTERS) for one in results}
    return read_pods(raws, request, scripts)


def report_stored(
    options: TellingOptions,
    outputs: Sequence[OutputTarget],
    stored: StoredRun,
    *,
    interrupted: bool = False,
) -> int:
    """Judge a run that hosts carried out, write its reports, and give the exit status.

    ``interrupted``: a signal ended the run before its plan was done.
    """
    request = stored.request
    marks = read_marks(options, request.plan)
    if options.record:
        check_record_path(options.record)
    replay = Replay(request, stored.recordings)
    run = RunRequest(
        part=choose_stored_part(request),
        settings=request.settings,
        rules=Rules(options.strict, request.live),
        marks=marks.functions,
    )
    trust = SHARED if request.is_shared else None
    asked = AskedRun(options, outputs, run, marks, trust=trust, interrupted=interrupted)
    hosts = list_hosts(run.part.plan)
    status = run_and_report(
        asked, lambda tell: replay.make_fleet(hosts, tell, stored.missing), JumpingLoop
    )
    for words in (*stored.notes, *replay.words()):
        tell(f"netprobe: note: {words}")
    return status


def choose_stored_part(request: BatchRequest) -> PlanPart:
    """Choose what of a stored plan was probed; of a sample only that is stored."""
    if request.cover is None:
        return PlanPart(request.plan, request.plan, request.sample)
    return choose_part(request.plan, CoverChoice(*request.cover, is_said=True))


def replay_quietly(stored: StoredRun) -> RecordedFleet:
    """Merge for what is left open only."""
    fleet, _ = _replay_stored(stored)
    return fleet


def judge_quietly(stored: StoredRun) -> list[Result]:
    """Merge for the results only; it may be called in any thread."""
    _, kept = _replay_stored(stored)
    return kept.results


class _KeptResults:
    """A sink that keeps all results."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.results.append(result)


def _replay_stored(stored: StoredRun) -> tuple[RecordedFleet, _KeptResults]:
    kept = _KeptResults()
    request = stored.request
    rules = Rules(live=request.live)
    run = RunRequest(part=choose_stored_part(request), settings=request.settings, rules=rules)
    replay = Replay(request, stored.recordings)
    fleet = replay.make_fleet(list_hosts(run.part.plan), Silent().host, stored.missing)

    async def work() -> None:
        async with fleet as opened:
            await Session(Silent()).run(run, opened, [kept])

    run_on_loop(work(), JumpingLoop)
    return fleet, kept
