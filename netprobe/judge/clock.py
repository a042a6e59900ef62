"""What a time server says of its clock, and the source's clock against it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from netprobe.model.evidence import Evidence, ServerClock
from netprobe.model.result import Result

# Clocks that are further apart make trouble: etcd warns, tokens and certificates are not valid yet.
MOST_OFFSET_MS = 500
# ntpd ignores servers that are further from their source (MAXDIST), chronyd those above 3 s.
MOST_DISTANCE_MS = 1500
# From here on servers say by convention that they follow nobody (chrony: local stratum 10).
ALONE = 10
# Codes of servers that never serve the host that asks (RFC 5905, section 7.4).
_TURNED_AWAY = ("DENY", "RSTR")


def judge_clock(result: Result, evidence: Evidence, live: bool) -> Result:
    """Say on a flow that passes what is wrong with the time.

    A server without time is a failure with ``live``; the source's own clock never is: the flow is
    in order.
    """
    clock = evidence.outcome.clock if evidence.outcome is not None else None
    if clock is None or result.verdict != "pass":
        return result
    server = f"{evidence.flow.destination.name} ({evidence.address})"
    useless = _find_useless(clock)
    if useless is None:
        warnings = tuple(_find_doubts(clock, server, evidence.flow.source.name))
        return replace(result, warnings=result.warnings + warnings)
    what, to_do = useless
    if live:
        return replace(
            result, verdict="blocked", reason="clock-server", proof="none",
            where=("service",), because=f"{server} {what}; to do: {to_do}",
        )  # fmt: skip
    warning = f"{server} {what} (with --live it is a failure); to do: {to_do}"
    return replace(result, warnings=(*result.warnings, warning))


def _find_useless(clock: ServerClock) -> tuple[str, str] | None:
    """Say why nobody gets time there, and what to do; None where hosts do."""
    if clock.kiss in _TURNED_AWAY:
        what = f"turns this host away (NTP kiss code {clock.kiss})"
        return what, "let it ask there (allow, restrict)"
    if clock.kiss is None and not clock.good:
        what = f"says that it is not synchronised itself (stratum {clock.stratum})"
        what += ": hosts take no time from it"
        return what, "see its own sources there (chronyc sources, ntpq -p)"
    return None


def _find_doubts(clock: ServerClock, server: str, source: str) -> Iterator[str]:
    if clock.kiss is not None:
        return
    if clock.stratum >= ALONE:
        yield (
            f"{server} has stratum {clock.stratum}: it, or the server that it follows, runs on its "
            "own clock; to do: see its sources (chronyc sources, ntpq -p)"
        )
    if clock.distance_ms > MOST_DISTANCE_MS:
        yield (
            f"{server} may be wrong by {clock.distance_ms / 1000:.1f} s by its own word (root "
            "distance): ntpd takes no time above 1.5 s, chronyd none above 3 s; to do: see its "
            "sources (chronyc sources, ntpq -p)"
        )
    offset = clock.offset_ms
    if offset is not None and abs(offset) - clock.error_ms > MOST_OFFSET_MS:
        way = "ahead of" if offset > 0 else "behind"
        yield (
            f"the clock of {source} is {word_ms(abs(offset))} {way} that of {server} (wrong by "
            f"{word_ms(clock.error_ms)} at most); to do: set it (chronyc makestep), or mend the "
            "server where other hosts and servers agree with this one"
        )


def word_ms(time_ms: float) -> str:
    """Word a time: ``12 ms``, ``2.5 s``."""
    return f"{time_ms / 1000:,.1f} s" if time_ms >= 1000 else f"{time_ms:.0f} ms"
