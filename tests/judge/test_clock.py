"""Time servers, judged: their clock, and the source's against it."""

from __future__ import annotations

import pytest

from netprobe.judge.findings import fold
from netprobe.model.evidence import Evidence, Outcome, ServerClock

from .test_verdict import evidence, one

GOOD = ServerClock(2, True, None, 10.0, 3.0, 1.0)


def told(clock: ServerClock) -> Evidence:
    """A time server that answered."""
    return evidence(Outcome("answer", None, answer="service", said="NTP", clock=clock), "udp")


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (GOOD, ()),
        (GOOD._replace(offset_ms=None), ()),
        (GOOD._replace(offset_ms=499.0, error_ms=0.0), ()),
        (GOOD._replace(offset_ms=900.0, error_ms=450.0), ()),
        (GOOD._replace(offset_ms=502.0), ("a is 502 ms ahead of that of b (10.0.0.2)",)),
        (GOOD._replace(offset_ms=-61000.0), ("a is 61.0 s behind that of b",)),
        (GOOD._replace(stratum=10), ("has stratum 10",)),
        (GOOD._replace(distance_ms=2100.0), ("may be wrong by 2.1 s by its own word",)),
        (ServerClock(0, False, "RATE"), ()),
        (ServerClock(0, False, "DENY"), ("turns this host away (NTP kiss code DENY)",)),
        (ServerClock(16, False), ("not synchronised itself (stratum 16)",)),
    ],
)
def test_warnings(clock: ServerClock, words: tuple[str, ...]) -> None:
    """The flow passes; only what is certain is said."""
    result = one(told(clock))

    assert result.verdict == "pass"
    assert len(result.warnings) == len(words)
    assert all(some in text for some, text in zip(words, result.warnings, strict=True))


@pytest.mark.parametrize("clock", [ServerClock(16, False), ServerClock(0, False, "RSTR")])
def test_a_server_that_gives_no_time_fails_a_live_run(clock: ServerClock) -> None:
    """The service is at fault, and the advice says where to look."""
    result = one(told(clock), live=True)

    assert (result.verdict, result.reason, result.where) == (
        "blocked",
        "clock-server",
        ("service",),
    )
    (finding,) = fold([result])
    assert finding.kind == "clock"
    assert "chronyc sources" in finding.advice


def test_the_sources_own_clock_is_no_failure() -> None:
    """Also in a live run the flow is in order."""
    assert one(told(GOOD._replace(offset_ms=9e6)), live=True).verdict == "pass"
