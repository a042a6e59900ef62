"""How services are recognised: exact shapes, and never an exception whatever comes back."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.load.matrix.probe_models import PROBE_TRANSPORTS, SERVICE_TRANSPORTS, Probe
from netprobe.model.evidence import ServiceFinding
from netprobe.model.konnectivity import Event, Pipe
from netprobe.model.matrix import AnyProbe, HttpProbe
from netprobe.protocols import PROTOCOLS
from netprobe.protocols.services.hearing import ServiceReply, describe
from netprobe.protocols.services.http2 import CallFacts
from netprobe.protocols.services.http_exchange import HttpAnswer
from netprobe.protocols.services.http_probe import make_service
from netprobe.protocols.services.identify import Asked, identify
from netprobe.protocols.services.services import SERVICES, service_for
from netprobe.protocols.services.tls import SeenHandshake
from tests.protocols.pipes import open_pipe

SIGNER = "OU=kubernetes, CN=konnectivity-signer"


def page(status: int, body: str = "", **headers: str) -> ServiceReply:
    """What an HTTP answer over TLS leaves behind."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    seen = SeenHandshake(done=True, version="TLSv1.3", chain=(b"no certificate",))
    return ServiceReply(
        seen=seen, answer=HttpAnswer(status=status, body=body, headers=named), end="fin"
    )


STATUS = json.dumps({"kind": "Status", "apiVersion": "v1", "code": 401})
MISSING = ServiceReply(
    seen=SeenHandshake(done=True, chain=(b"x",), authorities=(SIGNER,), alert=116, alpn="h2")
)
FRONT_END = ServiceReply(
    seen=SeenHandshake(done=True, chain=(b"x",), authorities=(SIGNER,), alert=116, alpn="http/1.1")
)
CALLED = ServiceReply(
    seen=SeenHandshake(done=True, alpn="h2"),
    call=CallFacts(
        grpc_status="12",
        grpc_message="unknown method NetprobeNoSuchMethod for service AgentService",
    ),
)


@pytest.mark.parametrize(
    ("name", "heard", "said"),
    [
        ("kube-apiserver", page(401, STATUS), "kube-apiserver: 401 Status"),
        ("kube-apiserver", page(200, '{ "gitVersion": "v1.31.2" }'), "kube-apiserver v1.31.2"),
        ("kube-apiserver", page(503, "<h1>Application is not available</h1>"), None),
        ("kube-apiserver", page(401, "Unauthorized"), None),
        ("konnectivity", MISSING, f"konnectivity: asks for a client certificate of {SIGNER[15:]}"),
        ("konnectivity", FRONT_END, None),
        ("konnectivity", CALLED, "konnectivity: an AgentService that wants no client certificate"),
        ("etcd", MISSING, None),
        ("ignition", page(200), None),
        ("machine-config-server", page(200, content_length="0"), "machine-config-server: "),
        ("machine-config-server", page(200, "ok"), None),
        ("oauth", page(200, "ok"), "oauth: /healthz ok"),
        ("oauth", page(200, "<html>"), None),
        ("kubelet", page(401, "Unauthorized"), "kubelet: 401 Unauthorized"),
        ("kubelet", page(401, STATUS), None),
        ("registry", page(200, "{}"), "registry: /v2/ 200"),
        ("registry", page(401, www_authenticate='Bearer realm="x"'), "registry: /v2/ 401"),
        ("registry", page(200, "<html>Welcome</html>"), None),
        ("registry", page(401, www_authenticate='Basic realm="proxy"'), None),
        ("registry", page(401, '{"errors": [{"code": "UNAUTHORIZED"}]}'), "registry: /v2/ 401"),
        ("registry", page(401, '{"errors": ["go away"]}'), None),
        ("https", page(302), "HTTP 302 over TLSv1.3"),
        ("metrics", page(401, "Unauthorized"), "metrics: 401, wants a token"),
        ("metrics", page(403, STATUS), "metrics: 403, wants a token"),
        ("metrics", page(200, "ok"), None),
        ("https", page(503, "<h1>Application is not available</h1>"), None),
    ],
)
def test_what_is_recognised(name: str, heard: ServiceReply, said: str | None) -> None:
    """The right answer names the service, and that of another service does not."""
    found = SERVICES[name].recognise(heard)

    assert (found is None) == (said is None)
    assert found is None or said is None or said in found


def test_every_service_is_a_probe_and_every_stream_probe_a_service() -> None:
    """A name in ``probe:`` has a packet of its own or a service here."""
    names = set(Probe.__args__)  # type: ignore[attr-defined]  # a Literal has them
    own = {name for name in names if PROTOCOLS[name].name != "plain"}

    assert set(SERVICES) == names - own


