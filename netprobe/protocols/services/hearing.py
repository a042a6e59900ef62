"""One short exchange with a live service: TLS or plaintext, and at most one safe GET.

The handshake is netprobe's own, for its facts; what is said above it goes through httpx.
"""

from __future__ import annotations

import asyncio
import contextlib
import re

from msgspec import Struct, field

from netprobe.model.konnectivity import Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.services.connect import get
from netprobe.protocols.services.http2 import CallFacts, Http2Talk
from netprobe.protocols.services.http_exchange import (
    HttpAnswer,
    HttpRequest,
    ReadLimits,
    exchange_http,
)
from netprobe.protocols.services.pages import name_page
from netprobe.protocols.services.proxy_url import ProxyUrl
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_certificates import Certificate
from netprobe.protocols.services.tls_talk import NO_GREETING_S, Patience, TlsTalk

# A live service answers within a round trip or two, but its host may be busy; only what drops our
# bytes is silent for longer, by the agent's clock.
SILENCE_S = 5.8
LIMITS = ReadLimits(SILENCE_S)
# The server's host has our hello: it is waited for like every other answer.
PATIENCE = Patience(2.5, 2.5, SILENCE_S)
ALPN = ("h2", "http/1.1")
SHOWN_TEXT = 60
# The last one may be cut off.
_TAG = re.compile(r"<[^>]*(>|$)")
# Who signs the default certificate of OpenShift's router, and what that says where it has no route
# for a name, whatever certificate it shows.
ROUTER_SIGNER = "ingress-operator@"
ROUTER_PAGE = "Application is not available"


class ServiceRequest(Struct, frozen=True):
    """One question. ``path`` None: nothing after the handshake; for ``proxy`` it is a whole URL.

    ``server_name`` None: no SNI, as Go does it for an address. ``call``: where the server speaks
    HTTP/2 and wants no certificate, call a gRPC method that no server has. ``http2``: without TLS
    speak HTTP/2 at once; in TLS the server chooses.
    """

    host: str
    server_name: str | None = None
    path: str | None = "/"
    call: bool = False
    proxy: ProxyUrl | None = None
    http2: bool = False


class ServiceReply(Struct):
    """The reply. ``seen`` stays empty where no TLS was spoken, ``answer`` where no HTTP was.

    ``end`` is the state at the end: ``fin``, ``reset``, ``failed`` or ``silent``.
    """

    seen: SeenHandshake = field(default_factory=SeenHandshake)
    answer: HttpAnswer = field(default_factory=HttpAnswer)
    call: CallFacts | None = None
    end: str = "silent"

    @property
    def spoke_tls(self) -> bool:
        """Whether the other end answered in TLS."""
        seen = self.seen
        return seen.foreign is None and (seen.done or bool(seen.chain) or seen.alert is not None)

    @property
    def status(self) -> int | None:
        """The status of the HTTP answer."""
        return self.answer.status

    @property
    def foreign(self) -> str | None:
        """The beginning of an answer that is neither TLS nor HTTP as it was asked for."""
        if self.answer.foreign is not None or self.seen.foreign is None:
            return self.answer.foreign
        return printable(self.seen.foreign.split("\n")[0].rstrip())

    @property
    def answered(self) -> bool:
        """Whether anything came back that is more than the end of the connection."""
        return self.spoke_tls or self.said_words

    @property
    def said_words(self) -> bool:
        """Whether anything came that is, or should have been, HTTP."""
        return self.status is not None or self.foreign is not None or bool(self.answer.flaw)


async def hear_tls(
    pipe: Pipe, request: ServiceRequest, patience: Patience = PATIENCE
) -> ServiceReply:
    """Shake hands, ask where there is a path, and keep what came within the time."""
    listen_s = None if request.path is None else NO_GREETING_S
    talk = TlsTalk(pipe, Hello(request.server_name, alpn=ALPN), listen_s)
    heard = ServiceReply(seen=talk.attempt.seen)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LIMITS.whole_s):
            await talk.shake(patience)
            if talk.usable and request.path is not None:
                await get(talk, request.host, request.path, LIMITS, heard.answer)
            elif talk.usable and request.call:
                await _make_call(talk, request, heard)
    return _note_end(heard, talk.attempt.end or heard.answer.ended)


