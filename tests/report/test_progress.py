"""Progress on standard error."""

from __future__ import annotations

import io

import pytest

from netprobe.model.host_key import HostKey
from netprobe.model.result import HostReport
from netprobe.model.run import RunInfo
from netprobe.report.page.progress import (
    HostsOnly,
    KeysTogether,
    PlainProgress,
    phases_text,
    progress,
)
from netprobe.report.page.terminal import live_progress

LOST = HostReport(name="worker-3", state="failed", words="ssh: \x1b[31mtimed out\nreally")


class Clock:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_plain_lines_are_few() -> None:
    """One line every 5 s, and no more, however often progress is told, and however fast it is."""
    stream, clock = io.StringIO(), Clock()
    events = PlainProgress(stream, clock)
    for done in range(1001):
        clock.now_s = done / 64
        events.progress(done, 1000, "")

    assert stream.getvalue().splitlines() == [
        f"netprobe: {done:,} of 1,000 flows ({done // 10} %)" for done in (320, 640, 960)
    ]


def test_plain_lines_go_on_while_nothing_moves() -> None:
    """Where no flow is final for long, a line every 5 s shows that the run lives."""
    stream, clock = io.StringIO(), Clock()
    events = PlainProgress(stream, clock)
    for second in range(1, 12):
        clock.now_s = float(second)
        events.progress(0, 7, "starting the agent of a")

    assert stream.getvalue() == "netprobe: 0 of 7 flows (0 %), starting the agent of a\n" * 2


def test_quiet_tells_only_what_goes_wrong() -> None:
    """Also on a terminal."""
    for stream in io.StringIO(), Terminal():
        with progress(stream, quiet=True, verbose=True) as events:
            for done in range(8):
                events.progress(done, 7, f"probing from a to {done}")
            events.host(LOST)

        assert stream.getvalue() == "netprobe: worker-3: no agent: ssh: timed out really\n"


def test_hosts() -> None:
    """A host that failed is told at once, in one harmless line; one that works is no news."""
    stream = io.StringIO()
    with progress(stream) as events:
        events.host(HostReport(name="worker-1", state="agent"))
        events.host(LOST)

    assert stream.getvalue() == "netprobe: worker-3: no agent: ssh: timed out really\n"


def key_report(name: str) -> HostReport:
    """A host whose key nobody has accepted yet."""
    return HostReport(
        name=name, state="failed", words="...", host_key=HostKey(state="unknown", target=name)
    )


def test_untrusted_host_keys_are_one_line_for_all_hosts() -> None:
    """With the command that mends it, 5 s after the first, or at the end; also of quiet runs."""
    for quiet in False, True:
        stream, clock = io.StringIO(), Clock()
        events = HostsOnly(stream) if quiet else PlainProgress(stream, clock)
        together = KeysTogether(events, clock)
        together.host(key_report("a"))
        together.host(LOST)
        clock.now_s = 4.9
        together.progress(0, 7, "")
        together.host(key_report("b"))
        assert stream.getvalue().count("\n") == 1
        clock.now_s = 5.0
        together.progress(0, 7, "")
        together.tell_held()

        told = [line for line in stream.getvalue().splitlines() if "host key" in line]
        (line,) = told
        assert line.startswith("netprobe: no agent: the host keys of 2 hosts (a, b) are not known")
        assert line.endswith(
            'for host in a b; do ssh -o StrictHostKeyChecking=ask "$host" true; done'
        )
    for stream in io.StringIO(), Terminal():
        with progress(stream) as shown:
            shown.host(key_report("a"))
        assert "the host key of a is not known yet" in stream.getvalue()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_live() -> None:
    """On a terminal the lines about hosts stay and carry no escape sequence of the host's."""
    stream = Terminal()
    with live_progress(stream) as events:
        events.host(HostReport(name="worker-1", state="agent"))
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


def test_verbose_lines_tell_every_change() -> None:
    """What the run is doing is a line each time that it changes."""
    stream = io.StringIO()
    events = PlainProgress(stream, lambda: 0.0, verbose=True)
    for note in ("probing from a to b", "probing from a to b", "tracing the way from a to b", ""):
        events.progress(0, 7, note)

    assert stream.getvalue().splitlines() == [
        "netprobe: 0 of 7 flows (0 %), probing from a to b",
        "netprobe: 0 of 7 flows (0 %), tracing the way from a to b",
    ]


def test_the_end_says_where_the_time_went() -> None:
    """The longest phase first; what took next to nothing is left out."""
    info = RunInfo(elapsed_s=4.2, phases={"starts": 0.6, "walks": 2.24, "listeners": 0.01})

    assert phases_text(info) == "4.2 s: tracing ways 2.2 s, starting agents 0.6 s"
