"""Stages 4 to 6: a small ClientHello, one of the real agent's size, and what size passes if not."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from netprobe.konnectivity import identity
from netprobe.konnectivity.findings import Conclusion, Log, facts_of, found, icmp_evidence
from netprobe.konnectivity.further import unsteady
from netprobe.konnectivity.reach import LEAST_MSS, Reach, Tasks, Tries, attempt, look, open_tunnel
from netprobe.konnectivity.symptoms import AT_ONCE_MS, hello_symptom
from netprobe.konnectivity.tables import HELLO, fill
from netprobe.konnectivity.verdicts import LARGE_HELLO_LOGS
from netprobe.model.decision import first_match
from netprobe.model.konnectivity import TunnelPlace
from netprobe.protocols.services.tls import Hello
from netprobe.protocols.services.tls_talk import BRIEF, Attempt, Patience

# If the name in the hello may decide the answer, the same address is asked with another name.
_BY_NAME = ("reset", "closed", "lost")
_ENDED = ("reset", "closed")
_UNASKED: dict[bool | None, str] = {
    True: "; a connection on which nothing is sent is ended at once, too",
    False: "; one on which nothing is sent stays open",
}
# TCP_INFO counts without the timestamp option, TCP_MAXSEG with it.
_OPTION_BYTES = 12
# The hello of the real agent has 1,518 bytes and more: two segments.
AGENT_SIZE = 1700
_SIZES_AT_ONCE = 8
_TRIES_OF_SIZE = 2
# Balancers give up on a back end that does not answer after 15 s to 30 s, if they do.
LATE_S = 40
_LATE = "whether a balancer in front gives up on its back end"
# What another name gets that shows an edge where the tunnel's name meets silence.
_SHOWS_EDGE: dict[str, str] = {
    "answered": "is answered", "closed": "gets an end at once", "reset": "gets a reset at once",
    "foreign": "gets an answer that is no TLS",
}  # fmt: skip
# An edge answers within a round trip or two, and all has waited for silence before.
_CONTROL = Patience(2.0, 2.0, 2.0)
PATH_OR_EDGE: TunnelPlace = "path or load balancer"
_FAILED = "a ClientHello of {large_bytes:,} bytes gets no answer ({tries} tries)"


async def look_at_hellos(reach: Reach, log: Log) -> tuple[Attempt, Attempt] | Conclusion:
    """Give the two answers, the small hello's first; or why there is none."""
    answered: list[Tries] = []
    hellos = {"tls-small": reach.hello, "tls-agent-size": replace(reach.hello, padding=AGENT_SIZE)}
    for name, hello in hellos.items():
        tries = await look(reach, hello)
        one = tries.first
        if tries.symptom is None:
            log.add(name, "doubt", "tries do not agree", facts_of(one))
            return await unsteady(reach, log, tries.tries)
        answered.append(tries)
        if tries.symptom != "answered":
            return await _conclude_failure(reach, log, *answered)
        size = f"ClientHello of {one.seen.hello_bytes:,} bytes"
        said = f"{size} answered after {one.first_ms:.1f} ms"
        log.add(name, "ok", said, facts_of(one), f"a {size} is answered")
    numbers = {name: one.tcp.get(name) for name in ("snd_mss", "advmss", "pmtu")}
    said = f"full segments pass both ways (MSS {one.tcp.get('snd_mss')}): no search needed"
    fine = "packets as large as this path's MSS allows pass both ways"
    log.add("mtu", "ok", said, numbers, fine)
    return answered[0].first, one


async def _conclude_failure(
    reach: Reach, log: Log, small: Tries, large: Tries | None = None
) -> Conclusion:
    """Give the verdict of the table, with the numbers that it wants."""
    unasked = await _ends_unasked(reach) if small.symptom in _ENDED else None
    if unasked or any(hello_symptom(one) == "closed" for one in small.tries):
        # Whoever closes with unread bytes sends a reset: which of both comes is chance.
        small = replace(small, symptom="closed")
    tries = small if large is None else large
    symptom = "none" if large is None else large.symptom or "none"
    row = first_match(HELLO, (small.symptom or "none", symptom, tries.segmented_symptom))
    code = row.verdict or "INCONSISTENT"
    name = "tls-small" if large is None else "tls-agent-size"
    evidence = _evidence_of_tries(reach, small, tries) | {"again": reach.again}
    variant, where, control = None, None, None
    if small.symptom in _ENDED:
        variant = evidence["variant"] = _choose_variant(reach, log, code, unasked)
    if small.symptom in _BY_NAME or code == "SERVER_SILENT":
        control = await identity.ask_control(reach, identity.CONTROL_NAME, _CONTROL)
        evidence["control"] = _control_words(reach, code, control) + _UNASKED.get(unasked, "")
    if code == "SERVER_SILENT" and control and hello_symptom(control) in _SHOWS_EDGE:
        code, variant = "EDGE_BACKEND_TIMEOUT", "by-name"
        # Where large packets of every answer get lost, small ones pass as well.
        where = None if control.seen.chain else PATH_OR_EDGE
        evidence["variant"] = variant
    if code.startswith("PMTU_"):
        log.add(name, "bad", fill(_FAILED, evidence), facts_of(tries.first))
        evidence |= await _measure_bounds(reach, tries.first)
        log.add("mtu", "bad", str(evidence["bounds"]), {"largest": evidence["largest_bytes"]})
    else:
        log.add(name, "bad", fill(row.because, evidence), facts_of(tries.first))
    if control is not None:
        said = f"a name that nobody routes: {hello_symptom(control)}"
        log.add("control-sni", "ok", said, facts_of(control))
    if code == "SERVER_SILENT":
        log.open += _word_unseen_end(reach.tunnel.hold_s)
    return replace(found(code, row.because, evidence), variant=variant, where=where)


