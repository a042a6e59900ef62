"""The verbs that plan or probe: ``run``, ``plan``, ``check --hosts``."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TextIO

import click

from netprobe import pipeline
from netprobe.cli.options import HOST_FORMATS, PLAN_FORMATS, RUN_FORMATS, VerbOptions
from netprobe.cli.report import finish
from netprobe.errors import NetprobeError, RequestError
from netprobe.model.exit import PASS, UNKNOWN
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.sink import Sink
from netprobe.plan.cost import estimate
from netprobe.plan.select import Selection
from netprobe.report.collector import Collector
from netprobe.report.hosts_report import write_hosts_json, write_hosts_text
from netprobe.report.merge import ranges_of
from netprobe.report.outputs import check_file, parse_outputs, write_outputs
from netprobe.report.plan_report import write_plan_count, write_plan_json, write_plan_text
from netprobe.report.progress import progress
from netprobe.report.reading import read_earlier
from netprobe.report.record import (
    Earlier,
    Recorded,
    RecordWriter,
    ResultKey,
    done_ports,
    header_of,
    kept,
)
from netprobe.report.terminal_safe import clean


def run_verb(options: VerbOptions) -> int:
    """Plan, probe, report."""
    outputs = parse_outputs(options["outputs"], RUN_FORMATS, "text")
    if options["record"]:
        check_file(f"--record {options['record']}", options["record"])
    if options["jobs"] is not None:
        _tell_note("--jobs is ignored: one process an agent is enough")
    request = request_of(options)
    earlier = read_earlier(options["resume"]) if options["resume"] else None
    if options["record"]:
        _refuse_to_overwrite(options["record"], earlier)
    plan = pipeline.make_plan(request)
    probing = _probing(options)
    with ExitStack() as stack:
        collector = Collector(ranges_of(plan))
        stack.callback(collector.close)
        run = _start(plan, collector, earlier, options["record"])
        info = run.probe(probing)
        return finish(info, collector, outputs, run.problems())


@dataclass(frozen=True, slots=True)
class _Run:
    """One run with its sinks. ``done`` are the ports that an earlier record holds already."""

    plan: Plan
    collector: Collector
    writer: RecordWriter | None
    done: Mapping[ResultKey, Ports]
    note: str | None

    def probe(self, probing: pipeline.Probing) -> RunInfo:
        """Probe, and end the record whatever happens."""
        sink: Sink = self.collector if self.writer is None else Both(self.collector, self.writer)
        try:
            with progress(sys.stderr) as events:
                info = pipeline.run(self.plan, probing, sink, events, self.done)
        except BaseException:
            self._close(None)
            if self.writer is not None:
                click.echo(f"netprobe: measured until then: {self.writer.path}", err=True)
            raise
        info = replace(info, notes=(*info.notes, self.note)) if self.note else info
        self._close(info)
        return info

    def _close(self, info: RunInfo | None) -> None:
        if self.writer is not None:
            self.writer.close(info)

    def problems(self) -> list[str]:
        """What went wrong with the record, which never stops a run."""
        return [self.writer.problem] if self.writer and self.writer.problem else []


class Both:
    """A sink that hands every result to two others."""

    def __init__(self, first: Sink, second: Sink) -> None:
        self._first = first
        self._second = second

    def add(self, result: Result) -> None:
        """Hand it on; first to what keeps it for the report."""
        self._first.add(result)
        self._second.add(result)


def _refuse_to_overwrite(path: str, earlier: Earlier | None) -> None:
    """A record may have cost hours. Raises RequestError unless it is the one that is resumed."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    resumed = earlier is not None and os.path.samefile(path, earlier.path)
    if resumed and isinstance(earlier, Recorded):
        return
    words = "that is the JSON report of --resume" if resumed else "the file exists"
    way = "" if resumed else f"go on from it with --resume {path}, or "
    raise RequestError(f"--record {path}: {words}; {way}choose another name")


