"""Live services over TLS and HTTP: what each is asked, and how its answer is recognised.

Every request is one that the service answers without credentials and without a trace: no token, no
configuration, nothing registered. Sources and measurements: docs/services.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from netprobe.model.stream import Pipe
from netprobe.protocols.connect import ProxyUrl
from netprobe.protocols.hearing import (
    ServiceReply,
    ServiceRequest,
    authority_words,
    certificate_words,
    describe,
    has_router_certificate,
    hear_plain,
    hear_tls,
    is_router,
)
from netprobe.protocols.tls_certificates import names_host

# ``tls``: TLS answered where plaintext is expected; ``plaintext``: the reverse. The last three:
# the connection opened, and what was asked got no word.
Told = Literal["service", "other", "tls", "plaintext", "silent", "closed", "reset"]

# Opens a connection to the service; None where it does not open (any more).
Dial = Callable[[], AbstractAsyncContextManager[Pipe | None]]

Recognise = Callable[[ServiceReply], str | None]

SIGNER = "CN=konnectivity-signer"
H2_FIRST = ("h2", "http/1.1")
KUBE_NAMES = frozenset(("kubernetes", "kubernetes.default", "kubernetes.default.svc"))
_STATUS = re.compile(r'"kind": ?"Status"')
_VERSION = re.compile(r'"gitVersion": ?"([^"]{1,40})"')
_OCI_ERRORS = re.compile(r'^\s*\{\s*"errors":\s*\[\s*\{\s*"code":\s*"[A-Z_]+"')
_SELF_SIGNED_KUBELET = re.compile(r"@\d{6,}$")
MACHINE_CONFIG_PLAIN = 22624


@dataclass(frozen=True, slots=True)
class Service:
    """One service. ``paths`` are asked in turn while one is not found; none: only the handshake.

    ``recognise`` gives what the service said, None where it is another. ``either``: the service is
    the same with and without TLS. ``plain_ports`` speak plaintext though the others speak TLS.
    ``call``: see ``Request``.
    """

    title: str
    recognise: Recognise
    paths: tuple[str, ...] = ()
    tls: bool = True
    alpn: tuple[str, ...] = ("http/1.1",)
    call: bool = False
    either: bool = False
    plain_ports: frozenset[int] = frozenset()

    def speaks_tls(self, port: int) -> bool:
        """Whether TLS is expected at a port."""
        return self.tls and port not in self.plain_ports


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out; ``said`` is one plain phrase, ``status`` that of an HTTP answer.

    ``note``: what the service's own clients may stumble over.
    """

    told: Told
    said: str
    status: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
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
        """What stands in the request line."""
        return f"http://{self.authority}{path}" if self.by_proxy else path


async def identify(service: Service, asked: Asked, dial: Dial) -> Finding:
    """Ask a service who it is. Where one way of speaking gets no word, the other is tried."""
    tls = service.speaks_tls(asked.port)
    heard = await _hear(service, asked, dial, tls)
    if heard is None:
        return Finding("silent", "a second connection did not open")
    said = service.recognise(heard)
    if said is not None:
        return Finding("service", said, note=_certificate_note(heard, asked))
    if heard.seen is not None and heard.seen.foreign is not None and not service.either:
        return Finding("plaintext", describe(heard, asked.server_name))
    if asked.by_proxy or _settled(heard, tls):
        return _other(heard, asked)
    second = await _hear(service, asked, dial, not tls)
    return _second(service, asked, heard, second)


def _certificate_note(heard: ServiceReply, asked: Asked) -> str | None:
    certificate = heard.certificate
    if certificate is None:
        return None
    if certificate.expired:
        return f"its certificate expired on {certificate.not_after}"
    name = asked.server_name
    if name and not names_host(certificate.names, name):
        named = ", ".join(certificate.names[:4]) or "nobody"
        return f"its certificate does not name {name}: it names {named}"
    return None


def _settled(heard: ServiceReply, tls: bool) -> bool:
    """Whether the answer is of the kind that was asked for, so that the other is no question."""
    if tls:
        return heard.spoke_tls
    # Servers of HTTPS call a plaintext request a bad one, in plaintext.
    return heard.status is not None and heard.status != 400


