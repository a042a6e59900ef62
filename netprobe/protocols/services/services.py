"""Live services over TLS and HTTP: what each is asked, and how its answer is recognised.

Every request is one that the service answers without credentials and without a trace: no token, no
configuration, nothing registered. Sources and measurements: docs/services.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from netprobe.model.matrix import AnyProbe, HttpProbe
from netprobe.protocols.services.hearing import (
    ServiceReply,
    authority_words,
    certificate_words,
    is_router,
    router_certificate,
)
from netprobe.protocols.services.http_probe import make_service
from netprobe.protocols.services.identify import Service

SIGNER = "CN=konnectivity-signer"
KUBE_NAMES = frozenset(("kubernetes", "kubernetes.default", "kubernetes.default.svc"))
_STATUS = re.compile(r'"kind": ?"Status"')
_VERSION = re.compile(r'"gitVersion": ?"([^"]{1,40})"')
_OCI_ERRORS = re.compile(r'^\s*\{\s*"errors":\s*\[\s*\{\s*"code":\s*"[A-Z_]+"')
_METRICS = re.compile(r"^# (HELP|TYPE) [a-zA-Z_:]", re.MULTILINE)
_SELF_SIGNED_KUBELET = re.compile(r"@\d{6,}$")
MACHINE_CONFIG_PLAIN = 22624
# Whose certificate it is where its common name is exactly this.
COMPONENTS = {
    "kube-apiserver": "a kube-apiserver",
    "kube-scheduler": "a kube-scheduler",
    "kube-controller-manager": "a kube-controller-manager",
    "oauth-openshift": "an OAuth server",
    "openshift-oauth": "an OAuth server",
    "konnectivity-server": "a Konnectivity server",
    "ignition-server": "an ignition server",
    "machine-config-server": "a machine-config-server",
    "system:machine-config-server": "a machine-config-server",
    "etcd": "etcd",
}
# What kube-scheduler and kube-controller-manager make for themselves; a kube-apiserver makes one
# for its address, and a kubelet one for its host, which may be called so.
OF_LOCALHOST = "a kube-scheduler or kube-controller-manager"
_MADE_FOR_LOCALHOST = re.compile(r"localhost@\d{6,}")


# --- how each answer is recognised ---------------------------------------------------------------


def _recognise_kube_apiserver(heard: ServiceReply) -> str | None:
    if _STATUS.search(heard.answer.body):
        return f"kube-apiserver: {heard.status} Status"
    version = _VERSION.search(heard.answer.body)
    if version is not None and heard.status == 200:
        return f"kube-apiserver {version[1]}"
    certificate = heard.seen.certificate
    names = {certificate.common_name, *certificate.names} if certificate is not None else set()
    if KUBE_NAMES & names and heard.status in (None, 401, 403):
        answer = "no answer" if heard.status is None else f"HTTP {heard.status}"
        return f"kube-apiserver: {answer}, {certificate_words(heard)}"
    return None


def _recognise_konnectivity(heard: ServiceReply) -> str | None:
    if heard.call is not None and heard.call.has_service():
        return "konnectivity: an AgentService that wants no client certificate"
    certificate = heard.seen.certificate
    signed = certificate is not None and f"CN={certificate.issuer_name}" == SIGNER
    asks = any(SIGNER in name for name in heard.seen.authorities or ())
    is_front_end = heard.seen.alpn == "http/1.1"
    if not (signed or asks) or is_front_end or heard.seen.authorities is None:
        return None
    names = f" ({', '.join(certificate.names[:2])})" if certificate and certificate.names else ""
    complaint = "" if heard.seen.refuses_strangers else ", and did not complain"
    return f"konnectivity{names}: asks for a client certificate of {SIGNER}{complaint}"


def _recognise_ignition(heard: ServiceReply) -> str | None:
    certificate = heard.seen.certificate
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
    certificate = heard.seen.certificate
    if certificate is None:
        return None
    names = (certificate.issuer, certificate.subject, *certificate.names)
    if any("etcd" in name.lower() for name in names):
        return f"etcd: {certificate_words(heard)}"
    return None


def _recognise_kubelet(heard: ServiceReply) -> str | None:
    certificate = heard.seen.certificate
    name = certificate.common_name if certificate is not None else ""
    if heard.status == 401 and heard.answer.body == "Unauthorized":
        return "kubelet: 401 Unauthorized"
    if heard.status == 403 and heard.answer.body.startswith("Forbidden (user="):
        return "kubelet: 403 Forbidden"
    of_node = name.startswith("system:node:") or bool(_SELF_SIGNED_KUBELET.search(name))
    if of_node and heard.status == 200 and heard.answer.body == "ok":
        return "kubelet: /healthz ok"
    # It may demand a client certificate before anything is asked.
    return f"kubelet: a certificate of {name}" if of_node and heard.seen.refuses_strangers else None


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


def _recognise_metrics(heard: ServiceReply) -> str | None:
    if heard.status == 200 and _METRICS.search(heard.answer.text):
        return "metrics: 200 in Prometheus's format"
    if heard.status in (401, 403) and (
        heard.answer.body == "Unauthorized" or _STATUS.search(heard.answer.body)
    ):
        return f"metrics: {heard.status}, wants a token"
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


def name_component(heard: ServiceReply) -> str:
    """Name the component whose certificate it is; empty where that is not certain."""
    certificate = heard.seen.certificate
    if certificate is None:
        return ""
    name = certificate.common_name
    if name.startswith("system:node:"):
        return "a kubelet"
    if name in COMPONENTS:
        return COMPONENTS[name]
    if set(certificate.names) >= KUBE_NAMES:
        return "a kube-apiserver"
    return OF_LOCALHOST if _MADE_FOR_LOCALHOST.fullmatch(name) else ""


def _doubt_others(*own: str) -> Callable[[ServiceReply], str]:
    """Make the check that a certificate is not another component's; ``own`` are titles.

    Kubernetes' programs share their answers: most say "ok" to /healthz, and refuse by a Status.
    """

    def doubt_certificate(heard: ServiceReply) -> str:
        found = name_component(heard)
        return "" if found in ("", *own) else f"its certificate is that of {found}"

    return doubt_certificate


# Every ``probe:`` that is spoken over a stream. Adding one is a reader above and a line here.
SERVICES: dict[str, Service] = {
    # /version says most; a client that may not see it gets a Status, which says enough.
    # ?verbose lists what the platform is made of.
    "kube-apiserver": Service(
        "a kube-apiserver",
        _recognise_kube_apiserver,
        ("/version",),
        wants="JSON",
        ready="/readyz",
        doubts=_doubt_others("a kube-apiserver"),
        known_by="a version, a `Status` object with any code, or 401/403 with a certificate for "
        "`kubernetes`",
        never="`?verbose`",
    ),
    "konnectivity": Service(
        "a Konnectivity server",
        _recognise_konnectivity,
        call=True,
        doubts=_doubt_others("a Konnectivity server"),
        known_by="a request for a client certificate of `konnectivity-signer` (and the complaint "
        "that it is missing), or the AgentService's own words",
        never="`AgentService/Connect`: it registers the caller",
    ),
    # /ignition raises a warning event without a token, and with a wrong one an error.
    "ignition": Service(
        "an ignition server",
        _recognise_ignition,
        ("/healthz",),
        doubts=_doubt_others("an ignition server"),
        known_by="an empty 200 and a certificate for `ignition-server`",
        never="`/ignition`: a warning event",
    ),
    "machine-config-server": Service(
        "a machine-config-server",
        _recognise_machine_config_server,
        ("/healthz",),
        plain_ports=frozenset((MACHINE_CONFIG_PLAIN,)),
        doubts=_doubt_others("a machine-config-server"),
        known_by="an empty 200, not the router's certificate",
        never="`/config/...`: the configuration with its secrets",
    ),
    "etcd": Service(
        "etcd",
        _recognise_etcd,
        doubts=_doubt_others("etcd"),
        known_by="a request for a client certificate of an etcd authority, or a certificate that "
        "names etcd",
    ),
    "kubelet": Service(
        "a kubelet",
        _recognise_kubelet,
        ("/healthz",),
        doubts=_doubt_others("a kubelet", OF_LOCALHOST),
        known_by="the kubelet's own words for 401 and 403, or `ok` with a node's certificate",
        never="`/pods`",
    ),
    "registry": Service(
        "a registry",
        _recognise_registry,
        ("/v2/",),
        either=True,
        wants="JSON",
        known_by="200 or 401 of a registry (its header, `{}`, a Bearer realm)",
    ),
    "metrics": Service(
        "a metrics endpoint",
        _recognise_metrics,
        ("/metrics",),
        either=True,
        wants="metrics",
        vague=True,
        known_by="200 in Prometheus's format, or 401/403 of Kubernetes",
    ),
    "oauth": Service(
        "an OAuth server",
        _recognise_oauth,
        ("/healthz",),
        doubts=_doubt_others("an OAuth server"),
        known_by="`ok`, or a `Status`",
    ),
    "http-health": Service(
        "a health probe",
        _recognise_http_health,
        ("/healthz", "/readyz"),
        tls=False,
        vague=True,
        wants="ok",
        known_by="200 that is no web page; a failing health check",
    ),
    "https": Service(
        "an HTTPS server",
        _recognise_https,
        ("/",),
        vague=True,
        known_by="any HTTP answer over TLS, except the router's page for names without a route",
    ),
    "tls": Service(
        "a TLS server",
        _recognise_tls,
        vague=True,
        known_by="any certificate",
    ),
}


def service_for(probe: AnyProbe | None) -> Service | None:
    """Give the service that a requirement names or describes; None: it is none of these."""
    return make_service(probe) if isinstance(probe, HttpProbe) else SERVICES.get(probe or "")
