"""Stages 7 to 9: the server's identity, a control name, HTTP/2 and the unknown-method call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from netprobe.konnectivity import identity
from netprobe.konnectivity.clocks import MOST_SKEW_S, OF_DATES, judge_dates
from netprobe.konnectivity.findings import Conclusion, Log, facts_of, found
from netprobe.konnectivity.further import unsteady
from netprobe.konnectivity.identity import Who
from netprobe.konnectivity.reach import FURTHER_TRIES, Reach, attempt, insist, repeat
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.konnectivity.tables import CALLS, IDENTITY, fill
from netprobe.konnectivity.verdicts import INSPECTION, NO_ID, VERDICTS
from netprobe.model.decision import first_match
from netprobe.protocols.services.tls import Distrust
from netprobe.protocols.services.tls_talk import Attempt

REACHED = ("KONN_REACHED_MTLS", "KONN_REACHED_TOKEN")
_UNTRUSTED = (
    "{subject}, issued by {issuer}; {chain}; certificate request: {authorities}; "
    "ALPN gives {alpn}; {control}"
)


async def look_at_answers(reach: Reach, log: Log, small: Attempt, large: Attempt) -> Conclusion:
    """Identify the server; ``REACHED`` and ``KONN_H2_OK`` allow the further stages."""
    trusted, distrust = await _check_trust(reach, log)
    control, nameless = await _ask_controls(reach, small, distrust)
    who = await identity.identify(reach, small, trusted, control)
    if who.call is not None and who.call.word == identity.UNHEARD:
        # It was answered before, so what is silent is one of several back ends.
        return await unsteady(reach, log, (small,), small.seen.chain[:1])
    if large.seen.chain and not identity.answers_alike(who.attempt, large, reach):
        other = await _other_certificate(reach, log, who, large)
        if other is not None:
            return other
    row = first_match(IDENTITY, (who.who, who.request, who.alpn, who.reply))
    evidence = reach.where() | identity.evidence_of(who, reach)
    evidence["control"] = _control_phrase(small, control)
    evidence |= _distrust_words(distrust, evidence)
    what = found(row.verdict or "UNEXPLAINED", f"{row.because}; {{chain}}", evidence)
    what = _certificate_fault(reach, who, what, distrust) or what
    good = what.code in REACHED
    if not good:
        # One of several back ends may answer wrongly, so all further tries must agree.
        tries = await repeat(reach, reach.hello, FURTHER_TRIES, reach.patience())
        if not all(identity.answers_alike(small, one, reach) for one in tries if one.seen.chain):
            return await unsteady(reach, log, tries, small.seen.chain[:1])
    fine = f"identity: {what.because}" if good else ""
    log.add("identity", "ok" if good else "bad", what.because, evidence, fine)
    if control is not None:
        said = str(evidence["control"]) + _nameless_phrase(control, nameless)
        facts = {"other_name": facts_of(control), "no_name": facts_of(nameless or control)}
        log.add("control-sni", "ok", said, facts)
    return await _look_at_http2(reach, log, who, what) if good else what


async def _ask_controls(
    reach: Reach, small: Attempt, distrust: Distrust | None
) -> tuple[Attempt | None, Attempt | None]:
    """Ask with another name, and with none: a router answers by name, a server does not.

    Routes are always compared; elsewhere only if the certificate is not Konnectivity's.
    """
    ours = distrust is None and identity.who_is(small.seen.certificate) == "konnectivity"
    if reach.tunnel.publishing != "route" and ours:
        return None, None
    names = (identity.CONTROL_NAME, None)
    control, nameless = await asyncio.gather(*(identity.ask_control(reach, name) for name in names))
    return control, nameless


async def _check_trust(reach: Reach, log: Log) -> tuple[bool, Distrust | None]:
    """Tell whether the chain leads to ``--ca``, and OpenSSL's reason where it does not."""
    if reach.tunnel.ca is None:
        log.open.append("the certificate's chain: no --ca was given")
        return False, None
    hello = replace(reach.hello, ca=reach.tunnel.ca)
    seen = (await insist(reach, hello, words=False)).seen
    distrust = seen.distrust
    if distrust and distrust.code in OF_DATES and abs(reach.agent.skew_s) > MOST_SKEW_S:
        # By our clock, which is not the agent's: its own decides.
        return True, None
    return distrust is None and bool(seen.chain), distrust


def _distrust_words(distrust: Distrust | None, evidence: Mapping[str, Any]) -> dict[str, str]:
    """Give what a chain that does not verify adds to any verdict; nothing where it does."""
    if distrust is None:
        return {"chain": "", "inspection": ""}
    return {
        "chain": f"its chain does not lead to --ca ({distrust.words})",
        "inspection": fill(INSPECTION, evidence),
    }


