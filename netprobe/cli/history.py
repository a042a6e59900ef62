"""The verbs of a history: ``history`` and ``history add``."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from netprobe.cli.asked import HistoryAddOptions, HistoryOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.options import HISTORY_FORMATS, RUN_FORMATS
from netprobe.cli.report import finish, fold_failures
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.history.ledger import open_ledger
from netprobe.history.looks import look_of_run
from netprobe.history.outages import replay
from netprobe.model.exit import PASS
from netprobe.model.outage import History, Interval, Outage, RunLook
from netprobe.model.ports import MAX_PORT, WITH_PORTS, Ports, intersect
from netprobe.model.result import ResultKey
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.times import word_time
from netprobe.report.page.wording import plural
from netprobe.report.record.record import read_run
from netprobe.report.verbs.history import HISTORY_WRITERS

# Source, destination, protocol, port.
WantedFlow = tuple[str, str, str, int]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_verb(options: HistoryAddOptions) -> int:
    """Take runs into the history; each is a look. All are read before the first is kept."""
    found = [(path, *_read_look(path)) for path in options.runs]
    with open_ledger(options.history, create=True) as ledger:
        for path, look, run in found:
            if not ledger.add(look, run):
                tell(f"netprobe: {path} is in {options.history} already")
                continue
            found_words = plural(len(look.findings), "finding")
            tell(f"netprobe: {path}: a look of {word_time(look.begun)}, {found_words}")
    return PASS


def history_verb(options: HistoryOptions) -> int:
    """Print outages, or with ``--when`` the report of a moment."""
    now = datetime.now(UTC)
    if options.when is not None:
        if options.since is not None or options.flow is not None:
            raise RequestError("--when prints one run's report: give it without --since and --flow")
        return _report_moment(options, _read_moment("--when", options.when, now))
    wanted = read_outputs(options.outputs, HISTORY_FORMATS, options)
    since = _read_moment("--since", options.since, now) if options.since is not None else None
    flow = _read_flow(options.flow) if options.flow is not None else None
    with open_ledger(options.history) as ledger:
        looks = list(ledger.looks())
    if flow is not None and not _is_asked(looks, flow):
        raise RequestError(f"--flow {options.flow}: no look of {options.history} asked this flow")
    history = replay(looks)
    write_or_raise(wanted, HISTORY_WRITERS, _choose_part(history, since, flow))
    return PASS


def _report_moment(options: HistoryOptions, moment: float) -> int:
    """Print the report of the last run that began then or before, with its exit status."""
    wanted = read_outputs(options.outputs, RUN_FORMATS, options)
    with open_ledger(options.history) as ledger, tempfile.NamedTemporaryFile() as file:
        file.write(ledger.run_at(moment))
        file.flush()
        info, collector = read_run(file.name)
    return finish(info, collector, wanted, [])


def _read_moment(name: str, words: str, now: datetime) -> float:
    """Read ``7d``, ``90m`` (ago), or a time with ``Z`` or a zone; one without is local.

    Raises RequestError.
    """
    ago = re.fullmatch(r"(\d{1,6})([smhdw])", words, re.ASCII)
    try:
        if ago:
            return (now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])).timestamp()
        return datetime.fromisoformat(words).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise RequestError(
            f"{name} {words}: expected how long ago, such as 7d or 90m, or a time such as "
            "2027-01-31T14:00Z"
        ) from None


def _read_look(path: str) -> tuple[RunLook, bytes]:
    """Read a record or a JSON report, and its bytes. Raises FileErrors and RequestError."""
    if not os.path.isfile(path):
        raise RequestError(f"{path}: this is no file, expected a record or a JSON report")
    info, collector = read_run(path)
    with closing(collector):
        look = look_of_run(path, info, collector.results(), fold_failures(info, collector))
    return look, Path(path).read_bytes()


def _read_flow(words: str) -> WantedFlow:
    """Read ``worker-0:master-0:tcp/6443``; port 0 where the protocol has none."""
    match = re.fullmatch(r"([^\s:]+):([^\s:]+):([a-z0-9]+)(?:/(\d{1,5}))?", words, re.ASCII)
    port = int(match[4] or 0) if match is not None else 0
    if match is None or port > MAX_PORT or (match[3] in WITH_PORTS and not port):
        raise RequestError(
            f"--flow {words}: expected SOURCE:DESTINATION:PROTOCOL/PORT, such as "
            "worker-0:master-0:tcp/6443 or worker-0:master-0:icmp"
        )
    source, destination, protocol = match.groups()[:3]
    return source, destination, protocol, port


def _choose_part(history: History, since: float | None, flow: WantedFlow | None) -> History:
    """Give the outages that overlap the time since then, and have this flow."""
    outages = (one for one in history.outages if since is None or _is_since(one.times, since))
    blind = (one for one in history.blind if since is None or (one.until or since) >= since)
    return replace(
        history,
        looks=tuple(one for one in history.looks if since is None or one[1] >= since),
        outages=tuple(one for one in outages if flow is None or _has_flow(one, flow)),
        blind=tuple(one for one in blind if flow is None or one.host == flow[0]),
        marks=tuple(
            one
            for one in history.marks
            if (since is None or one.first_now >= since)
            and (flow is None or one.concerns(flow[0], flow[1]))
        ),
    )


def _is_since(times: Interval, since: float) -> bool:
    return times.end is None or times.end >= since


def _is_asked(looks: Iterable[RunLook], flow: WantedFlow) -> bool:
    """Tell whether a look asked this flow; most asked the same as others."""
    distinct = {id(one.asked): one.asked for one in looks}.values()
    return any(_is_flow(*one, flow) for asked in distinct for one in asked.items())


def _has_flow(outage: Outage, flow: WantedFlow) -> bool:
    return any(_is_flow(one.key, one.ports, flow) for one in outage.members)


def _is_flow(key: ResultKey, ports: Ports, flow: WantedFlow) -> bool:
    source, destination, protocol, port = flow
    ends, own = (source, destination), ((port, port),)
    return key[2:4] == ends and key[5] == protocol and bool(intersect(ports, own))
