"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from netprobe.model.host_key import HostKey
from netprobe.model.printable import clean
from netprobe.model.result import HostReport
from netprobe.model.run import Events, RunInfo
from netprobe.report.page.host_keys import word_host_keys
from netprobe.report.page.page import encodable
from netprobe.report.page.wording import number

# A log file wants to see that something goes on, not to fill up.
PLAIN_INTERVAL_S = 5.0
LEAST_TOLD_S = 0.05
# What files call the phases, in plain words.
_PHASES = {
    "starts": "starting agents", "listeners": "opening listeners", "probes": "probing",
    "second looks": "looking again", "walks": "tracing ways",
}  # fmt: skip


@contextmanager
def progress(stream: TextIO, *, verbose: bool = False, quiet: bool = False) -> Iterator[Events]:
    """Give the events of one run, shown as the stream allows; on leaving, the live line is gone.

    ``verbose``: a stream that is no terminal also gets what the run is doing, as it changes.
    ``quiet``: only hosts that failed.
    """
    with _choose_progress(stream, verbose=verbose, quiet=quiet) as events:
        together = KeysTogether(events)
        try:
            yield together
        finally:
            together.tell_held()


@contextmanager
def _choose_progress(stream: TextIO, *, verbose: bool, quiet: bool) -> Iterator[HostEvents]:
    if quiet:
        yield HostsOnly(stream)
    elif stream.isatty() and os.environ.get("TERM") != "dumb":
        # rich takes 60 ms to import, and pipes do not need it.
        from netprobe.report.page.terminal import live_progress  # noqa: PLC0415

        with live_progress(stream) as events:
            yield events
    else:
        yield PlainProgress(stream, verbose=verbose)


class HostEvents(Events, Protocol):
    """Events that are also told lines about hosts."""

    def tell_line(self, text: str) -> None:
        """Tell a line that stays."""


class KeysTogether:
    """Hands events on; hosts whose keys ssh does not trust become one line, a little later."""

    def __init__(self, events: HostEvents, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._held: dict[str, HostReport] = {}
        self._since_s = 0.0

    def host(self, report: HostReport) -> None:
        """Hand it on, or hold it: others may have the same trouble."""
        if report.host_key is None:
            self._events.host(report)
            return
        self._since_s = self._since_s if self._held else self._clock()
        self._held[report.name] = report

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        """Hand it on, and tell what is held for long enough."""
        if self._held and self._clock() >= self._since_s + PLAIN_INTERVAL_S:
            self.tell_held()
        self._events.progress(done_flows, total_flows, note)

    def tell_held(self) -> None:
        """Tell what is held: one line for each command that mends it."""
        for text in word_failed_hosts(self._held.values()):
            self._events.tell_line(text)
        self._held = {}


def word_failed_hosts(hosts: Iterable[HostReport]) -> Iterator[str]:
    """Give a line for each host that cannot be used, of untrusted host keys one for many."""
    keys: dict[str, HostKey] = {}
    for host in hosts:
        if host.host_key is None:
            yield host_text(host)
        else:
            keys[host.name] = host.host_key
    for trouble in word_host_keys(keys):
        yield f"no agent: {trouble.what}. {trouble.to_do}"


class PlainProgress:
    """Lines for a log: hosts that failed, and progress every 5 s."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        verbose: bool = False,
    ) -> None:
        self._verbose = verbose
        self._note = ""
        self._stream = stream
        self._clock = clock
        self._last_s = clock()

    def host(self, report: HostReport) -> None:
        """Print the problem of a host; a working host prints nothing."""
        if report.state in ("failed", "lost"):
            self.tell_line(host_text(report))

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        """Say how far the run is, where enough time has passed."""
        now_s = self._clock()
        changed = self._verbose and note not in ("", self._note)
        if not changed and now_s < self._last_s + PLAIN_INTERVAL_S:
            return
        self._last_s, self._note = now_s, note
        doing = f", {note}" if note else ""
        self.tell_line(f"{progress_text(done_flows, total_flows)}{doing}")

    def tell_line(self, text: str) -> None:
        """Print a line."""
        self._stream.write(f"netprobe: {encodable(clean(text), self._stream)}\n")
        self._stream.flush()


class HostsOnly(PlainProgress):
    """The problems of hosts, and no progress."""

    def progress(self, done_flows: int, total_flows: int, note: str) -> None:
        """Say nothing."""


def host_text(report: HostReport) -> str:
    """Give one line about a host that cannot be used."""
    what = "agent lost" if report.state == "lost" else "no agent"
    return f"{report.name}: {what}: {host_words(report)}"


def host_words(report: HostReport) -> str:
    """Give the words of the host or of ssh, without the host's name, which stands before them."""
    return report.words.removeprefix(f"{report.name}: ")


def progress_text(done_flows: int, total_flows: int) -> str:
    """``1,234 of 5,678 flows (21 %)``."""
    percent = 100 * done_flows // total_flows if total_flows else 100
    return f"{number(done_flows)} of {number(total_flows)} flows ({percent} %)"


def phases_text(info: RunInfo) -> str:
    """Say where the time of a run went: ``12.3 s: looking again 8.1 s, probing 0.9 s ...``."""
    longest = sorted(info.phases.items(), key=lambda item: -item[1])
    parts = [
        f"{_PHASES.get(phase, phase)} {seconds:.1f} s"
        for phase, seconds in longest
        if seconds >= LEAST_TOLD_S
    ]
    return f"{info.elapsed_s:.1f} s: {', '.join(parts)}"
