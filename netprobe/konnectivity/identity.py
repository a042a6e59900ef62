"""Stage 7: who answered: its certificate, what it asks for, ALPN, and its first words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from netprobe.konnectivity.clocks import DATES_LOG, clock_of
from netprobe.konnectivity.reach import (
    INSISTING_TRIES,
    SECOND_AFTER_S,
    SILENT,
    Reach,
    Tasks,
    attempt,
    insist,
)
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.konnectivity.verdicts import ALPN_REFUSED, NO_ALPN, NO_ID
from netprobe.protocols.base import is_address
from netprobe.protocols.services.connect import get
from netprobe.protocols.services.hearing import ROUTER_PAGE, ROUTER_SIGNER
from netprobe.protocols.services.http2 import FRONT_END_SERVICE, CallFacts, Http2Talk
from netprobe.protocols.services.http_exchange import HttpAnswer
from netprobe.protocols.services.tls import Hello, Identity
from netprobe.protocols.services.tls_certificates import Certificate, names_host
from netprobe.protocols.services.tls_talk import BRIEF, Attempt, Patience, TlsTalk

# The commonName of Konnectivity's own signer in HyperShift; its serving certificates carry it.
SIGNER = "konnectivity-signer"
SERVER = "konnectivity-server"
KAS_NAMES = ("kubernetes.default.svc", "kubernetes.default")
NO_APPLICATION_PROTOCOL = 120
CONTROL_NAME = "netprobe-control.invalid"
# Whoever was asked for the unknown method said nothing at all.
UNHEARD = "unheard"
# It spoke HTTP/2, and did not answer the call.
WITHHELD = "withheld"

# Error codes of RST_STREAM that proxies give (RFC 9113, 7).
_H2_ERRORS = {1: "PROTOCOL_ERROR", 2: "INTERNAL_ERROR", 7: "REFUSED_STREAM", 8: "CANCEL"}
_WHO_WORDS = {"ignition": "the ignition server", "stranger": "something else that speaks TLS"}


class UnknownCall(Struct, frozen=True):
    """What the unknown method got of AgentService, in a ``word`` of the tables; and the alert.

    ``UNHEARD`` is no word of theirs: every try met silence, so nobody knows how it is answered.
    """

    facts: CallFacts
    word: str
    alert: int | None = None


class Who(Struct, frozen=True):
    """The key of the identity table, and the handshakes behind it.

    ``refused``: a hello that offers h2 alone, as the agent's does, is refused by an alert.
    """

    who: str
    request: str
    alpn: str
    reply: str
    certificate: Certificate | None
    attempt: Attempt
    call: UnknownCall | None = None
    page: HttpAnswer | None = None
    refused: bool = False


def who_is(certificate: Certificate | None, trusted: bool = False) -> str:
    """Tell whose certificate it is, by its names and its issuer."""
    if certificate is None:
        return "none"
    names = (*certificate.names, certificate.common_name)
    if certificate.issuer_name == SIGNER or certificate.common_name == SERVER:
        return "konnectivity"
    if certificate.issuer_name.startswith(ROUTER_SIGNER):
        return "router"
    if certificate.common_name == "ignition-server":
        return "ignition"
    if certificate.common_name == "kubernetes" or set(KAS_NAMES) & set(names):
        return "kas"
    return "trusted" if trusted else "foreign"


async def identify(reach: Reach, seen: Attempt, trusted: bool, control: Attempt | None) -> Who:
    """Find out all that the table of identities needs to name who answered."""
    alpn = await _ask_alpn(reach, seen)
    shown = alpn[1] if not seen.seen.chain else seen
    certificate = shown.seen.certificate
    who = who_is(certificate, trusted)
    request = request_word(shown.seen.authorities)
    call = page = None
    if request == "none" and alpn[0] == "h2":
        call = await call_unknown(reach)
    if request == "none" and alpn[0] != "h2" and who == "foreign":
        page = await _get_page(reach)
        if ROUTER_PAGE in page.body and control is not None and same_certificate(control, shown):
            who = "router"
    if who == "foreign" and not _may_be_interception(certificate, reach, control):
        who = "stranger"
    reply, refused = _read_reply(shown, call), seen.seen.alert == NO_APPLICATION_PROTOCOL
    # The CA that was given may sign more than one service.
    if who == "trusted" and request == "none" and reply != "agent-service":
        named = certificate is not None and names_tunnel(certificate, reach)
        who = who if named else "stranger"
    return Who(who, request, alpn[0], reply, certificate, shown, call, page, refused)


def _may_be_interception(
    certificate: Certificate | None, reach: Reach, control: Attempt | None
) -> bool:
    """Tell whether a certificate that is not Konnectivity's may be made for the asked name.

    Who intercepts signs a certificate for every name that is asked for, the control's name too. An
    application that was meant by nobody shows its own, self-signed or for other names.
    """
    if certificate is None:
        return False
    other = None if control is None else control.seen.certificate
    if other is not None and names_host(other.names, CONTROL_NAME):
        return True
    return certificate.subject != certificate.issuer and names_tunnel(certificate, reach)


def request_word(authorities: Sequence[str] | None) -> str:
    """Tell whose client certificates the server asks for, as the table's word."""
    if authorities is None:
        return "none"
    if not authorities:
        return "unnamed"
    return "signer" if any(f"CN={SIGNER}" in name for name in authorities) else "other"