def test_transports_that_files_may_name() -> None:
    """The reader of files knows by what each protocol travels; services are TCP's."""
    for name in Probe.__args__:  # type: ignore[attr-defined]  # a Literal has them
        own = set(PROTOCOLS[name].transports)
        wanted = set(SERVICE_TRANSPORTS) if name in SERVICES else own
        assert set(PROBE_TRANSPORTS.get(name, SERVICE_TRANSPORTS)) == wanted, name


class Bytes:
    """A peer that sends these bytes, whatever it gets, and closes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def send(self, data: bytes) -> None:
        """Take everything."""

    async def receive(self, limit_s: float) -> Event:
        """Give the bytes once, then the end."""
        data, self._data = self._data, b""
        return Event("data" if data else "fin", data)


def told(name: AnyProbe, data: bytes, port: int = 443) -> ServiceFinding:
    """What is found out at a peer that answers every connection with these bytes."""

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        yield Bytes(data)

    service = service_for(name)
    assert service is not None
    return asyncio.run(identify(service, Asked("10.0.0.1", port), dial))


TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
HTTP = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TO_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


@pytest.mark.parametrize(
    ("name", "data", "port", "expected"),
    [
        ("https", HTTP, 443, "plaintext"),
        ("kubelet", b"SSH-2.0-OpenSSH_9.2\r\n", 443, "plaintext"),
        ("http-health", HTTP, 8081, "service"),
        ("http-health", TLS_ALERT, 8081, "tls"),
        ("http-health", b"SSH-2.0-OpenSSH_9.2\r\n", 8081, "other"),
        ("tls", TLS_ALERT, 443, "other"),
        ("tls", b"", 443, "closed"),
        (
            "machine-config-server",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            22624,
            "service",
        ),
        ("registry", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 5000, "service"),
    ],
)
def test_tls_and_plaintext_are_told_apart(name: str, data: bytes, port: int, expected: str) -> None:
    """Each way of speaking is recognised where the other is expected."""
    assert told(name, data, port).told == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SERVICES))
@given(data=st.one_of(st.binary(max_size=300), st.binary(max_size=200).map(lambda x: HTTP + x)))
def test_no_bytes_are_too_strange(name: str, data: bytes) -> None:
    """Whatever a port answers, there is one plain printable phrase for it."""
    finding = told(name, data)

    assert finding.said.isprintable()
    assert len(finding.said) < 400


@given(
    st.builds(
        ServiceReply,
        seen=st.just(SeenHandshake())
        | st.builds(SeenHandshake, alert=st.none() | st.integers(0, 255)),
        answer=st.just(HttpAnswer())
        | st.builds(HttpAnswer, status=st.none() | st.integers(100, 599)),
    ),
    st.none() | st.just("api.lab.test"),
)
def test_every_exchange_can_be_described(heard: ServiceReply, name: str | None) -> None:
    """There are words for every combination of facts, and every service can read it."""
    assert describe(heard, name)
    for service in SERVICES.values():
        assert service.recognise(heard) is None or heard.status is not None


@pytest.mark.parametrize("word", ["/ignition", "/config", "/pods", "verbose", "Connect"])
def test_nothing_unsafe_is_ever_asked(word: str) -> None:
    """No request can hand out secrets, raise warnings or register anything."""
    paths = [path for service in SERVICES.values() for path in service.paths]

    assert not [path for path in paths if word in path]


def answering(answers: dict[str, bytes], name: str, port: int) -> ServiceFinding:
    """What is found out at a server without TLS that answers each path so."""

    class Paths:
        def __init__(self) -> None:
            self.events: list[Event] = []

        async def send(self, data: bytes) -> None:
            path = data.split(b" ")[1].decode() if data.startswith(b"GET ") else ""
            self.events = [Event("data", answers[path])] if path in answers else []

        async def receive(self, limit_s: float) -> Event:
            return self.events.pop() if self.events else Event("fin")

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        yield Paths()

    service = replace(SERVICES[name], tls=False)
    return asyncio.run(identify(service, Asked("10.0.0.1", port), dial))


class Quiet(http.server.BaseHTTPRequestHandler):
    """Python's own server of HTTP/1.1, without its log."""

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("tls", [False, None])
def test_http2_is_asked_of_a_server_without_it(tls: bool | None) -> None:
    """It answers the preface without a status line; TLS is not expected, and not spoken of."""

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        pipe = await open_pipe(web.server_port)
        try:
            yield pipe
        finally:
            pipe.close()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as web:
        Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            service = make_service(HttpProbe(http2=True, tls=tls))
            found = asyncio.run(identify(service, Asked("127.0.0.1", web.server_port), dial))
        finally:
            web.shutdown()

    assert found.told == "other"
    assert found.said.startswith('HTTP/2 is not spoken: it answers "<!DOCTYPE')


