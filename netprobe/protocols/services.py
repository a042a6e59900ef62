"""Live services over TLS and HTTP: what each is asked, and how its answer is recognised.

Every request is one that the service answers without credentials and without a trace: no token, no
configuration, nothing registered. Sources and measurements: docs/services.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from netprobe.model.evidence import ServiceFinding, Told
from netprobe.model.stream import Pipe
from netprobe.protocols.connect import ProxyUrl
from netprobe.protocols.hearing import (
    ServiceReply,
    ServiceRequest,
    authority_words,
    certificate_words,
    describe,
    hear_plain,
    hear_tls,
    is_router,
    router_certificate,
)
from netprobe.protocols.tls_certificates import names_host

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
    ``call``: see ``ServiceRequest``. ``vague``: many programs are one, so that an answer does not
    tell whose it is.
    """

    title: str
    recognise: Recognise
    paths: tuple[str, ...] = ()
    tls: bool = True
    alpn: tuple[str, ...] = ("http/1.1",)
    call: bool = False
    either: bool = False
    plain_ports: frozenset[int] = frozenset()
    vague: bool = False

    def speaks_tls(self, port: int) -> bool:
        """Tell whether TLS is expected at a port."""
        return self.tls and port not in self.plain_ports


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
        """Give the target of the request line."""
        return f"http://{self.authority}{path}" if self.by_proxy else path


async def identify(service: Service, asked: Asked, dial: Dial) -> ServiceFinding:
    """Identify a service: with TLS or without, and the other way if there is no answer."""
    tls = service.speaks_tls(asked.port)
    heard = await _hear_service(service, asked, dial, tls)
    if heard is None:
        return ServiceFinding("silent", "a second connection did not open")
    said = service.recognise(heard)
    if said is not None:
        return ServiceFinding("service", said, note=_note_certificate(heard, asked))
    if heard.seen.foreign is not None and not service.either:
        return ServiceFinding("plaintext", describe(heard, asked.server_name))
    if asked.by_proxy or _is_settled(heard, tls):
        return _find_other(heard, asked)
    second = await _hear_service(service, asked, dial, not tls)
    return _judge_second(service, asked, heard, second)


def _note_certificate(heard: ServiceReply, asked: Asked) -> str | None:
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


def _is_settled(heard: ServiceReply, tls: bool) -> bool:
    """Tell whether the answer is of the kind that was asked for, so the other need not be tried."""
    if tls:
        return heard.spoke_tls
    # Servers of HTTPS call a plaintext request a bad one, in plaintext.
    return heard.status is not None and heard.status != 400


def _judge_second(
    service: Service, asked: Asked, first: ServiceReply, second: ServiceReply | None
) -> ServiceFinding:
    if second is not None:
        said = service.recognise(second) if service.either else None
        if said is not None:
            return ServiceFinding("service", f"{said}, without TLS")
        words = describe(second, asked.server_name)
        if second.spoke_tls:
            return ServiceFinding("tls", words)
        if second.status is not None or second.foreign is not None:
            return ServiceFinding("plaintext", words)
    return _find_other(first, asked)


def _find_other(heard: ServiceReply, asked: Asked) -> ServiceFinding:
    """Describe an answer of another service, or silence."""
    if heard.status is not None or heard.foreign is not None or heard.spoke_tls:
        return ServiceFinding("other", describe(heard, asked.server_name), heard.status)
    told: dict[str, Told] = {"fin": "closed", "reset": "reset"}
    return ServiceFinding(told.get(heard.end, "silent"), "no answer to what was asked")


async def _hear_service(
    service: Service, asked: Asked, dial: Dial, tls: bool
) -> ServiceReply | None:
    heard = None
    name, proxy = asked.server_name, asked.by_proxy
    for path in service.paths or (None,):
        target = asked.target(path)
        request = ServiceRequest(asked.authority, name, service.alpn, target, service.call, proxy)
        async with dial() as pipe:
            if pipe is None:
                return heard
            heard = await (hear_tls if tls else hear_plain)(pipe, request)
        if heard.status != 404:
            break
    return heard


# --- how each answer is recognised ---------------------------------------------------------------


def _recognise_kube_apiserver(heard: ServiceReply) -> str | None:
    if _STATUS.search(heard.answer.body):
        return f"kube-apiserver: {heard.status} Status"
    version = _VERSION.search(heard.answer.body)
    if version is not None and heard.status == 200:
        return f"kube-apiserver {version[1]}"
    certificate = heard.certificate
    names = {certificate.common_name, *certificate.names} if certificate is not None else set()
    if KUBE_NAMES & names and heard.status in (None, 401, 403):
        answer = "no answer" if heard.status is None else f"HTTP {heard.status}"
        return f"kube-apiserver: {answer}, {certificate_words(heard)}"
    return None


def _recognise_konnectivity(heard: ServiceReply) -> str | None:
    if heard.call is not None and heard.call.has_service():
        return "konnectivity: an AgentService that wants no client certificate"
    certificate = heard.certificate
    signed = certificate is not None and f"CN={certificate.issuer_name}" == SIGNER
    asks = any(SIGNER in name for name in heard.seen.authorities or ())
    is_front_end = heard.seen.alpn == "http/1.1"
    if not (signed or asks) or is_front_end or heard.seen.authorities is None:
        return None
    names = f" ({', '.join(certificate.names[:2])})" if certificate and certificate.names else ""
    complaint = "" if heard.refuses_strangers else ", and did not complain"
    return f"konnectivity{names}: asks for a client certificate of {SIGNER}{complaint}"