async def _make_call(talk: TlsTalk, request: ServiceRequest, heard: ServiceReply) -> None:
    seen = talk.attempt.seen
    if seen.alpn == "h2" and seen.authorities is None:
        http = Http2Talk(talk)
        heard.call = await http.begin(talk.attempt.greeting)
        if heard.call.ended is None:
            heard.call = await http.call(request.host)


async def hear_plain(pipe: Pipe, request: ServiceRequest) -> ServiceReply:
    """Ask without TLS, and keep what came within the time."""
    heard = ServiceReply()
    target = request.path or "/"
    asked = HttpRequest(request.host, target, http2=request.http2, proxy=request.proxy)
    await exchange_http(pipe, asked, LIMITS, heard.answer)
    return _note_end(heard, heard.answer.ended)


def _note_end(heard: ServiceReply, end: str | None) -> ServiceReply:
    heard.end = "silent" if end in (None, "timeout") else str(end)
    return heard


def is_router(heard: ServiceReply) -> bool:
    """Tell whether OpenShift's router answered for a name that it does not route."""
    is_page = heard.status == 503 and ROUTER_PAGE in heard.answer.body
    return is_page or router_certificate(heard) is not None


def router_certificate(heard: ServiceReply) -> Certificate | None:
    """Give the router's default certificate, which no passthrough route ever shows."""
    certificate = heard.seen.certificate
    if certificate is None or heard.seen.authorities is not None:
        return None
    return certificate if certificate.issuer_name.startswith(ROUTER_SIGNER) else None


def describe(heard: ServiceReply, name: str | None, wants: str = "") -> str:
    """Describe the answer to a reader who expected something else, such as ``JSON``."""
    parts = []
    if is_router(heard):
        parts.append(_word_router(heard, name))
    elif heard.spoke_tls:
        parts.append(_word_tls(heard))
    if heard.status is not None:
        parts.append(_word_answer(heard.answer, name, wants))
    elif heard.foreign is not None and not heard.answer.flaw:
        parts.append(f'said "{heard.foreign}"')
    if heard.answer.flaw:
        parts.append(heard.answer.flaw)
    return ", ".join(parts) or "no words"


def _word_answer(answer: HttpAnswer, name: str | None, wants: str) -> str:
    """Word status, destination of a redirect, beginning of the text, and whose page it is."""
    version = "HTTP/2" if answer.http2 else "HTTP"
    words = f"{version} {answer.status} {answer.reason}".rstrip()
    text = " ".join(_TAG.sub(" ", answer.body).split())[:SHOWN_TEXT]
    if text:
        words += f' "{text}"'
    page = name_page(answer, name, wants)
    return f"{words}: {page}" if page else words


def _word_router(heard: ServiceReply, name: str | None) -> str:
    found = "the router's page for names without a route"
    certificate = router_certificate(heard)
    if certificate is not None:
        whose = f"{certificate.subject}, issued by {certificate.issuer}"
        found = f"the router's default certificate ({whose})"
    return f"{found}: it has no route for {name}" if name else f"{found}; no name was asked for"


def _word_tls(heard: ServiceReply) -> str:
    seen = heard.seen
    if not seen.chain:
        return f"TLS alert {seen.alert}" if seen.alert is not None else "TLS"
    parts = [f"TLS with {certificate_words(heard)}"]
    if seen.authorities is not None:
        parts.append(f"asks for a client certificate of {authority_words(heard)}")
    if seen.alert is not None:
        parts.append(f"alert {seen.alert}")
    return ", ".join(parts)


def certificate_words(heard: ServiceReply) -> str:
    """Word the certificate's subject and issuer."""
    certificate = heard.seen.certificate
    if certificate is None:
        return "an unreadable certificate" if heard.spoke_tls else "no certificate"
    return f"a certificate of {certificate.subject}, issued by {certificate.issuer}"


def authority_words(heard: ServiceReply) -> str:
    """Word whose certificates the server asks for."""
    return "; ".join((heard.seen.authorities or ())[:2]) or "anybody"