@pytest.mark.parametrize(
    ("data", "expected", "said"),
    [
        (TLS_ALERT, "tls", "TLS alert 40"),
        (TO_TLS, "other", "HTTP/2 is not spoken: it answers in HTTP/1"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "other", 'HTTP/2 is not spoken: it answers "SSH-2.0-Open'),
    ],
)
def test_without_tls_nobody_says_that_it_is_expected(data: bytes, expected: str, said: str) -> None:
    """Who speaks neither HTTP/2 nor TLS is another service; TLS is told where it is spoken."""
    found = told(HttpProbe(http2=True, tls=False), data)

    assert found.told == expected
    assert said in found.said


def test_a_bad_request_without_tls_is_no_lack_of_tls() -> None:
    """The other way is tried, and tells nothing."""
    assert told(HttpProbe(tls=False), TO_TLS).told == "other"


VERSION = b'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{ "gitVersion": "v1.31.2"}'
FAILS = b"HTTP/1.1 500 X\r\n\r\n[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
DENIES = b"HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("ready", "note"),
    [(HTTP, None), (DENIES, None), (b"", None), (FAILS, "it is not ready: /readyz 500 (etcd)")],
)
def test_an_apiserver_is_asked_whether_it_is_ready(ready: bytes, note: str | None) -> None:
    """Only its own "no" is a note: who may not see it learns nothing."""
    found = answering({"/version": VERSION, "/readyz": ready}, "kube-apiserver", 6443)

    assert (found.told, found.note) == ("service", note)


def test_a_wrong_answer_without_tls_is_no_matter_of_tls() -> None:
    """Where both ways are right, another answer is another service."""
    found = told("registry", b"HTTP/1.1 302 Found\r\nLocation: http://x/login\r\n\r\n", 5000)

    assert found.told == "other"
    assert "a captive portal or a login page" in found.said


def test_what_does_not_end_is_asked_once() -> None:
    """A head without an end is an answer, though of no service."""
    found = answering({"/healthz": b"HTTP/1.1 200 OK\r\nX: "}, "http-health", 8081)

    assert found.told == "other"
    assert "HTTP/1.1 200 OK" in found.said


KUBE = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1.example.com")


@functools.cache
def certificate_of(name: str, *names: str) -> bytes:
    """A certificate in DER with a common name and DNS names."""
    key, whole = ec.generate_private_key(ec.SECP256R1()), datetime(2020, 1, 1, tzinfo=UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).serial_number(1)
    made = made.public_key(key.public_key()).not_valid_before(whole)
    made = made.not_valid_after(whole.replace(year=2090)).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False
    )
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("service", "names", "doubt"),
    [
        ("oauth", ("kube-apiserver", *KUBE), "a kube-apiserver"),
        ("oauth", ("anything", *KUBE), "a kube-apiserver"),
        ("oauth", ("system:node:w1",), "a kubelet"),
        ("oauth", ("oauth-openshift", "oauth.example.com"), ""),
        ("oauth", ("*.apps.example.com", "*.apps.example.com"), ""),
        # One name of the three proves nothing.
        ("oauth", ("anything", "kubernetes"), ""),
        ("kube-apiserver", ("kube-scheduler",), "a kube-scheduler"),
        ("kube-apiserver", ("kube-controller-manager",), "a kube-controller-manager"),
        (
            "kube-apiserver", ("localhost@1732300000", "localhost"),
            "a kube-scheduler or kube-controller-manager",
        ),
        ("kube-apiserver", ("kube-apiserver", *KUBE), ""),
        ("kube-apiserver", ("10.0.0.1@1732300000", *KUBE), ""),
        ("kube-apiserver", ("api.example.com", "api.example.com"), ""),
        ("machine-config-server", ("kube-apiserver", *KUBE), "a kube-apiserver"),
        ("machine-config-server", ("system:machine-config-server",), ""),
        ("konnectivity", ("konnectivity-server",), ""),
        ("konnectivity", ("ignition-server",), "an ignition server"),
        ("ignition", ("ignition-server",), ""),
        ("ignition", ("machine-config-server",), "a machine-config-server"),
        ("etcd", ("etcd",), ""),
        ("etcd", ("system:node:w1",), "a kubelet"),
        ("kubelet", ("system:node:w1",), ""),
        ("kubelet", ("localhost@1732300000",), ""),
        ("kubelet", ("kube-apiserver", *KUBE), "a kube-apiserver"),
        # Anybody may be one of these.
        ("https", ("kube-apiserver", *KUBE), ""),
        ("metrics", ("kube-scheduler",), ""),
    ],
)  # fmt: skip
def test_another_component_gives_itself_away_by_its_certificate(
    service: str, names: tuple[str, ...], doubt: str
) -> None:
    """Their answers are alike; only exact names count, and what is not certain is no doubt."""
    heard = ServiceReply(seen=SeenHandshake(done=True, chain=(certificate_of(*names),)))

    expected = f"its certificate is that of {doubt}" if doubt else ""
    assert SERVICES[service].doubts(heard) == expected
