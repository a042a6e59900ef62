"""One short exchange with a live service: TLS or plaintext, at most one safe GET, and what came."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass

from netprobe.model.stream import Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.connect import Answer, ProxyUrl, get, get_plain
from netprobe.protocols.http2 import CallFacts, Http2Talk
from netprobe.protocols.tls import Hello, Seen
from netprobe.protocols.tls_certificates import Certificate, read_certificate
from netprobe.protocols.tls_talk import BRIEF, TlsTalk

# A live service answers within a round trip or two, but its host may be busy; only what drops our
# bytes takes longer.
LISTEN_S = 5.8
# Whoever gets a request needs no time for words of its own before it.
NO_GREETING_S = 0.05
# A server that misses a client certificate says so: certificate_required (TLS 1.3),
# bad_certificate (Go, TLS 1.2), handshake_failure (OpenSSL, TLS 1.2).
MISSING_CERTIFICATE = frozenset((116, 42, 40))
SHOWN_TEXT = 60
# The last one may be cut off.
_TAG = re.compile(r"<[^>]*(>|$)")
ROUTER_SIGNER = "ingress-operator@"
ROUTER_PAGE = "Application is not available"


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What to say. ``path`` None: nothing after the handshake; for ``proxy`` it is a whole URL.

    ``server_name`` None: no SNI, as Go does it for an address. ``call``: where the server speaks
    HTTP/2 and wants no certificate, call the gRPC method that nobody has.
    """

    host: str
    server_name: str | None = None
    alpn: tuple[str, ...] = ("http/1.1",)
    path: str | None = "/"
    call: bool = False
    proxy: ProxyUrl | None = None


@dataclass(slots=True)
class ServiceReply:
    """What came. ``seen`` None: no TLS was spoken; ``answer`` None: nothing was asked by HTTP.

    ``end`` is how it stood at last: ``fin``, ``reset``, ``failed`` or ``silent``.
    """

    seen: Seen | None = None
    answer: Answer | None = None
    call: CallFacts | None = None
    end: str = "silent"

    @property
    def spoke_tls(self) -> bool:
        """Whether the other end answered in TLS."""
        seen = self.seen
        if seen is None or seen.foreign is not None:
            return False
        return seen.done or bool(seen.chain) or seen.alert is not None

    @property
    def status(self) -> int | None:
        """The status of the HTTP answer."""
        return None if self.answer is None else self.answer.status

    @property
    def body(self) -> str:
        """The beginning of the answer's body, made printable."""
        return "" if self.answer is None else self.answer.body

    @property
    def foreign(self) -> str | None:
        """The beginning of what is neither TLS nor HTTP as it was asked for."""
        found = self.answer.foreign if self.answer is not None else None
        if found is None and self.seen is not None and self.seen.foreign is not None:
            found = printable(self.seen.foreign.split("\n")[0].rstrip())
        return found

    @property
    def authorities(self) -> tuple[str, ...] | None:
        """Whose certificates the server asks a client for; None: it asks for none."""
        return None if self.seen is None else self.seen.authorities

    @property
    def refuses_strangers(self) -> bool:
        """Whether the server asked for a certificate and complained that it got none."""
        seen = self.seen
        return (
            seen is not None and seen.authorities is not None and seen.alert in MISSING_CERTIFICATE
        )

    @property
    def certificate(self) -> Certificate | None:
        """The server's own certificate."""
        if self.seen is None or not self.seen.chain:
            return None
        return read_certificate(self.seen.chain[0])


async def hear_tls(pipe: Pipe, request: ServiceRequest) -> ServiceReply:
    """Shake hands, ask where there is a path, and keep what came within the time."""
    listen_s = None if request.path is None else NO_GREETING_S
    talk = TlsTalk(pipe, Hello(request.server_name, alpn=request.alpn), listen_s)
    heard = ServiceReply(seen=talk.attempt.seen)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTEN_S):
            await talk.shake(BRIEF)
            if talk.usable and request.path is not None:
                heard.answer = await get(talk, request.host, request.path)
            elif talk.usable and request.call:
                await _call(talk, request, heard)
    heard.end = _end(talk.attempt.end, heard.answer)
    return heard


