"""One worker's way to the Konnectivity server, stage by stage, until going on tells nothing.

It never registers as an agent: ``AgentService/Connect`` is not called, whatever the options are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from netprobe.diagnose import dialling, holding, identity, mtu
from netprobe.diagnose.combining import combine
from netprobe.diagnose.findings import Found, Log, diagnosis, facts_of, found, icmp_words
from netprobe.diagnose.identity import Who
from netprobe.diagnose.konnectivity_request import Tunnel, Via
from netprobe.diagnose.names import look_up
from netprobe.diagnose.reach import LEAST_MSS, Reach, Tries, attempt, look, place, repeat
from netprobe.diagnose.sights import hello_sight
from netprobe.diagnose.tables import decide_hello, decide_identity, fill
from netprobe.model.konnectivity import STAGES, Diagnosis
from netprobe.protocols.tls_talk import Attempt, Patience
from netprobe.vantage.link import AgentLink

# Tries that are made where two do not agree; enough that one dead back end of four shows twice.
UNSTEADY_TRIES = 10
LEAST_FAILURES = 2
MOST_ADDRESSES = 8


async def diagnose(
    worker: str, link: AgentLink, tunnel: Tunnel, via: Via, source: str | None
) -> Diagnosis:
    """Look from one worker. Raises AgentError where its agent is lost."""
    log = Log()
    first = tunnel.host if via.proxy is None else via.proxy.host
    addresses, what = await look_up(link, first, log, proxy=via.proxy is not None)
    if what is not None:
        log.skip("no address to go to", *STAGES)
        return diagnosis(worker, via.said, log, what)
    port = tunnel.port if via.proxy is None else via.proxy.port
    reaches = [
        Reach(link, tunnel, address, port, via.proxy, _source(source, address))
        for address in addresses[:MOST_ADDRESSES]
    ]
    results = await asyncio.gather(*(look_at(reach) for reach in reaches))
    return combine(worker, via.said, tunnel, log, tuple(zip(reaches, results, strict=True)))


def _source(source: str | None, address: str) -> str | None:
    """A source address is of one family and counts for that only."""
    return source if source is not None and (":" in source) == (":" in address) else None


async def look_at(reach: Reach) -> tuple[Log, Found]:
    """Every stage after the name, for one address."""
    log = Log()
    what = (
        await dialling.look_at_route(reach, log)
        or await dialling.look_at_tcp(reach, log)
        or await dialling.look_at_proxy(reach, log)
    )
    if what is None:
        what = await _Tls(reach, log).run()
    failed = next((stage.name for stage in log.stages if stage.status == "fail"), None)
    log.skip(f"stopped: {failed} failed" if failed else "not needed", *STAGES[1:])
    log.stages.sort(key=lambda stage: STAGES.index(stage.name))
    return log, what


class _Tls:
    """The stages from the first ClientHello on."""

    def __init__(self, reach: Reach, log: Log) -> None:
        self._reach = reach
        self._log = log
        self._tunnel = reach.tunnel
        self._small = identity.small_hello(reach.tunnel.sni)
        self._large = identity.agent_size_hello(reach.tunnel.sni)
        # The certificate of the first answer; a further connection that shows another one failed.
        self._expected: tuple[bytes, ...] = ()

    async def run(self) -> Found:
        """The verdict of this address."""
        small = await look(self._reach, self._small)
        if small.sight is None:
            return await self._unsteady(small)
        if small.sight != "answered":
            return await self._hello_failed(small, None)
        self._hello_stage("tls-small", small)
        large = await look(self._reach, self._large)
        if large.sight is None:
            return await self._unsteady(large)
        if large.sight != "answered":
            return await self._hello_failed(small, large)
        self._hello_stage("tls-agent-size", large)
        self._mtu_stage(large.first)
        return await self._answered(small.first, large.first)

    # The ClientHello

    def _hello_stage(self, name: str, tries: Tries) -> None:
        one = tries.first
        size = f"ClientHello of {one.seen.hello_bytes:,} bytes"
        said = f"{size} answered after {one.first_ms:.1f} ms"
        self._log.add(name, "ok", said, facts_of(one), f"a {size} is answered")

    def _mtu_stage(self, one: Attempt) -> None:
        numbers = {name: one.tcp.get(name) for name in ("snd_mss", "advmss", "pmtu")}
        said = f"full segments pass both ways (MSS {one.tcp.get('snd_mss')}): no search needed"
        fine = "packets as large as this path's MSS allows pass both ways"
        self._log.add("mtu", "ok", said, numbers, fine)

    async def _hello_failed(self, small: Tries, large: Tries | None) -> Found:
        failed = small if large is None else large
        row = decide_hello(
            small.sight or "none",
            "none" if large is None else large.sight or "none",
            failed.segmented_sight,
        )
        evidence = await self._hello_evidence(small, large)
        code = row.verdict or "INCONSISTENT"
        name = "tls-small" if large is None else "tls-agent-size"
        if code.startswith("PMTU_"):
            self._log.add(name, "fail", fill(_FAILED_HELLO, evidence), facts_of(failed.first))
            await self._bisect(failed, evidence)
            sizes = {key: evidence[key] for key in ("largest_bytes", "mss", "fails")}
            self._log.add("mtu", "fail", str(evidence["bounds"]), sizes)
        else:
            self._log.add(name, "fail", fill(row.because, evidence), facts_of(failed.first))
        return found(code, row.because, evidence)

    async def _bisect(self, failed: Tries, evidence: dict[str, Any]) -> None:
        bounds = await mtu.bisect(self._reach, failed.first.hello, failed.first)
        evidence["bounds"] = bounds.said
        evidence["largest"] = f"{bounds.packet:,}"
        evidence["mss"] = f"{bounds.passes:,}"
        evidence["largest_bytes"] = bounds.packet
        evidence["fails"] = bounds.fails + bounds.header_bytes

    async def _hello_evidence(self, small: Tries, large: Tries | None) -> dict[str, Any]:
        failed = small if large is None else large
        one = failed.first
        evidence = self._where() | {
            "small_bytes": small.first.seen.hello_bytes,
            "large_bytes": one.seen.hello_bytes,
            "large": one.first,
            "segmented": failed.segmented_sight,
            "segment": LEAST_MSS,
            "first_ms": round(one.first_ms, 1),
            "first_s": round(one.first_ms / 1000),
            "waited_s": round(one.first_ms / 1000),
            "tries": len(failed.tries),
            "retrans": one.tcp.get("total_retrans"),
            "acked": max(0, one.tcp.get("bytes_acked", 1) - 1),
            "ooo": one.tcp.get("rcv_ooopack"),
            "foreign": one.seen.foreign,
            "control": "",
            "all_tries": [facts_of(each) for each in (*failed.tries, *failed.segmented)],
        }  # fmt: skip
        if small.sight in ("reset", "closed", "lost"):
            evidence["control"] = await self._control_words()
        evidence |= {"icmp": f"an ICMP error ({one.soft})", "offender": "a firewall on the way"}
        return evidence | icmp_words(one.icmp)

    async def _control_words(self) -> str:
        """Whether the same address answers another name: a filter, or a router, goes by names."""
        control = await identity.ask_control(self._reach, identity.CONTROL_NAME)
        self._control_stage(control, None)
        if hello_sight(control) == "answered":
            return "; another server name is answered at the same address: the name decides"
        return "; another server name fares no better: the name does not decide"

    async def _unsteady(self, tries: Tries) -> Found:
        """Tries that do not agree: ask often enough to give a fraction."""
        count = max(self._tunnel.repeat, UNSTEADY_TRIES)
        more = await repeat(self._reach, tries.first.hello, count)
        name = "tls-small" if tries.first.hello.padding == 0 else "tls-agent-size"
        self._log.add(name, "warn", "tries do not agree", facts_of(tries.first))
        return self._fraction((*tries.tries, *more))

    # Who answered

    async def _answered(self, small: Attempt, large: Attempt) -> Found:
        control = await self._ask_control(small)
        trusted, distrust = await self._trust()
        who = await identity.identify(self._reach, small, trusted, control)
        self._expected = small.seen.chain[:1]
        if not identity.same_certificate(who.attempt, large) and large.seen.chain:
            other = await self._other_certificate(who, large)
            if other is not None:
                return other
        row = decide_identity(who.who, who.request, who.alpn, who.reply)
        evidence = self._where() | identity.evidence_of(who, self._reach)
        evidence["control"] = _control_phrase(small, control)
        what = found(row.verdict or "UNEXPLAINED", row.because, evidence)
        what = self._certificate_fault(who, what, distrust) or what
        return await self._after_identity(who, what)

    async def _other_certificate(self, who: Who, large: Attempt) -> Found | None:
        """The two hellos got different certificates: by their size, or by chance?"""
        again = await asyncio.gather(
            attempt(self._reach, self._small, Patience(), words=False),
            attempt(self._reach, self._large, Patience(), words=False),
        )
        stable = all(
            identity.same_certificate(*pair)
            for pair in zip((who.attempt, large), again, strict=True)
        )
        if not stable:
            return self._fraction(await repeat(self._reach, self._small, UNSTEADY_TRIES))
        if who.who not in ("konnectivity", "trusted"):
            return None
        evidence = self._where() | {"hello_bytes": large.seen.hello_bytes}
        said = (
            f"the right certificate answers a small ClientHello, twice; another "
            f"({_subject(large)}) answers one of {large.seen.hello_bytes:,} bytes, twice"
        )
        self._log.add("identity", "fail", said, facts_of(large))
        return Found("SNI_LOST_FRAGMENTED_HELLO", said, evidence)

    async def _ask_control(self, small: Attempt) -> Attempt | None:
        """Routes are always compared; elsewhere only a certificate that is not Konnectivity's."""
        ours = identity.who_is(identity.leaf(small)) == "konnectivity"
        if self._tunnel.publishing != "route" and ours:
            return None
        return await identity.ask_control(self._reach, identity.CONTROL_NAME)

    async def _trust(self) -> tuple[bool, int | None]:
        """Whether the chain leads to ``--ca``, and OpenSSL's code where it does not."""
        if self._tunnel.ca is None:
            self._log.open.append("the certificate's chain: no --ca was given")
            return False, None
        hello = replace(self._small, ca=self._tunnel.ca)
        seen = (await attempt(self._reach, hello, Patience(), words=False)).seen
        return seen.distrust is None and bool(seen.chain), seen.distrust

    def _certificate_fault(self, who: Who, what: Found, distrust: int | None) -> Found | None:
        """Right service, wrong certificate: no fault of the network, and none that agents accept."""
        certificate = who.certificate
        if what.code not in ("KONN_REACHED_MTLS", "KONN_REACHED_TOKEN") or certificate is None:
            return None
        if certificate.expired or certificate.early:
            words = "the certificate is valid from {not_before} to {not_after}"
            return found("CERT_EXPIRED", words, what.evidence)
        if distrust is not None:
            words = "{subject}, issued by {issuer}, does not lead to --ca (OpenSSL says %d)"
            return found("CERT_UNTRUSTED", words % distrust, what.evidence)
        if not identity.names_tunnel(certificate, self._reach):
            return found("CERT_WRONG_NAME", "{subject} is valid for {names}", what.evidence)
        return None

    async def _after_identity(self, who: Who, what: Found) -> Found:
        if what.code not in ("KONN_REACHED_MTLS", "KONN_REACHED_TOKEN"):
            self._log.add("identity", "fail", what.because, what.evidence)
            self._control_stage(None, str(what.evidence.get("control", "")))
            return what
        self._log.add("identity", "ok", what.because, what.evidence, f"identity: {what.because}")
        self._control_stage(None, str(what.evidence.get("control", "")))
        what = await self._http2(who, what)
        if what.code.startswith("KONN_CLIENT") or what.code.startswith("H2_"):
            return what
        return await self._fan_out() or await self._hold(what) or what

    def _control_stage(self, control: Attempt | None, words: str | None) -> None:
        if control is not None:
            words = f"a name that nobody routes: {hello_sight(control)}"
        if words:
            self._log.add(
                "control-sni", "ok", words.lstrip("; "), facts_of(control) if control else {}
            )

    # Behind TLS

    async def _http2(self, who: Who, what: Found) -> Found:
        log = self._log
        if who.call is not None:
            log.add("http2", "ok", what.because, {}, "HTTP/2 and gRPC pass end to end")
            return what
        if self._tunnel.identity is None:
            log.add("http2", "skipped", "needs --client-cert and --client-key")
            log.open.append("HTTP/2 behind TLS: no client certificate was given")
            return what
        call = await identity.call_unknown(self._reach, self._small, self._tunnel.identity)
        evidence = dict(what.evidence) | {
            "alert": call.alert, "grpc_status": call.grpc_status, "status": call.status,
            "grpc_message": call.grpc_message, "ended": call.ended,
        }  # fmt: skip
        word = "alert" if call.alert is not None else identity.call_word(call)
        code, because = _CALLS[word]
        result = found(code, because, evidence)
        good = code == "KONN_H2_OK"
        fine = "the client certificate is accepted; HTTP/2 and gRPC pass end to end" if good else ""
        log.add("http2", "ok" if good else "fail", result.because, {}, fine)
        return result

    # Several tries, and time

    async def _fan_out(self) -> Found | None:
        count = self._tunnel.repeat
        tries = await repeat(self._reach, self._small, count)
        if any(self._failure(one) for one in tries):
            tries += await repeat(self._reach, self._small, UNSTEADY_TRIES)
            return self._fraction(tries)
        said = f"{count} of {count} further connections get the same answer"
        self._log.add("fan-out", "ok", said, {"tries": count, "failed": 0}, said)
        self._log.open.append(_SERVERS)
        return None

    def _failure(self, one: Attempt) -> str | None:
        """How a further connection failed; None where it was answered as the first was."""
        sight = hello_sight(one)
        if sight != "answered":
            return sight
        expected = self._expected
        return "another certificate" if expected and one.seen.chain[:1] != expected else None

    def _fraction(self, tries: Sequence[Attempt]) -> Found:
        failures = {id(one): self._failure(one) for one in tries}
        bad = [one for one in tries if failures[id(one)]]
        kinds = sorted({str(failures[id(one)]) for one in bad})
        times = sorted({round(one.first_ms / 1000, 1) for one in bad})
        evidence = self._where() | {
            "tries": len(tries), "failed": len(bad), "kinds": ", ".join(kinds),
            "times": ", ".join(f"{time:g}" for time in times),
            "all_tries": [facts_of(one) for one in bad],
        }  # fmt: skip
        enough = len(bad) >= LEAST_FAILURES and len(bad) < len(tries)
        code = "FANOUT_SOME_FAIL" if enough else "UNSTEADY"
        because = "{failed} of {tries} connections to {to} fail ({kinds}, after {times} s)"
        said = fill(because, evidence)
        self._log.add("fan-out", "fail" if enough else "warn", said, evidence)
        return Found(code, said, evidence)

    async def _hold(self, what: Found) -> Found | None:
        seconds = self._tunnel.hold_s
        if not seconds:
            self._log.add("hold", "skipped", "asked for by --hold SECONDS")
            self._log.open.append("idle timers on the way: --hold was not given")
            return None
        http2 = what.code in ("KONN_H2_OK", "KONN_REACHED_TOKEN")
        hello = replace(self._small, identity=self._tunnel.identity)
        held = await holding.hold(self._reach, hello, http2)
        ways = {one.how for one in held}
        evidence = self._where() | {
            "held_s": held[0].held_s, "held": round(held[0].held_s), "goaway": held[0].goaway, "how": sorted(ways),
        }  # fmt: skip
        if len(ways) > 1 or "unheld" in ways:
            self._log.add("hold", "warn", f"two holds do not agree: {sorted(ways)}", evidence)
            return None
        if ways == {"alive"}:
            kind = "an idle HTTP/2 connection" if http2 else "a connection in mid-handshake"
            said = f"{kind} that was held {seconds:g} s still works"
            self._log.add("hold", "ok", said, evidence, said)
            return None
        result = found(holding.VERDICT_OF[held[0].how], _HELD, evidence)
        self._log.add("hold", "fail", result.because, evidence)
        return result

    def _where(self) -> dict[str, Any]:
        reach, tunnel = self._reach, self._tunnel
        return {
            "address": reach.address,
            "port": reach.port,
            "to": reach.to,
            "host": tunnel.host,
            "sni": tunnel.sni or tunnel.host,
            "server": place(tunnel.host, tunnel.port),
        }