def _start(plan: Plan, collector: Collector, earlier: Earlier | None, path: str | None) -> _Run:
    """Take over what an earlier run left, then begin the new record: they may be one file."""
    done: Mapping[ResultKey, Ports] = {}
    note = None
    if earlier is not None:
        for result in kept(earlier, plan):
            collector.add(result)
        done = done_ports(kept(earlier, plan))
        then = earlier.info.started_at or "an earlier time"
        note = f"final results of {earlier.path}, begun {then}, were not probed again"
    writer = None
    if path is not None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        before = () if earlier is None else kept(earlier, plan)
        writer = RecordWriter(path, header_of(plan, now), before)
    return _Run(plan, collector, writer, done, note)


def plan_verb(options: VerbOptions) -> int:
    """Print the plan."""
    outputs = parse_outputs(options["outputs"], PLAN_FORMATS, "text")
    plan = pipeline.make_plan(request_of(options))
    cost = estimate(plan)

    def render(format_: str, stream: TextIO) -> None:
        if format_ == "json":
            write_plan_json(plan, cost, options["count"], stream)
        elif options["count"]:
            write_plan_count(plan, cost, stream)
        else:
            write_plan_text(plan, cost, stream)

    if options["count"]:
        _tell_notes(plan)
    raise_problems(write_outputs(outputs, render))
    return 0


def _tell_notes(plan: Plan) -> None:
    """What the user may have misspelt, where standard output has no place for it."""
    for note in plan.notes:
        _tell_note(clean(note))


def _tell_note(note: str) -> None:
    click.echo(f"netprobe: note: {note}", err=True)


def check_hosts_verb(options: VerbOptions) -> int:
    """Start and stop every agent; 3 where one cannot be started, or not with the sudo asked for."""
    outputs = parse_outputs(options["outputs"], HOST_FORMATS, "text")
    plan = pipeline.make_plan(request_of(options))
    _tell_notes(plan)
    probing = pipeline.Probing(forks=options["forks"], become_password=password_of(options))
    with progress(sys.stderr) as events:
        hosts = pipeline.check_hosts(plan, probing, events)
    formats = {"text": partial(write_hosts_text, hosts), "json": partial(write_hosts_json, hosts)}
    raise_problems(write_outputs(outputs, lambda format_, stream: formats[format_](stream)))
    return UNKNOWN if any(map(_falls_short, hosts)) else PASS


def _falls_short(host: HostReport) -> bool:
    return host.state in ("failed", "lost") or bool(host.facts.get("sudo_failed"))


def raise_problems(problems: list[str]) -> None:
    """Raise all of them as one, if there are any."""
    if problems:
        raise NetprobeError("\n".join(problems))


def request_of(options: VerbOptions) -> pipeline.Request:
    """What the user asked for. Raises RequestError where no matrix is named."""
    if not options["matrices"]:
        raise RequestError(
            "no matrix: give --matrix NAME or FILE (`netprobe matrix list` shows the bundled ones)"
        )
    return pipeline.Request(
        matrices=options["matrices"],
        inventories=options["inventories"],
        sets=options["sets"],
        selection=Selection(
            options["limit"],
            options["from_"],
            options["to"],
            options["only"],
            options["protocol"],
        ),
    )


def _probing(options: VerbOptions) -> pipeline.Probing:
    return pipeline.Probing(
        timeout_s=options["timeout"],
        retries=options["retries"],
        rate=options["rate"],
        forks=options["forks"],
        listen=not options["no_listen"],
        strict=options["strict"],
        live=options["live"],
        sample=options["sample"],
        max_results=options["max_results"],
        become_password=password_of(options),
    )


def password_of(options: VerbOptions) -> str | None:
    """The sudo password; it leaves the environment, which ssh and all agents would inherit."""
    given = os.environ.pop("NETPROBE_BECOME_PASSWORD", None)
    if not options["ask_become_pass"]:
        return given or None
    try:
        # getpass falls back to an echoing stdin where there is no terminal; we do not.
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError as error:
        words = "--ask-become-pass needs a terminal; set NETPROBE_BECOME_PASSWORD instead"
        raise RequestError(words) from error
    return getpass.getpass("sudo password: ")