async def call_unknown(reach: Reach, identity: Identity | None = None) -> UnknownCall:
    """Make the call that registers nothing; where no answer comes soon, some more at once.

    A busy server, or one of several back ends, may be late: what any of them answers counts.
    """
    async with Tasks() as tasks:
        calls = [tasks.begin(_call_once(reach, identity))]
        await asyncio.wait(calls, timeout=SECOND_AFTER_S)
        if not calls[0].done():
            calls += [tasks.begin(_call_once(reach, identity)) for _ in range(INSISTING_TRIES - 1)]
        for done in asyncio.as_completed(calls):
            call = await done
            if call.word not in (WITHHELD, UNHEARD):
                return call
        return calls[0].result()


async def _call_once(reach: Reach, identity: Identity | None) -> UnknownCall:
    """Do the handshake, begin HTTP/2, and call the unknown method.

    A server without AgentService is asked for the front end's service: the same process has both,
    and the same certificate.
    """
    facts, front = CallFacts(ended="no handshake"), CallFacts()
    tunnel = reach.tunnel
    authority = f"{tunnel.sni or tunnel.host}:{tunnel.port}"

    async def talk(tls: TlsTalk) -> None:
        nonlocal facts, front
        http = Http2Talk(tls)
        facts = await http.begin(tls.attempt.greeting)
        if facts.ended is None:
            facts = await http.call(authority)
        if facts.grpc_status is not None and facts.ended is None and not facts.has_service():
            front = await http.call(authority, FRONT_END_SERVICE)

    tried = await insist(reach, replace(reach.hello, identity=identity), talk)
    if facts.ended == "no handshake" and tried.seen.done:
        facts.ended = f"before HTTP/2 says a word ({tried.end or 'closed'})"
    word = "front-end" if front.has_service(FRONT_END_SERVICE) else call_word(facts)
    if hello_symptom(tried) in SILENT:
        word = UNHEARD
    return UnknownCall(facts, word, tried.seen.alert)


async def ask_control(reach: Reach, name: str | None, patience: Patience = BRIEF) -> Attempt:
    """Ask the same address with a name that no route has, or without a name."""
    return await attempt(reach, Hello(name), patience, words=False)


def same_certificate(first: Attempt, second: Attempt) -> bool:
    """Tell whether both were answered with one certificate."""
    return bool(first.seen.chain) and first.seen.chain[:1] == second.seen.chain[:1]


def answers_alike(first: Attempt, second: Attempt, reach: Reach) -> bool:
    """Tell whether one service gave both answers: with one certificate, or with alike ones.

    Who inspects TLS may sign a new one for each connection. One for each pod, with names of their
    own, counts only where neither is for the tunnel's name nor of anybody known.
    """
    if same_certificate(first, second):
        return True
    one, other = first.seen.certificate, second.seen.certificate
    if one is None or other is None or one.issuer != other.issuer:
        return False
    return one.subject == other.subject or (
        all(who_is(each) == "foreign" for each in (one, other))
        and not any(names_tunnel(each, reach) for each in (one, other))
    )


async def _ask_alpn(reach: Reach, seen: Attempt) -> tuple[str, Attempt]:
    """Give the result of ALPN; if it is not h2, offer http/1.1 beside it."""
    if seen.seen.alpn == "h2":
        return "h2", seen
    refused = seen.seen.alert == NO_APPLICATION_PROTOCOL
    if not seen.seen.done and not refused:
        return "unknown", seen
    both = replace(reach.hello, alpn=("h2", "http/1.1"))
    second = await attempt(reach, both, BRIEF, words=False)
    if second.seen.alpn == "http/1.1":
        return "http/1.1", second
    return ("refused" if refused else "none"), seen


async def _get_page(reach: Reach) -> HttpAnswer:
    answer = HttpAnswer()

    async def talk(tls: TlsTalk) -> None:
        nonlocal answer
        answer = await get(tls, reach.tunnel.sni or reach.tunnel.host)

    offer = replace(reach.hello, alpn=("http/1.1",))
    await attempt(reach, offer, BRIEF, None, talk, words=False)
    return answer