_FAILED_HELLO = "a ClientHello of {large_bytes} bytes gets no answer ({tries} tries)"
_HELD = "two connections to {to} that were idle ended after {held_s} s ({how})"
_SERVERS = (
    "which of several servers answered: that needs registering as an agent; on a node compare "
    "open_server_connections with known_server_count in the agent's metrics"
)
_H2_AFTER = "the client certificate is accepted; "
# What the call of the unknown method got, where a client certificate was given.
_CALLS = {
    "agent-service": (
        "KONN_H2_OK",
        "the client certificate is accepted, and the call of an unknown method is answered by "
        "AgentService itself: {grpc_message}",
    ),
    "alert": (
        "KONN_CLIENT_CERT_REJECTED",
        "with the client certificate the server ends the handshake by alert {alert}; without one it "
        "asks for a certificate of {authorities}",
    ),
    "http": ("H2_ENDS_AT_PROXY", _H2_AFTER + "the call is answered by HTTP {status}"),
    "withheld": ("H2_ANSWER_WITHHELD", _H2_AFTER + "10 s after the call nothing has come"),
    "other-grpc": ("NOT_KONNECTIVITY", _H2_AFTER + "another gRPC service answers: {grpc_message}"),
    "ended": ("H2_ENDED", "after the handshake with the client certificate: {ended}"),
}


def _subject(one: Attempt) -> str:
    certificate = identity.leaf(one)
    return "none" if certificate is None else certificate.subject


def _control_phrase(small: Attempt, control: Attempt | None) -> str:
    if control is None:
        return ""
    if identity.same_certificate(small, control):
        return "; a name that nobody routes gets the same certificate"
    sight = hello_sight(control)
    other = _subject(control)
    return f"; a name that nobody routes gets {other if sight == 'answered' else sight}"