def _recognise_ignition(heard: ServiceReply) -> str | None:
    certificate = heard.certificate
    names = (certificate.common_name, *certificate.names) if certificate is not None else ()
    is_named = any(name.partition(".")[0] == "ignition-server" for name in names)
    return "ignition-server: /healthz 200" if is_named and _is_empty_200(heard) else None


def _recognise_machine_config_server(heard: ServiceReply) -> str | None:
    if not _is_empty_200(heard) or router_certificate(heard) is not None:
        return None
    return None if _recognise_ignition(heard) else "machine-config-server: /healthz 200"


def _recognise_oauth(heard: ServiceReply) -> str | None:
    if heard.status == 200 and heard.answer.body == "ok":
        return "oauth: /healthz ok"
    if heard.status in (401, 403) and _STATUS.search(heard.answer.body):
        return f"oauth: {heard.status} Status"
    return None


def _recognise_etcd(heard: ServiceReply) -> str | None:
    if any("etcd" in name.lower() for name in heard.seen.authorities or ()):
        return f"etcd: asks for a client certificate of {authority_words(heard)}"
    certificate = heard.certificate
    if certificate is None:
        return None
    names = (certificate.issuer, certificate.subject, *certificate.names)
    if any("etcd" in name.lower() for name in names):
        return f"etcd: {certificate_words(heard)}"
    return None


def _recognise_kubelet(heard: ServiceReply) -> str | None:
    certificate = heard.certificate
    name = certificate.common_name if certificate is not None else ""
    if heard.status == 401 and heard.answer.body == "Unauthorized":
        return "kubelet: 401 Unauthorized"
    if heard.status == 403 and heard.answer.body.startswith("Forbidden (user="):
        return "kubelet: 403 Forbidden"
    of_node = name.startswith("system:node:") or bool(_SELF_SIGNED_KUBELET.search(name))
    if of_node and heard.status == 200 and heard.answer.body == "ok":
        return "kubelet: /healthz ok"
    # It may demand a client certificate before anything is asked.
    return f"kubelet: a certificate of {name}" if of_node and heard.refuses_strangers else None


def _recognise_registry(heard: ServiceReply) -> str | None:
    headers, body = heard.answer.headers, heard.answer.body
    realm = headers.get("www-authenticate", "")
    # The header is the old mark; errors with codes are what the OCI distribution spec asks for.
    marked = "docker-distribution-api-version" in headers or bool(_OCI_ERRORS.search(body))
    if heard.status == 200 and (marked or body in ("{}", "{ }")):
        return "registry: /v2/ 200"
    if heard.status == 401 and (marked or realm.lower().startswith("bearer realm=")):
        return "registry: /v2/ 401, asks for a token" if realm else "registry: /v2/ 401"
    return None


def _recognise_http_health(heard: ServiceReply) -> str | None:
    if heard.spoke_tls:
        return None
    if heard.status == 200 and not heard.answer.body.lstrip().startswith("<"):
        return f"health probe: 200 {heard.answer.body[:20]}".rstrip()
    if heard.status in (500, 503) and "healthz check" in heard.answer.body:
        return f"health probe: {heard.status}, not healthy"
    return None


def _recognise_https(heard: ServiceReply) -> str | None:
    if heard.status is None or not heard.spoke_tls or _is_unrouted(heard):
        return None
    return f"HTTP {heard.status} over {heard.seen.version or 'TLS'}"


def _recognise_tls(heard: ServiceReply) -> str | None:
    if not heard.seen.chain or _is_unrouted(heard):
        return None
    return f"{heard.seen.version or 'TLS'} with {certificate_words(heard)}"


def _is_unrouted(heard: ServiceReply) -> bool:
    # Routes whose TLS ends at the router show its default certificate rightly: its page decides.
    return is_router(heard) and heard.status == 503


def _is_empty_200(heard: ServiceReply) -> bool:
    length = heard.answer.headers.get("content-length")
    return heard.status == 200 and not heard.answer.body and length in (None, "0")


# Every ``probe:`` that is spoken over a stream. Adding one is a reader above and a line here.
SERVICES: dict[str, Service] = {
    # /version says most; a client that may not see it gets a Status, which says enough.
    "kube-apiserver": Service("a kube-apiserver", _recognise_kube_apiserver, ("/version",)),
    "konnectivity": Service(
        "a Konnectivity server", _recognise_konnectivity, alpn=H2_FIRST, call=True
    ),
    # Never /ignition: without a token it raises a warning event, with a wrong one an error.
    "ignition": Service("an ignition server", _recognise_ignition, ("/healthz",)),
    # Never /config/<pool>: it hands out the whole configuration, secrets included.
    "machine-config-server": Service(
        "a machine-config-server",
        _recognise_machine_config_server,
        ("/healthz",),
        plain_ports=frozenset((MACHINE_CONFIG_PLAIN,)),
    ),
    "etcd": Service("etcd", _recognise_etcd, alpn=H2_FIRST),
    "kubelet": Service("a kubelet", _recognise_kubelet, ("/healthz",)),
    "registry": Service("a registry", _recognise_registry, ("/v2/",), either=True),
    "oauth": Service("an OAuth server", _recognise_oauth, ("/healthz",)),
    "http-health": Service(
        "a health probe", _recognise_http_health, ("/healthz", "/readyz"), tls=False, vague=True
    ),
    "https": Service("an HTTPS server", _recognise_https, ("/",), vague=True),
    "tls": Service("a TLS server", _recognise_tls, alpn=H2_FIRST, vague=True),
}
