"""Stages 4 to 6: a small ClientHello, one of the real agent's size, and what size passes if not."""

from __future__ import annotations

from typing import Any

from netprobe.konnectivity import identity, mtu
from netprobe.konnectivity.fanout import unsteady
from netprobe.konnectivity.findings import Conclusion, Log, facts_of, found, icmp_words
from netprobe.konnectivity.reach import LEAST_MSS, Reach, Tries, look
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.konnectivity.tables import HELLO, fill
from netprobe.model.decision import first_match
from netprobe.protocols.tls_talk import Attempt

# Where the name in the hello may be what decides, the same address is asked with another one.
_BY_NAME = ("reset", "closed", "lost")
_FAILED = "a ClientHello of {large_bytes:,} bytes gets no answer ({tries} tries)"


async def look_at_hellos(reach: Reach, log: Log) -> tuple[Attempt, Attempt] | Conclusion:
    """The two answers, the small hello's first; or why there is none."""
    small_hello = identity.small_hello(reach.tunnel.sni)
    small = await look(reach, small_hello)
    if small.symptom is None:
        return await _unsteady(reach, log, "tls-small", small)
    if small.symptom != "answered":
        return await _failed(reach, log, small, None)
    _answered(log, "tls-small", small.first)
    large = await look(reach, identity.agent_size_hello(reach.tunnel.sni))
    if large.symptom is None:
        return await _unsteady(reach, log, "tls-agent-size", large)
    if large.symptom != "answered":
        return await _failed(reach, log, small, large)
    _answered(log, "tls-agent-size", large.first)
    _whole(log, large.first)
    return small.first, large.first


def control_stage(log: Log, control: Attempt) -> None:
    """Write down what another name got."""
    said = f"a name that nobody routes: {hello_symptom(control)}"
    log.add("control-sni", "ok", said, facts_of(control))


def _answered(log: Log, name: str, one: Attempt) -> None:
    size = f"ClientHello of {one.seen.hello_bytes:,} bytes"
    said = f"{size} answered after {one.first_ms:.1f} ms"
    log.add(name, "ok", said, facts_of(one), f"a {size} is answered")


def _whole(log: Log, one: Attempt) -> None:
    numbers = {name: one.tcp.get(name) for name in ("snd_mss", "advmss", "pmtu")}
    said = f"full segments pass both ways (MSS {one.tcp.get('snd_mss')}): no search needed"
    fine = "packets as large as this path's MSS allows pass both ways"
    log.add("mtu", "ok", said, numbers, fine)


async def _unsteady(reach: Reach, log: Log, name: str, tries: Tries) -> Conclusion:
    log.add(name, "doubt", "tries do not agree", facts_of(tries.first))
    return await unsteady(reach, log, tries.first.hello, tries.tries)


async def _failed(reach: Reach, log: Log, small: Tries, large: Tries | None) -> Conclusion:
    """The verdict of the table, with the numbers that it wants."""
    tries = small if large is None else large
    symptom = "none" if large is None else large.symptom or "none"
    row = first_match(HELLO, (small.symptom or "none", symptom, tries.segmented_symptom))
    code = row.verdict or "INCONSISTENT"
    name = "tls-small" if large is None else "tls-agent-size"
    evidence = _evidence(reach, small, tries)
    if small.symptom in _BY_NAME:
        control = await identity.ask_control(reach, identity.CONTROL_NAME)
        evidence["control"] = _control_words(control)
    else:
        control = None
    if code.startswith("PMTU_"):
        log.add(name, "bad", fill(_FAILED, evidence), facts_of(tries.first))
        evidence |= await _bounds(reach, tries.first)
        log.add("mtu", "bad", str(evidence["bounds"]), {"largest": evidence["largest_bytes"]})
    else:
        log.add(name, "bad", fill(row.because, evidence), facts_of(tries.first))
    if control is not None:
        control_stage(log, control)
    return found(code, row.because, evidence)


async def _bounds(reach: Reach, failed: Attempt) -> dict[str, Any]:
    bounds = await mtu.bisect(reach, failed.hello, failed)
    return {
        "bounds": bounds.said,
        "largest": f"{bounds.packet:,}",
        "largest_bytes": bounds.packet,
        "mss": f"{bounds.passes:,}",
        "fails_bytes": bounds.fails + bounds.header_bytes,
    }


def _evidence(reach: Reach, small: Tries, tries: Tries) -> dict[str, Any]:
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
    return evidence | icmp_words(one.icmp)


def _control_words(control: Attempt) -> str:
    if hello_symptom(control) == "answered":
        return "; another server name is answered at the same address: the name decides"
    return "; another server name fares no better: the name does not decide"
