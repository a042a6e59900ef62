"""The verb ``run``, and the run and the report of other verbs."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from netprobe.cli.asked import RunOptions, TellingOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.launch import make_launcher, settings_of
from netprobe.cli.options import RUN_FORMATS
from netprobe.cli.plan import choose_asked_part, make_plan, tell_note
from netprobe.cli.report import Marks, finish, fold_failures, read_marks
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.judge.verdict import Rules
from netprobe.model.codec import keep_findings
from netprobe.model.plan import QUALITY, REHEARSALS, SEGMENT
from netprobe.model.printable import word_command
from netprobe.model.result import Result
from netprobe.model.run import Events, RunInfo, Sink
from netprobe.plan.quality import read_samples
from netprobe.plan.rehearsals import read_rehearsals, word_change
from netprobe.probe.agents.fleet import Fleet, TellHost
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.collect import list_hosts
from netprobe.report.outputs import OutputTarget, check_file
from netprobe.report.page.progress import phases_text, progress
from netprobe.report.record.changes import Changes, Fates, compare, list_checked
from netprobe.report.record.collector import Collector
from netprobe.report.record.earlier import TakeOver, rule_notes, word_changes
from netprobe.report.record.evidence import EvidenceFolder, open_folder
from netprobe.report.record.merge import ranges_of
from netprobe.report.record.open_passes import RetriedPorts
from netprobe.report.record.record import RecordWriter, header_of, read_earlier
from netprobe.session import RunRequest, Session
from netprobe.signals import MakeLoop, run_until_signal
from netprobe.vantage.limits import make_room_for_agents

# A search for cycles visits everything that a run works on: begun after Python's own 700 new
# objects it takes half of the coordinator's time, after 100,000 a fifth of it.
GARBAGE_OBJECTS = 1_000_000

# The agents of a run: they begin and end with it.
OpenFleet = AbstractAsyncContextManager[Fleet]


def run_verb(options: RunOptions) -> int:
    """Plan, probe, report."""
    outputs = read_outputs(options.outputs, RUN_FORMATS, options)
    if options.jobs is not None:
        tell_note("--jobs is ignored: one process an agent is enough")
    taken = _read_earlier(options)
    rehearse = read_rehearsals(options.rehearse) or _list_rehearsed(taken)
    quality = read_samples(options.quality)
    if quality is None and taken is not None and QUALITY in _list_ends(taken):
        quality = taken.earlier.info.quality_samples or 0
    plan = make_plan(options, options.zone_groups, probing=True, rehearse=rehearse, quality=quality)
    if rehearse and any(block.rehearsal for block in plan.blocks):
        tell_note(word_change(rehearse))
    mark = read_marks(options, plan)
    if options.record:
        check_record_path(options.record, taken)
    evidence = _open_evidence(options)
    part = choose_asked_part(options, plan, taken)
    request = RunRequest(
        part=part,
        settings=settings_of(options, options.rate, options.forks),
        rules=Rules(options.strict, options.live),
        marks=mark.functions,
        kept=tuple if taken is None else partial(taken.kept, part.whole),
    )
    launcher = make_launcher(options)
    asked = AskedRun(options, outputs, request, mark, taken, evidence)
    hosts = list_hosts(part.plan)
    # Before a record is begun.
    make_room_for_agents(hosts)
    return run_and_report(asked, lambda tell: open_fleet(hosts, launcher, tell))


class AskedRun(Struct, frozen=True):
    """A run that is asked for, and where it is told.

    ``taken``: an earlier run of which results are kept. ``evidence``: where packets are kept.
    """

    options: TellingOptions
    outputs: Sequence[OutputTarget]
    request: RunRequest
    marks: Marks
    taken: TakeOver | None = None
    evidence: EvidenceFolder | None = None
    trust: str | None = None
    interrupted: bool = False


def run_and_report(
    asked: AskedRun, open_agents: Callable[[TellHost], OpenFleet], make_loop: MakeLoop | None = None
) -> int:
    """Run what is asked for over these agents, report it, and give the exit status."""
    options, request, taken, evidence = asked.options, asked.request, asked.taken, asked.evidence
    plan = request.part.whole
    baseline = asked.marks.baseline
    ranges = ranges_of(plan)
    with closing(Collector(ranges)) as collector, closing(Collector(ranges)) as open_passes:
        retried_ports = RetriedPorts(()) if taken is None else taken.retried_ports
        for result in request.mark(request.kept()):
            (open_passes if retried_ports.concern(result) else collector).add(result)
        before = taken.fates() if taken else None
        counts = Counter(collector.summary(0).counts) + Counter(open_passes.summary(0).counts)
        earlier = taken.word_kept(counts, taken.count_again(plan)) if taken else None
        if earlier and not options.quiet:
            tell_note(earlier)
        with _begin_record(options.record, request, collector.results) as writer:
            sinks: list[Sink] = [one for one in (collector, writer, evidence) if one is not None]
            # The record may have taken the place of the earlier one.
            run = replace(request, kept=collector.results, open_passes=open_passes.results)
            with progress(sys.stderr, verbose=options.verbose, quiet=options.quiet) as events:
                info = run_until_end(run, open_agents(events.host), sinks, events, make_loop)
        info = replace(info, trust=asked.trust)
        if asked.interrupted:
            info = replace(info, interrupted=True, complete=False)
        if options.verbose:
            tell(f"netprobe: {phases_text(info)}")
        if evidence is not None:
            _tell_of_evidence(info)
        changes = _compare_with_earlier(asked, before, info, collector)
        if changes is not None and baseline is None:
            earlier = f"{earlier}; {word_changes(changes)}"
        info = replace(info, earlier=earlier)
        info = _hold_against(asked, info, collector, changes)
        findings = fold_failures(info, collector)
        if evidence is not None:
            findings = evidence.write_files(findings, info.hosts)
        info = replace(info, findings=keep_findings(findings))
        ended = [*_end_record(writer, info), *(evidence.problems if evidence else ())]
        return finish(
            info, collector, asked.outputs, ended, changes, findings,
            redact=options.redact, title=options.title,
        )  # fmt: skip


def _compare_with_earlier(
    asked: AskedRun, before: Fates | None, info: RunInfo, collector: Collector
) -> Changes | None:
    """Compare the run with its baseline, else with the run that it retries, where it has either."""
    baseline, taken = asked.marks.baseline, asked.taken
    if baseline is not None:
        checked = (list_checked(baseline.info), list_checked(info))
        return compare(baseline.fates, collector.results(), checked)
    if before is None or taken is None:
        return None
    checked = (list_checked(taken.earlier.info), list_checked(info))
    return compare(before, collector.results(), checked)


def run_until_end(
    request: RunRequest,
    agents: OpenFleet,
    sinks: Sequence[Sink],
    events: Events,
    make_loop: MakeLoop | None = None,
) -> RunInfo:
    """Run to the end, or until a signal. ``make_loop`` None: on an ordinary loop."""
    session = Session(events)

    async def work() -> None:
        async with agents as fleet:
            await session.run(request, fleet, sinks)

    # What the plan holds stays; flows in work are many, and hardly ever in cycles.
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
    if run_until_signal(work(), make_loop):
        return replace(session.info, interrupted=True, complete=False)
    return session.info


def _tell_of_evidence(info: RunInfo) -> None:
    agents = [host for host in info.hosts if host.state == "agent"]
    if agents and not any(host.privileged for host in agents):
        tell_note("--evidence kept nothing: agents need root to record packets, and none has it")


def _hold_against(
    asked: AskedRun, info: RunInfo, collector: Collector, changes: Changes | None
) -> RunInfo:
    """Add what the run is next to its baseline, to what is accepted and to a request."""
    marks, taken = asked.marks, asked.taken
    told = rule_notes(taken.earlier.rules or (), collector.results()) if taken else ()
    info = replace(info, notes=(*info.notes, *told))
    if marks.baseline is not None and changes is not None:
        info = replace(info, baseline=marks.baseline.word_changes(changes))
    if marks.accepted is not None:
        info = replace(info, accepted=marks.accepted.check(collector.results(), info))
    return info


def _read_earlier(options: RunOptions) -> TakeOver | None:
    """Read the run that ``--resume`` or ``--retry`` names. Raises RequestError for both."""
    files = {"--resume": options.resume, "--retry": options.retry}
    given = {name: path for name, path in files.items() if path}
    if options.retry and options.baseline:
        given = {"--retry": options.retry, "--baseline": options.baseline}
    if len(given) > 1:
        raise RequestError(f"{' and '.join(given)} contradict each other: give one of them")
    for name, path in given.items():
        earlier = read_earlier(path, requests=name == "--retry")
        return TakeOver(name, earlier, live=options.live, strict=options.strict)
    return None


def _list_rehearsed(taken: TakeOver | None) -> tuple[str, ...]:
    """List what the run that is gone on with, or asked again, has rehearsed."""
    ends = _list_ends(taken)
    return tuple(word for word in REHEARSALS if word in ends)


def _list_ends(taken: TakeOver | None) -> set[str]:
    """List what stands behind the ids of rows in the run that is gone on with; the id of a segment
    is of no row, whose roles a requirement would have."""
    if taken is None:
        return set()
    asked = taken.earlier.info.requirements
    segments = {SEGMENT for one in asked if one.id == SEGMENT and not one.from_}
    return segments | {one.id.partition("/")[2] for one in asked}


def check_record_path(path: str, taken: TakeOver | None = None) -> None:
    """A record may have cost hours. Raises RequestError unless it is the one that is taken over."""
    check_file(f"--record {path}", path)
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    same = taken if taken is not None and os.path.samefile(path, taken.earlier.path) else None
    if same is not None and same.earlier.is_record:
        return
    words = f"that is the JSON report of {same.option}" if same else "the file exists"
    way = "" if same else f"go on from it with {word_command(['--resume', path])}, or "
    raise RequestError(f"--record {path}: {words}; {way}choose another name")


def _open_evidence(options: RunOptions) -> EvidenceFolder | None:
    """Open the folder of ``--evidence``. Raises RequestError, also where nothing records."""
    path = options.evidence
    if path is None:
        return None
    if options.no_recorder:
        raise RequestError("--evidence needs the packet recorder: leave out --no-recorder")
    if options.redact:
        raise RequestError("--evidence keeps packets with their addresses: leave out --redact")
    return open_folder(path)


@contextmanager
def _begin_record(
    path: str | None, request: RunRequest, kept: Callable[[], Iterable[Result]]
) -> Iterator[RecordWriter | None]:
    """Begin the new record with all that the earlier one leaves: they may be one file."""
    if path is None:
        yield None
        return
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    header = header_of(request.part.whole, now, live=request.rules.live)
    writer = RecordWriter(path, header, kept())
    try:
        yield writer
    except BaseException:
        writer.close(None)
        tell(f"netprobe: measured until then: {path}")
        raise


def _end_record(writer: RecordWriter | None, info: RunInfo) -> list[str]:
    """End the record; give back its problems, which never stop a run."""
    if writer is None:
        return []
    writer.close(info)
    return [writer.problem] if writer.problem else []