def _second(
    service: Service, asked: Asked, first: ServiceReply, second: ServiceReply | None
) -> Finding:
    if second is not None:
        said = service.recognise(second) if service.either else None
        if said is not None:
            return Finding("service", f"{said}, without TLS")
        words = describe(second, asked.server_name)
        if second.spoke_tls:
            return Finding("tls", words)
        if second.status is not None or second.foreign is not None:
            return Finding("plaintext", words)
    return _other(first, asked)


def _other(heard: ServiceReply, asked: Asked) -> Finding:
    """Another service, or nobody who says a word."""
    if heard.status is not None or heard.foreign is not None or heard.spoke_tls:
        return Finding("other", describe(heard, asked.server_name), heard.status)
    told: dict[str, Told] = {"fin": "closed", "reset": "reset"}
    return Finding(told.get(heard.end, "silent"), "no answer to what was asked")


async def _hear(service: Service, asked: Asked, dial: Dial, tls: bool) -> ServiceReply | None:
    heard = None
    for path in service.paths or (None,):
        target = asked.target(path)
        request = ServiceRequest(
            asked.authority,
            asked.server_name,
            service.alpn,
            target,
            service.call,
            asked.by_proxy,
        )
        async with dial() as pipe:
            if pipe is None:
                return heard
            heard = await (hear_tls if tls else hear_plain)(pipe, request)
        if heard.status != 404:
            break
    return heard


# --- how each answer is recognised ---------------------------------------------------------------


def _kube_apiserver(heard: ServiceReply) -> str | None:
    if _STATUS.search(heard.body):
        return f"kube-apiserver: {heard.status} Status"
    version = _VERSION.search(heard.body)
    if version is not None and heard.status == 200:
        return f"kube-apiserver {version[1]}"
    certificate = heard.certificate
    names = set(certificate.names) | {certificate.common_name} if certificate else set()
    if KUBE_NAMES & names and heard.status in (None, 401, 403):
        return f"kube-apiserver: {_status(heard)}, {certificate_words(heard)}"
    return None


def _konnectivity(heard: ServiceReply) -> str | None:
    if heard.call is not None and heard.call.is_agent_service:
        return "konnectivity: an AgentService that wants no client certificate"
    certificate = heard.certificate
    signed = certificate is not None and f"CN={certificate.issuer_name}" == SIGNER
    asks = any(SIGNER in name for name in heard.authorities or ())
    front_end = heard.seen is not None and heard.seen.alpn == "http/1.1"
    if not (signed or asks) or front_end or heard.authorities is None:
        return None
    names = f" ({', '.join(certificate.names[:2])})" if certificate and certificate.names else ""
    complaint = "" if heard.refuses_strangers else ", and did not complain"
    return f"konnectivity{names}: asks for a client certificate of {SIGNER}{complaint}"


def _ignition(heard: ServiceReply) -> str | None:
    certificate = heard.certificate
    names = (certificate.common_name, *certificate.names) if certificate is not None else ()
    mine = any(name.partition(".")[0] == "ignition-server" for name in names)
    if mine and _empty_200(heard):
        return "ignition-server: /healthz 200"
    return None


def _machine_config_server(heard: ServiceReply) -> str | None:
    if _empty_200(heard) and not has_router_certificate(heard) and _ignition(heard) is None:
        return "machine-config-server: /healthz 200"
    return None


def _oauth(heard: ServiceReply) -> str | None:
    if heard.status == 200 and heard.body == "ok":
        return "oauth: /healthz ok"
    if heard.status in (401, 403) and _STATUS.search(heard.body):
        return f"oauth: {heard.status} Status"
    return None


def _etcd(heard: ServiceReply) -> str | None:
    if any("etcd" in name.lower() for name in heard.authorities or ()):
        return f"etcd: asks for a client certificate of {authority_words(heard)}"
    certificate = heard.certificate
    if certificate is None:
        return None
    names = (certificate.issuer, certificate.subject, *certificate.names)
    if any("etcd" in name.lower() for name in names):
        return f"etcd: {certificate_words(heard)}"
    return None


