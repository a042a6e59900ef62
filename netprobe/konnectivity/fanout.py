"""Stage 10: further connections get the same answer, or the fraction that does not."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.konnectivity.findings import Conclusion, Log, facts_of
from netprobe.konnectivity.reach import UNSTEADY_TRIES, Reach, repeat, try_often
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.konnectivity.tables import fill
from netprobe.protocols.services.tls import Hello
from netprobe.protocols.services.tls_talk import Attempt

LEAST_FAILURES = 2

_SERVERS = (
    "which of several servers answered: that needs registering as an agent; on a node compare "
    "open_server_connections with known_server_count in the agent's metrics"
)
# The leaf of the first answer, as Seen.chain has it; empty: any answer is as good.
ExpectedBytes = tuple[bytes, ...]


async def look_at_fan_out(
    reach: Reach, log: Log, hello: Hello, expected: ExpectedBytes
) -> Conclusion | None:
    """Try again as often as asked for; where one fails, often enough to give a fraction."""
    tries = await try_often(
        reach, hello, reach.tunnel.repeat, lambda one: _failure_of(one, expected) is None
    )
    count = len(tries)
    if any(_failure_of(one, expected) for one in tries):
        return fraction(reach, log, tries, expected)
    said = f"{count} of {count} further connections get the same answer"
    log.add("fan-out", "ok", said, {"tries": count, "failed": 0}, said)
    log.open.append(_SERVERS)
    return None


async def unsteady(
    reach: Reach, log: Log, hello: Hello, tries: Sequence[Attempt], expected: ExpectedBytes = ()
) -> Conclusion:
    """Tries that do not agree: ask again, until there are enough for a fraction."""
    more: Sequence[Attempt] = ()
    if len(tries) < UNSTEADY_TRIES:
        count = max(reach.tunnel.repeat, UNSTEADY_TRIES)
        more = await repeat(reach, hello, count, reach.patience())
    return fraction(reach, log, (*tries, *more), expected)


def fraction(
    reach: Reach, log: Log, tries: Sequence[Attempt], expected: ExpectedBytes
) -> Conclusion:
    """Give the conclusion from tries of which some failed; one failure alone may be loss."""
    failures = [(one, _failure_of(one, expected)) for one in tries]
    bad = [(one, how) for one, how in failures if how is not None]
    times = sorted({round(one.first_ms / 1000, 1) for one, _ in bad})
    evidence = reach.where() | {
        "tries": len(tries),
        "failed": len(bad),
        "kinds": ", ".join(sorted({how for _, how in bad})),
        "times": ", ".join(f"{time:g}" for time in times),
        "all_tries": [facts_of(one) for one, _ in bad],
    }
    enough = LEAST_FAILURES <= len(bad) < len(tries)
    said = fill("{failed} of {tries} connections to {to} fail ({kinds}, after {times} s)", evidence)
    log.add("fan-out", "bad" if enough else "doubt", said, evidence)
    return Conclusion("FANOUT_SOME_FAIL" if enough else "UNSTEADY", said, evidence)


def _failure_of(one: Attempt, expected: ExpectedBytes) -> str | None:
    """Give the failure of a connection; None where its answer equals the first."""
    symptom = hello_symptom(one)
    if symptom != "answered":
        return symptom
    return "another certificate" if expected and one.seen.chain[:1] != expected else None
