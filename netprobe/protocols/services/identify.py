"""Asks a live service who it is: with TLS or without, and the other way if there is no answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from netprobe.model.evidence import ServiceFinding, ServiceWord
from netprobe.model.konnectivity import Pipe
from netprobe.protocols.services.hearing import (
    ServiceReply,
    ServiceRequest,
    describe,
    hear_plain,
    hear_tls,
)
from netprobe.protocols.services.http_exchange import load_http
from netprobe.protocols.services.proxy_url import ProxyUrl
from netprobe.protocols.services.tls_certificates import names_host

# Opens a connection to the service; None where it does not open (any more).
Dial = Callable[[], AbstractAsyncContextManager[Pipe | None]]

Recognise = Callable[[ServiceReply], str | None]

_FAILED_CHECK = re.compile(r"\[-\]([\w./-]{1,60})")


def _find_nothing(heard: ServiceReply) -> str:
    return ""


class Service(Struct, frozen=True):
    """One service. ``paths`` are asked in turn while one is not found; none: only the handshake.

    ``recognise`` gives what the service said, None where it is another; ``differs`` what that
    lacks, where somebody said what is wanted; ``doubts`` what speaks against one that was
    recognised. ``wants`` is the kind of body that it has, such as
    ``JSON``. ``either``: the service is the same with and without TLS. ``plain_ports`` speak
    plaintext though the others speak TLS. ``ready``: asked of a service that was recognised, and
    any answer from 500 on is noted. ``http2``: spoken without TLS too. ``call``: see
    ``ServiceRequest``. ``vague``: many programs are one, so that an answer does not tell whose it
    is. ``known_by`` and ``never`` are for people (docs/services.md): how an answer is recognised,
    and what is not asked, because it leaves traces or gives out secrets.
    """

    title: str
    recognise: Recognise
    paths: tuple[str, ...] = ()
    tls: bool = True
    call: bool = False
    either: bool = False
    plain_ports: frozenset[int] = frozenset()
    vague: bool = False
    wants: str = ""
    ready: str | None = None
    http2: bool = False
    differs: Callable[[ServiceReply], str] = _find_nothing
    doubts: Callable[[ServiceReply], str] = _find_nothing
    known_by: str = ""
    never: str = ""

    def speaks_tls(self, port: int) -> bool:
        """Tell whether TLS is expected at a port."""
        return self.tls and port not in self.plain_ports

    def describe(self, heard: ServiceReply, name: str | None) -> str:
        """Describe the answer of something else, and what it lacks."""
        words = describe(heard, name, self.wants)
        lacks = self.differs(heard) if heard.status is not None else ""
        return f"{lacks}: {words}" if lacks else words


class Asked(Struct, frozen=True):
    """Whom to ask: ``host`` for HTTP, ``server_name`` for TLS (None: no SNI), the port.

    ``by_proxy`` is asked for the whole URL, so nothing but that is tried.
    """

    host: str
    port: int
    server_name: str | None = None
    by_proxy: ProxyUrl | None = None

    @property
    def authority(self) -> str:
        """The Host header."""
        host = self.server_name or self.host
        host = f"[{host}]" if ":" in host else host
        return host if self.port in (80, 443) else f"{host}:{self.port}"

    def target(self, path: str | None) -> str | None:
        """Give the target of the request line."""
        return f"http://{self.authority}{path}" if self.by_proxy else path


async def identify(service: Service, asked: Asked, dial: Dial) -> ServiceFinding:
    """Identify a service: with TLS or without, and the other way if there is no answer."""
    await load_http()
    tls = service.speaks_tls(asked.port)
    heard = await _hear_service(service, asked, dial, tls)
    if heard is None:
        return ServiceFinding("silent", "a second connection did not open")
    said = service.recognise(heard)
    if said is not None:
        ready = await _note_ready(service, asked, dial, tls)
        return _find_service(service, heard, asked, said, ready)
    if heard.seen.foreign is not None and not service.either:
        return ServiceFinding("plaintext", service.describe(heard, asked.server_name))
    if asked.by_proxy or _is_settled(heard, tls):
        return _find_other(service, heard, asked)
    second = await _hear_service(service, asked, dial, not tls)
    if second is None or not second.answered or not (tls or second.spoke_tls):
        return _find_other(service, heard, asked)
    return _judge_second(service, asked, second)


def _find_service(
    service: Service, heard: ServiceReply, asked: Asked, said: str, ready: str | None = None
) -> ServiceFinding:
    doubts = service.doubts(heard)
    notes = [doubts, _note_certificate(heard, asked), ready, heard.answer.flaw]
    return ServiceFinding("service", said, note="; ".join(filter(None, notes)) or None)


def _note_certificate(heard: ServiceReply, asked: Asked) -> str | None:
    certificate = heard.seen.certificate
    if certificate is None:
        return None
    if certificate.expired:
        return f"its certificate expired on {certificate.not_after}"
    name = asked.server_name
    if name and not names_host(certificate.names, name):
        named = ", ".join(certificate.names[:4]) or "nobody"
        return f"its certificate does not name {name}: it names {named}"
    return None


async def _note_ready(service: Service, asked: Asked, dial: Dial, tls: bool) -> str | None:
    """Ask whether the service is ready; a denial or silence tells nothing of that."""
    if service.ready is None:
        return None
    heard = await _hear_path(service, asked, dial, tls, service.ready)
    if heard is None or heard.status is None or heard.status < 500:
        return None
    failed = ", ".join(_FAILED_CHECK.findall(heard.answer.body)[:4])
    return f"it is not ready: {service.ready} {heard.status}{f' ({failed})' if failed else ''}"


def _is_settled(heard: ServiceReply, tls: bool) -> bool:
    """Tell whether the answer is of the kind that was asked for, so the other need not be tried."""
    if tls:
        return heard.spoke_tls
    # Servers of HTTPS call a plaintext request a bad one, in plaintext, or answer with an alert.
    if heard.status is None:
        return bool(heard.answer.flaw) and heard.foreign is None
    return heard.status != 400


def _judge_second(service: Service, asked: Asked, second: ServiceReply) -> ServiceFinding:
    if service.either:
        said = service.recognise(second)
        if said is not None:
            return _find_service(service, second, asked, f"{said}, without TLS")
        return _find_other(service, second, asked)
    told: ServiceWord = "tls" if second.spoke_tls else "plaintext"
    return ServiceFinding(told, service.describe(second, asked.server_name))


def _find_other(service: Service, heard: ServiceReply, asked: Asked) -> ServiceFinding:
    """Describe an answer of another service, or silence."""
    if heard.answered or heard.foreign is not None:
        words = service.describe(heard, asked.server_name)
        return ServiceFinding("other", words, heard.status)
    told: dict[str, ServiceWord] = {"fin": "closed", "reset": "reset"}
    return ServiceFinding(told.get(heard.end, "silent"), "no answer to what was asked")


async def _hear_service(
    service: Service, asked: Asked, dial: Dial, tls: bool
) -> ServiceReply | None:
    heard = None
    for path in service.paths or (None,):
        found = await _hear_path(service, asked, dial, tls, path)
        if found is None:
            return heard
        heard = found
        if heard.status != 404:
            break
    return heard


async def _hear_path(
    service: Service, asked: Asked, dial: Dial, tls: bool, path: str | None
) -> ServiceReply | None:
    """Hear a connection of its own; None where it does not open."""
    target, name = asked.target(path), asked.server_name
    request = ServiceRequest(
        asked.authority, name, target, service.call, asked.by_proxy, service.http2
    )
    async with dial() as pipe:
        return None if pipe is None else await (hear_tls if tls else hear_plain)(pipe, request)