def _kubelet(heard: ServiceReply) -> str | None:
    certificate = heard.certificate
    name = certificate.common_name if certificate is not None else ""
    if heard.status == 401 and heard.body == "Unauthorized":
        return "kubelet: 401 Unauthorized"
    if heard.status == 403 and heard.body.startswith("Forbidden (user="):
        return "kubelet: 403 Forbidden"
    of_node = name.startswith("system:node:") or bool(_SELF_SIGNED_KUBELET.search(name))
    if of_node and heard.status == 200 and heard.body == "ok":
        return "kubelet: /healthz ok"
    # It may demand a client certificate before anything is asked.
    return f"kubelet: a certificate of {name}" if of_node and heard.refuses_strangers else None


def _registry(heard: ServiceReply) -> str | None:
    headers = heard.answer.headers if heard.answer is not None else {}
    realm = headers.get("www-authenticate", "")
    # The header is the old mark; errors with codes are what the OCI distribution spec asks for.
    marked = "docker-distribution-api-version" in headers or bool(_OCI_ERRORS.search(heard.body))
    if heard.status == 200 and (marked or heard.body in ("{}", "{ }")):
        return "registry: /v2/ 200"
    if heard.status == 401 and (marked or realm.lower().startswith("bearer realm=")):
        return "registry: /v2/ 401, asks for a token" if realm else "registry: /v2/ 401"
    return None


def _http_health(heard: ServiceReply) -> str | None:
    if heard.seen is not None:
        return None
    if heard.status == 200 and not heard.body.lstrip().startswith("<"):
        return f"health probe: 200 {heard.body[:20]}".rstrip()
    if heard.status in (500, 503) and "healthz check" in heard.body:
        return f"health probe: {heard.status}, not healthy"
    return None


def _https(heard: ServiceReply) -> str | None:
    if heard.status is None or not heard.spoke_tls or _unrouted(heard):
        return None
    return f"HTTP {heard.status} over {_version(heard)}"


def _tls(heard: ServiceReply) -> str | None:
    if heard.seen is None or not heard.seen.chain or _unrouted(heard):
        return None
    return f"{_version(heard)} with {certificate_words(heard)}"


def _unrouted(heard: ServiceReply) -> bool:
    # Routes whose TLS ends at the router show its default certificate rightly: its page decides.
    return is_router(heard) and heard.status == 503


def _empty_200(heard: ServiceReply) -> bool:
    length = heard.answer.headers.get("content-length") if heard.answer is not None else None
    return heard.status == 200 and not heard.body and length in (None, "0")


def _status(heard: ServiceReply) -> str:
    return "no answer" if heard.status is None else f"HTTP {heard.status}"


def _version(heard: ServiceReply) -> str:
    return (heard.seen.version if heard.seen is not None else None) or "TLS"


# Every ``probe:`` that is spoken over a stream. Adding one is a reader above and a line here.
SERVICES: dict[str, Service] = {
    # /version says most, and whoever may not see it gets a Status, which says enough.
    "kube-apiserver": Service("a kube-apiserver", _kube_apiserver, ("/version",)),
    "konnectivity": Service("a Konnectivity server", _konnectivity, alpn=H2_FIRST, call=True),
    # Never /ignition: without a token it raises a warning event, with a wrong one an error.
    "ignition": Service("an ignition server", _ignition, ("/healthz",)),
    # Never /config/<pool>: it hands out the whole configuration, secrets included.
    "machine-config-server": Service(
        "a machine-config-server",
        _machine_config_server,
        ("/healthz",),
        plain_ports=frozenset((MACHINE_CONFIG_PLAIN,)),
    ),
    "etcd": Service("etcd", _etcd, alpn=H2_FIRST),
    "kubelet": Service("a kubelet", _kubelet, ("/healthz",)),
    "registry": Service("a registry", _registry, ("/v2/",), either=True),
    "oauth": Service("an OAuth server", _oauth, ("/healthz",)),
    "http-health": Service("a health probe", _http_health, ("/healthz", "/readyz"), tls=False),
    "https": Service("an HTTPS server", _https, ("/",)),
    "tls": Service("a TLS server", _tls, alpn=H2_FIRST),
}