async def _other_certificate(reach: Reach, log: Log, who: Who, large: Attempt) -> Conclusion | None:
    """The two hellos got different certificates: by their size, or by chance?"""
    # Those of a kind together: back ends in turn are different for them.
    hellos = [reach.hello] * FURTHER_TRIES + [large.hello] * FURTHER_TRIES
    again = await asyncio.gather(
        *(attempt(reach, each, reach.patience(), words=False) for each in hellos)
    )
    firsts = [who.attempt] * FURTHER_TRIES + [large] * FURTHER_TRIES
    if not all(map(identity.same_certificate, firsts, again)):
        return await unsteady(reach, log, (), who.attempt.seen.chain[:1])
    if who.who not in ("konnectivity", "trusted"):
        return None
    evidence = reach.where() | {"hello_bytes": large.seen.hello_bytes}
    said = (
        "the right certificate answers a small ClientHello, five times; another "
        f"({_word_answer(large)}) answers one of {large.seen.hello_bytes:,} bytes, as often"
    )
    log.add("identity", "bad", said, facts_of(large))
    return Conclusion("SNI_LOST_FRAGMENTED_HELLO", said, evidence)


def _certificate_fault(
    reach: Reach, who: Who, what: Conclusion, distrust: Distrust | None
) -> Conclusion | None:
    """Right service, wrong certificate: no agent accepts it.

    A chain that does not lead to ``--ca`` is a fault, whatever its subject and the server say.
    """
    certificate = who.certificate
    unproven = who.who == "konnectivity" or VERDICTS[what.code].outcome == "unsure"
    doubted = what.code in REACHED or (distrust is not None and unproven)
    if certificate is None or not doubted:
        return None
    dated = judge_dates(who.attempt.seen.chain, reach.agent.skew_s)
    if distrust is not None and (dated is None or distrust.code not in OF_DATES):
        ours = who.request == "signer" or certificate.issuer_name == identity.SIGNER
        variant = None if ours else "another-ca"
        return replace(found("CERT_UNTRUSTED", _UNTRUSTED, what.evidence), variant=variant)
    if dated is not None:
        code, words, evidence = dated
        return found(code, words, {**what.evidence, **evidence})
    if not identity.names_tunnel(certificate, reach):
        return found("CERT_WRONG_NAME", "{subject} is valid for {names}", what.evidence)
    return None


async def _look_at_http2(reach: Reach, log: Log, who: Who, what: Conclusion) -> Conclusion:
    """The call was made where no certificate is asked for; with one it is made now."""
    if who.call is not None:
        log.add("http2", "ok", what.because, {}, "HTTP/2 and gRPC pass end to end")
        return what
    if reach.tunnel.identity is None:
        log.add("http2", "not-possible", "needs --client-cert and --client-key")
        log.open.append(
            "HTTP/2 behind TLS: no client certificate was given; without it the server's front-end "
            "port (8090, --mode grpc) looks like its agent port"
        )
        return what
    call = await identity.call_unknown(reach, reach.tunnel.identity)
    if call.word == identity.UNHEARD:
        return await unsteady(reach, log, (who.attempt,), who.attempt.seen.chain[:1])
    answer = {"alert": call.alert, **identity.answer_of(call.facts)}
    row = first_match(CALLS, ("alert" if call.alert is not None else call.word,))
    assert row.verdict is not None
    result = found(row.verdict, row.because, {**what.evidence, **answer, "alpn_log": NO_ID})
    good = row.verdict == "KONN_H2_OK"
    fine = "the client certificate is accepted; HTTP/2 and gRPC pass end to end" if good else ""
    log.add("http2", "ok" if good else "bad", result.because, answer, fine)
    return result


def _word_answer(one: Attempt) -> str:
    """Word the subject of the certificate, or the symptom where none came."""
    certificate, symptom = one.seen.certificate, hello_symptom(one)
    if symptom != "answered":
        return symptom
    return "none" if certificate is None else certificate.subject


def _nameless_phrase(control: Attempt, nameless: Attempt | None) -> str:
    if nameless is None:
        return ""
    if (
        identity.same_certificate(control, nameless)
        or hello_symptom(control) == hello_symptom(nameless) != "answered"
    ):
        return ", and so does a ClientHello without a name"
    return f"; without a name: {_word_answer(nameless)}"


def _control_phrase(small: Attempt, control: Attempt | None) -> str:
    if control is None:
        return ""
    if identity.same_certificate(small, control):
        return "a name that nobody routes gets the same certificate"
    return f"a name that nobody routes gets {_word_answer(control)}"
