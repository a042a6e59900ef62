"""Progress on standard error."""

from __future__ import annotations

import io

import pytest

from netprobe.model.result import HostReport
from netprobe.report.live import live_progress
from netprobe.report.progress import PlainProgress, progress

LOST = HostReport("worker-3", "failed", words="ssh: \x1b[31mtimed out\nreally")


class Clock:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_plain_lines_are_few() -> None:
    """One line every 10 % or 5 s, and no more, however often progress is told."""
    stream, clock = io.StringIO(), Clock()
    events = PlainProgress(stream, clock)
    for done in range(1001):
        clock.now_s = done / 200
        events.progress(done, 1000, "")

    assert stream.getvalue().splitlines() == [
        f"netprobe: {done:,} of 1,000 flows ({done // 10} %)" for done in range(100, 1001, 100)
    ]


def test_plain_lines_go_on_while_nothing_moves() -> None:
    """Where no flow is final for long, a line every 5 s shows that the run lives."""
    stream, clock = io.StringIO(), Clock()
    events = PlainProgress(stream, clock)
    for second in range(1, 12):
        clock.now_s = float(second)
        events.progress(0, 7, "starting agents")

    assert stream.getvalue() == "netprobe: 0 of 7 flows (0 %), starting agents\n" * 2


def test_hosts() -> None:
    """A host that failed is told at once, in one harmless line; one that works is no news."""
    stream = io.StringIO()
    with progress(stream) as events:
        events.host(HostReport("worker-1", "agent"))
        events.host(LOST)

    assert stream.getvalue() == "netprobe: worker-3: no agent: ssh: timed out really\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_live() -> None:
    """On a terminal the lines about hosts stay and carry no escape sequence of the host's."""
    stream = Terminal()
    with live_progress(stream) as events:
        events.host(HostReport("worker-1", "agent"))
        events.progress(3, 7, "to [bold]master-0[/bold]")
        events.host(LOST)

    assert "worker-3: no agent: ssh: timed out really" in stream.getvalue()
    assert "\x1b[31mtimed" not in stream.getvalue()


def test_dumb_terminals_get_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb gets plain lines."""
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with progress(stream) as events:
        events.host(LOST)

    assert stream.getvalue() == "netprobe: worker-3: no agent: ssh: timed out really\n"