async def _call(talk: TlsTalk, request: ServiceRequest, heard: ServiceReply) -> None:
    seen = talk.attempt.seen
    if seen.alpn == "h2" and seen.authorities is None:
        http = Http2Talk(talk)
        heard.call = await http.begin(talk.attempt.greeting)
        if heard.call.ended is None:
            await http.call(request.host)


async def hear_plain(pipe: Pipe, request: ServiceRequest) -> ServiceReply:
    """Ask without TLS, and keep what came within the time."""
    heard = ServiceReply()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTEN_S):
            path = request.path or "/"
            heard.answer = await get_plain(pipe, request.host, path, request.proxy)
    heard.end = _end(None, heard.answer)
    return heard


def _end(end: str | None, answer: Answer | None) -> str:
    found = end or (answer.ended if answer is not None else None)
    return "silent" if found in (None, "timeout") else str(found)


def is_router(heard: ServiceReply) -> bool:
    """Whether OpenShift's router answered for a name that it does not route."""
    return _is_router_page(heard) or has_router_certificate(heard)


def has_router_certificate(heard: ServiceReply) -> bool:
    """Whether this is the default certificate, which no passthrough route ever shows."""
    certificate = heard.certificate
    return (
        certificate is not None
        and certificate.issuer_name.startswith(ROUTER_SIGNER)
        and heard.authorities is None
    )


def _is_router_page(heard: ServiceReply) -> bool:
    return heard.status == 503 and ROUTER_PAGE in heard.body


def describe(heard: ServiceReply, name: str | None) -> str:
    """What answered, for a reader who expected something else."""
    parts = []
    if is_router(heard):
        parts.append(_router_words(heard, name))
    elif heard.seen is not None and heard.spoke_tls:
        parts.append(_tls_words(heard))
    if heard.status is not None and heard.answer is not None:
        text = _text(heard.body)
        body = f' "{text}"' if text else ""
        parts.append(f"HTTP {heard.status} {heard.answer.reason}{body}".rstrip())
    elif heard.foreign is not None:
        parts.append(f'said "{heard.foreign}"')
    return ", ".join(parts) or "no words"


def _text(body: str) -> str:
    """The words of a page, without its tags."""
    return " ".join(_TAG.sub(" ", body).split())[:SHOWN_TEXT]


def _router_words(heard: ServiceReply, name: str | None) -> str:
    what = "the router's page for names without a route"
    if has_router_certificate(heard):
        certificate = heard.certificate
        assert certificate is not None
        whose = f"{certificate.subject}, issued by {certificate.issuer}"
        what = f"the router's default certificate ({whose})"
    return f"{what}: it has no route for {name}" if name else f"{what}; no name was asked for"


def _tls_words(heard: ServiceReply) -> str:
    seen = heard.seen
    assert seen is not None
    if not seen.chain:
        return f"TLS alert {seen.alert}" if seen.alert is not None else "TLS"
    parts = [f"TLS with {certificate_words(heard)}"]
    if seen.authorities is not None:
        parts.append(f"asks for a client certificate of {authority_words(heard)}")
    if seen.alert is not None:
        parts.append(f"alert {seen.alert}")
    return ", ".join(parts)


def certificate_words(heard: ServiceReply) -> str:
    """Whose certificate it is, and whose word says so."""
    certificate = heard.certificate
    if certificate is None:
        return "an unreadable certificate" if heard.spoke_tls else "no certificate"
    return f"a certificate of {certificate.subject}, issued by {certificate.issuer}"


def authority_words(heard: ServiceReply) -> str:
    """Whose certificates the server asks for."""
    return "; ".join((heard.authorities or ())[:2]) or "anybody"