def _read_reply(shown: Attempt, call: UnknownCall | None) -> str:
    if shown.seen.refuses_strangers:
        return "certificate-required"
    if shown.seen.alert is not None:
        return "alert"
    if call is not None:
        return call.word
    return "ended" if shown.end is not None else "not-asked"


def call_word(call: CallFacts) -> str:
    """Give the word of the tables for the answer to the unknown method."""
    if call.has_service():
        return "agent-service"
    if call.grpc_status is not None:
        return "other-grpc"
    if call.status is not None or call.reset is not None:
        return "http"
    return WITHHELD if call.unanswered else "ended"


def evidence_of(who: Who, reach: Reach) -> dict[str, Any]:
    """Give the server's identity, for sentences and for programs."""
    certificate, seen = who.certificate, who.attempt.seen
    call = answer_of(who.call.facts) if who.call else dict.fromkeys(ANSWER)
    asked = "; ".join(seen.authorities or ()) or "any signer"
    return {
        "to": reach.to,
        "who": _WHO_WORDS.get(who.who, who.who),
        "subject": "no certificate" if certificate is None else certificate.subject,
        "issuer": "nobody" if certificate is None else certificate.issuer,
        "names": _word_names(certificate),
        "fit": _word_fit(who, reach),
        "not_before": certificate.not_before if certificate else None,
        "not_after": certificate.not_after if certificate else None,
        "fingerprint": certificate.fingerprint if certificate else None,
        "authorities": "none" if who.request == "none" else asked,
        "tls": seen.version,
        "alpn": {"none": "no protocol", "refused": "alert 120"}.get(who.alpn, who.alpn),
        "alert": seen.alert,
        "reply": who.reply,
        **call,
        "page": _page_words(who.page),
        "narrower": "give --ca for a narrower answer" if reach.tunnel.ca is None else "",
        **_log_words(who, reach),
    }


def _word_fit(who: Who, reach: Reach) -> str:
    """Say why the certificate is of another service: its names, or what else tells."""
    certificate, name = who.certificate, reach.tunnel.sni or reach.tunnel.host
    if certificate is None:
        return "shows nothing"
    if not names_tunnel(certificate, reach):
        return f"is valid for {_word_names(certificate)} and not made for {name}"
    signed = "itself" if certificate.subject == certificate.issuer else certificate.issuer_name
    told = [f"it is signed by {signed} and not by {SIGNER}"]
    told += ["no client certificate is asked for"] if who.request == "none" else []
    told += ["HTTP/2 is not agreed"] if who.alpn != "h2" else []
    return f"covers {name}; what tells that it is another service: {', '.join(told)}"


def _log_words(who: Who, reach: Reach) -> dict[str, str]:
    """Give what Go says to this certificate and to this ALPN, where an agent was seen to say it."""
    words = {"alpn_log": NO_ID if who.alpn == "h2" else ALPN_REFUSED if who.refused else NO_ALPN}
    certificate, name = who.certificate, reach.tunnel.sni or reach.tunnel.host
    if certificate is None:
        return words
    named = [each for each in certificate.names if not is_address(each)]
    if certificate.invalidity_at(clock_of(reach.agent.skew_s)) is not None:
        words["x509"] = DATES_LOG
    elif names_tunnel(certificate, reach):
        words["x509"] = "certificate signed by unknown authority"
    elif is_address(name) and len(named) == len(certificate.names):
        words["x509"] = (
            f"cannot validate certificate for {name} because it doesn't contain any IP SANs"
        )
    elif named and not is_address(name):
        words["x509"] = f"certificate is valid for {', '.join(named)}, not {name}"
    return words


ANSWER = ("grpc_status", "grpc_message", "answer", "ended")


def answer_of(call: CallFacts) -> dict[str, Any]:
    """Give the answer to the call, for sentences: ``answer`` is what HTTP/2 alone said."""
    answer = f"HTTP {call.status} without a gRPC status"
    if call.reset is not None:
        answer = f"RST_STREAM ({_H2_ERRORS.get(call.reset, call.reset)}) after SETTINGS"
    return dict(zip(ANSWER, (call.grpc_status, call.grpc_message, answer, call.ended), strict=True))


def names_tunnel(certificate: Certificate, reach: Reach) -> bool:
    """Tell whether the certificate is valid for what the agent dials."""
    return names_host(certificate.names, reach.tunnel.sni or reach.tunnel.host)


def _word_names(certificate: Certificate | None) -> str:
    return (certificate and ", ".join(certificate.names)) or "no name at all"


def _page_words(page: HttpAnswer | None) -> str:
    if page is None or page.status is None:
        return ""
    return f"GET / gives HTTP {page.status} {page.reason}".rstrip()
