"""The last stages: further connections get the same answer, and an idle one still works.

``open`` is no evidence, so what was held must answer. Without a client certificate a connection is
held in the middle of the handshake (a router has long decided where it goes by then), with one or
with tokens as an idle HTTP/2 connection. Two are held at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.konnectivity.findings import Conclusion, Log, facts_of, found
from netprobe.konnectivity.reach import UNSTEADY_TRIES, Reach, open_tunnel, repeat, try_often
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.konnectivity.tables import fill
from netprobe.model.konnectivity import Event, IdleClock, OpenedPipe
from netprobe.protocols.services.http2 import Http2Talk
from netprobe.protocols.services.tls import Hello, TlsClient
from netprobe.protocols.services.tls_talk import Attempt, TlsTalk

LEAST_FAILURES = 2

_SERVERS = (
    "which of several servers answered: that needs registering as an agent; on a node compare "
    "open_server_connections with known_server_count in the agent's metrics"
)
# The leaf of the first answer, as Seen.chain has it; empty: any answer is as good.
ExpectedBytes = tuple[bytes, ...]

HOLDS = 2
FLIGHT_S = 5.0
# As long as grpc-go waits for the acknowledgement of its own PING.
PROOF_S = 20.0


class Held(Struct, frozen=True):
    """How a hold ended: ``alive``, ``fin``, ``reset``, ``silent``, ``goaway``, or ``unheld``."""

    how: str
    held_s: float
    goaway: str = ""


VERDICT_OF = {
    "fin": "HOLD_CUT_FIN",
    "reset": "HOLD_CUT_RESET",
    "silent": "HOLD_CUT_SILENTLY",
    "goaway": "HOLD_GOAWAY",
}
_HELD = "two connections to {to} that were idle ended after {held_s} s ({how})"


async def look_at_fan_out(reach: Reach, log: Log, expected: ExpectedBytes) -> Conclusion | None:
    """Try again as often as asked for; where one fails, often enough to give a fraction."""
    tries = await try_often(
        reach, reach.hello, reach.tunnel.repeat, lambda one: _failure_of(one, expected) is None
    )
    count = len(tries)
    if any(_failure_of(one, expected) for one in tries):
        return fraction(reach, log, tries, expected)
    said = f"{count} of {count} further connections get the same answer"
    log.prove("fan-out", said, {"tries": count, "failed": 0})
    log.open.append(_SERVERS)
    return None


async def unsteady(
    reach: Reach, log: Log, tries: Sequence[Attempt], expected: ExpectedBytes = ()
) -> Conclusion:
    """Tries that do not agree: ask again, until there are enough for a fraction."""
    more: Sequence[Attempt] = ()
    if len(tries) < UNSTEADY_TRIES:
        count = max(reach.tunnel.repeat, UNSTEADY_TRIES)
        hello = tries[0].hello if tries else reach.hello
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
        "again": reach.again,
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


async def look_at_hold(reach: Reach, log: Log, http2: bool) -> Conclusion | None:
    """Hold if it was asked for; None where the connections still work, or nothing can be said."""
    seconds = reach.tunnel.hold_s
    if not seconds:
        log.add("hold", "not-needed", "asked for by --hold SECONDS")
        log.open.append("idle timers on the way: --hold was not given")
        return None
    hello = replace(reach.hello, identity=reach.tunnel.identity)
    held = await asyncio.gather(*(_hold_one(reach, hello, http2) for _ in range(HOLDS)))
    ways = sorted({one.how for one in held})
    one = held[0]
    evidence = reach.where() | {
        "held_s": one.held_s,
        "held": round(one.held_s),
        "goaway": one.goaway,
        "how": ", ".join(ways),
    }
    if len(ways) > 1 or ways == ["unheld"]:
        log.add("hold", "doubt", f"two holds do not agree: {', '.join(ways)}", evidence)
        log.open.append("idle timers on the way: two holds do not agree")
        return None
    if ways == ["alive"]:
        kind = "an idle HTTP/2 connection" if http2 else "a connection in mid-handshake"
        said = f"{kind} that was held {seconds:g} s still works"
        log.prove("hold", said, evidence)
        return None
    return log.fail("hold", found(VERDICT_OF[one.how], _HELD, evidence))


async def _hold_one(reach: Reach, hello: Hello, http2: bool) -> Held:
    way = _hold_http2 if http2 else _hold_handshake
    async with open_tunnel(reach) as (stream, failure):
        if failure is not None:
            return Held("unheld", 0.0)
        return await way(stream, hello, reach)


async def _hold_handshake(stream: OpenedPipe, hello: Hello, reach: Reach) -> Held:
    """Take the server's flight, answer nothing for the time, then finish: it must complain."""
    client = TlsClient(hello)
    await stream.send(client.start())
    answer = b""
    event = await stream.receive(FLIGHT_S)
    while event.kind == "data" and not answer:
        answer = client.feed(event.data)
        if not answer:
            event = await stream.receive(FLIGHT_S)
    if not answer:
        return Held("unheld", 0.0)
    clock = IdleClock()
    clock.note(event)
    event = await stream.receive(reach.tunnel.hold_s)
    clock.note(event)
    held_s = round(clock.idle_ms / 1000, 1)
    if event.kind == "data":
        # Only the end has something to say here: close_notify, or a second part of the flight.
        event = await stream.receive(max(0.1, reach.tunnel.hold_s - held_s))
    if event.over:
        return Held(_read_event(event), held_s)
    await stream.send(answer)
    return Held(_read_event(await stream.receive(PROOF_S)), held_s)


async def _hold_http2(stream: OpenedPipe, hello: Hello, reach: Reach) -> Held:
    """Keep HTTP/2 open without a stream, then one PING; the server's own PINGs are answered.

    grpc-go counts PINGs that come sooner than 30 s after another one; of a single one it has none.
    """
    tls = TlsTalk(stream, hello)
    await tls.shake(reach.patience())
    if not tls.usable:
        return Held("unheld", 0.0)
    http = Http2Talk(tls)
    facts = await http.begin(tls.attempt.greeting)
    begun = asyncio.get_running_loop().time()
    until = begun + reach.tunnel.hold_s
    while facts.ended is None and (left := until - asyncio.get_running_loop().time()) > 0:
        await http.wait(left)
    held_s = round(http.clock.idle_ms / 1000, 1)
    alive = facts.ended is None and await http.ping()
    goaway = "" if facts.goaway is None else f"{facts.goaway[0]} {facts.goaway[1]}".strip()
    if goaway:
        return Held("goaway", held_s, goaway)
    return Held("alive" if alive else _read_end(facts.ended), held_s)


def _read_end(how: str | None) -> str:
    return how if how in ("fin", "reset") else "fin" if how == "closed" else "silent"


def _read_event(event: Event) -> str:
    return "alive" if event.kind == "data" else _read_end(event.kind)