def _word_unseen_end(held_s: float) -> list[str]:
    """Word what a longer wait might tell; ``--hold`` is asked for where it was not given."""
    if held_s >= LATE_S:
        return []
    later = f" after more than {held_s:g} s" if held_s else f": --hold {LATE_S} waits for it"
    return [_LATE + later]


async def _measure_bounds(reach: Reach, failed: Attempt) -> dict[str, Any]:
    """Give the largest packet that passes, and the smallest that does not."""
    passes, fails = await _bisect_mss(reach, failed)
    packet, too_large = passes + reach.header_bytes, fails + reach.header_bytes
    return {
        "bounds": f"packets of {packet:,} bytes pass, of {too_large:,} do not "
        f"(MSS {passes:,} and {fails:,})",
        "largest": f"{packet:,}",
        "largest_bytes": packet,
        "mss": f"{passes:,}",
        "fails_bytes": too_large,
    }


async def _bisect_mss(reach: Reach, failed: Attempt) -> tuple[int, int]:
    """Cap TCP's segments (TCP_MAXSEG), which needs neither root nor ICMP.

    Several sizes are tried at once, each twice: a size passes where one of its tries passes, and
    fails only where both do, so that plain loss is not taken for a limit.
    """
    # The segment size without a cap is the larger of both directions.
    known = [failed.tcp.get(name, 0) for name in ("snd_mss", "advmss")]
    passes, fails = LEAST_MSS, max(*known, LEAST_MSS) + _OPTION_BYTES
    while fails - passes > 1:
        sizes = _spread_sizes(passes, fails)
        good = await asyncio.gather(*(_size_passes(reach, failed.hello, size) for size in sizes))
        tried = list(zip(sizes, good, strict=True))
        passes = max([passes, *(size for size, ok in tried if ok)])
        fails = min([fails, *(size for size, ok in tried if not ok and size > passes)])
    return passes, fails


def _spread_sizes(passes: int, fails: int) -> list[int]:
    """Sizes strictly between, evenly spread."""
    gap = fails - passes
    steps = min(_SIZES_AT_ONCE, gap - 1)
    return sorted({passes + gap * step // (steps + 1) for step in range(1, steps + 1)} - {passes})


async def _size_passes(reach: Reach, hello: Hello, mss: int) -> bool:
    async with Tasks() as tasks:
        tries = [tasks.begin(attempt(reach, hello, BRIEF, mss)) for _ in range(_TRIES_OF_SIZE)]
        for done in asyncio.as_completed(tries):
            if hello_symptom(await done) == "answered":
                return True
        return False


def _evidence_of_tries(reach: Reach, small: Tries, tries: Tries) -> dict[str, Any]:
    one = tries.first
    evidence = reach.where() | {
        "small_bytes": small.first.seen.hello_bytes,
        "large_bytes": one.seen.hello_bytes,
        "large": tries.symptom,
        "segmented": tries.segmented_symptom,
        "segment": LEAST_MSS,
        "first_ms": round(one.first_ms, 1),
        "first_s": round(one.first_ms / 1000),
        "waited_s": round(one.first_ms / 1000),
        "tries": len(tries.tries),
        "retrans": one.tcp.get("total_retrans"),
        "acked": max(0, one.tcp.get("bytes_acked", 1) - 1),
        "ooo": one.tcp.get("rcv_ooopack"),
        "foreign": one.seen.foreign,
        "control": "",
        "icmp": f"an ICMP error ({one.soft})",
        "offender": "a firewall on the way",
        "all_tries": [facts_of(each) for each in (*tries.tries, *tries.segmented)],
    }
    if tries.symptom in LARGE_HELLO_LOGS:
        evidence["large_log"] = LARGE_HELLO_LOGS[tries.symptom]
    return evidence | icmp_evidence(one.icmp)


async def _ends_unasked(reach: Reach) -> bool:
    """Tell whether a connection on which nothing is sent is ended at once, too."""
    async with open_tunnel(reach) as (stream, failure):
        if failure is not None:
            return False
        return (await stream.receive(AT_ONCE_MS / 1000)).kind in ("fin", "reset")


def _choose_variant(reach: Reach, log: Log, code: str, unasked: bool | None) -> str | None:
    """Choose the words: what a router does by names is no matter where none decides."""
    if code == "EDGE_CLOSED_IMMEDIATELY":
        return "at-once" if unasked or reach.tunnel.publishing != "route" else None
    return "local" if log.is_local and reach.proxy is None else None


def _control_words(reach: Reach, code: str, control: Attempt) -> str:
    name = "a server name" if reach.tunnel.sni is None else "another server name"
    symptom = hello_symptom(control)
    if symptom == "answered" or (code == "SERVER_SILENT" and symptom in _SHOWS_EDGE):
        return f"{name} {_SHOWS_EDGE[symptom]} at the same address: the name decides"
    return f"{name} fares no better: the name does not decide"
