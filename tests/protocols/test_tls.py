"""TLS as the diagnosis speaks it, against real servers of the ``ssl`` module."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from netprobe.errors import RequestError
from netprobe.protocols.services.tls import Hello, Identity, TlsClient, check_files
from netprobe.protocols.services.tls_certificates import names_host, read_certificate, read_name
from netprobe.protocols.services.tls_talk import Attempt, Patience, TlsTalk
from tests.lab.konnectivity import pki
from tests.protocols.pipes import open_pipe

NAME = "konn.example.com"
SIGNER = "OU=kubernetes, CN=konnectivity-signer"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's certificate with its signer, and two clients', one of a stranger."""
    folder = tmp_path_factory.mktemp("pki")
    signer = pki.authority(OU="kubernetes", CN="konnectivity-signer")
    stranger = pki.authority(CN="stranger")
    pki.issue(folder, "server.pem", signer, (NAME, "10.0.0.1"), CN="konnectivity-server")
    pki.issue(folder, "agent.pem", signer, CN="konnectivity-agent")
    pki.issue(folder, "stranger.pem", stranger, CN="konnectivity-agent")
    (folder / "signer.crt").write_bytes(signer.pem())
    (folder / "stranger.crt").write_bytes(stranger.pem())
    return folder


@contextlib.contextmanager
def serving(folder: Path, *, alpn: str = "h2", **how: Any) -> Iterator[int]:
    """A server in a thread, because asyncio's sends no alerts.

    ``mutual`` asks for certificates, ``most`` caps the version.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.set_alpn_protocols([alpn])
    context.maximum_version = how.get("most", ssl.TLSVersion.TLSv1_3)
    if how.get("mutual"):
        context.load_verify_locations(folder / "signer.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.sendall(b"hello")
                secure.unwrap()


async def shake(port: int, hello: Hello) -> Attempt:
    """One handshake over a pipe."""
    pipe = await open_pipe(port)
    try:
        return await TlsTalk(pipe, hello).shake(Patience())
    finally:
        pipe.close()


@pytest.mark.slow
async def test_a_missing_certificate_is_told_from_a_wrong_one(folder: Path) -> None:
    """TLS 1.3: the request is seen, and the alert says what the server thinks of the answer."""
    wrong = Identity(str(folder / "stranger.pem"), str(folder / "stranger.pem"))
    with serving(folder, mutual=True) as port:
        none = await shake(port, Hello(NAME))
        foreign = await shake(port, Hello(NAME, identity=wrong))
    assert none.seen.done
    assert none.seen.authorities is not None
    assert none.seen.alert == 116
    assert none.seen.alpn == "h2"
    assert foreign.seen.alert == 48


async def test_tls_1_2_asks_in_the_middle_of_the_handshake(folder: Path) -> None:
    """OpenSSL then ends it by alert 40; the request and the certificate are seen all the same."""
    with serving(folder, mutual=True, most=ssl.TLSVersion.TLSv1_2) as port:
        seen = (await shake(port, Hello(NAME))).seen
    assert not seen.done
    assert seen.alert == 40
    assert seen.authorities is not None
    certificate = read_certificate(seen.chain[0])
    assert certificate is not None
    assert certificate.common_name == "konnectivity-server"


async def test_a_valid_certificate_is_let_in(folder: Path) -> None:
    """The greeting behind the handshake is what proves it, not the handshake."""
    own = Identity(str(folder / "agent.pem"), str(folder / "agent.pem"))
    with serving(folder, mutual=True) as port:
        attempt = await shake(port, Hello(NAME, identity=own))
    assert attempt.greeting == b"hello"
    assert attempt.seen.alert is None


async def test_the_chain_is_verified_against_the_ca_only_where_one_is_given(folder: Path) -> None:
    """OpenSSL's code says why; without a CA nothing is verified."""
    with serving(folder) as port:
        assert (await shake(port, Hello(NAME))).seen.distrust is None
        right = await shake(port, Hello(NAME, ca=str(folder / "signer.crt")))
        wrong = await shake(port, Hello(NAME, ca=str(folder / "stranger.crt")))
    assert (right.seen.done, right.seen.distrust) == (True, None)
    words = "unable to get local issuer certificate"
    assert (wrong.seen.done, wrong.seen.distrust) == (False, (20, words))


async def test_alpn_is_what_the_server_chose(folder: Path) -> None:
    """h2 is always offered; a server without it chooses nothing, or http/1.1 where offered."""
    with serving(folder, alpn="http/1.1") as port:
        assert (await shake(port, Hello(NAME))).seen.alpn is None
        both = await shake(port, Hello(NAME, alpn=("h2", "http/1.1")))
        assert both.seen.alpn == "http/1.1"


@pytest.mark.parametrize(("padding", "least", "most"), [(0, 500, 560), (1700, 1518, 2300)])
def test_the_hello_has_the_size_that_is_wanted(padding: int, least: int, most: int) -> None:
    """Small is one segment on every path; the agent's size is two. OpenSSL 3.5 changes neither."""
    hello = TlsClient(Hello(NAME, padding=padding)).start()
    assert least <= len(hello) <= most
    assert NAME.encode() in hello
    assert b"\x02h2" in hello


def test_no_name_is_sent_where_there_is_none() -> None:
    """As Go with an address."""
    assert NAME.encode() not in TlsClient(Hello(None)).start()


def test_an_answer_that_is_no_tls_is_kept_in_words() -> None:
    """A web server's 400 says more than OpenSSL's WRONG_VERSION_NUMBER."""
    client = TlsClient(Hello(NAME))
    client.start()
    assert client.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n") == b""
    assert client.seen.foreign == "HTTP/1.1 400 Bad Request\r\n\r\n"
    assert not client.seen.done


def test_an_echo_is_no_tls() -> None:
    """Its bytes look like a record of TLS; a server's first words are never a ClientHello."""
    for padding in (0, 1700):
        client = TlsClient(Hello(NAME, padding=padding))
        hello = client.start()
        assert client.feed(hello[:100] if padding else hello + hello) == b""
        assert client.seen.foreign == "our own ClientHello, sent back"
        assert not client.seen.done


def test_names_in_a_certificate_request_are_read() -> None:
    """Order and parts as they are sent; nonsense is said to be unreadable."""
    der = pki.name(OU="kubernetes", CN="konnectivity-signer").public_bytes()
    assert read_name(der) == SIGNER
    assert read_name(der[:-3]) == "(unreadable)"
    assert read_name(b"") == "(empty)"


@pytest.mark.parametrize(
    ("host", "valid"),
    [
        (NAME, True),
        (NAME.upper(), True),
        ("other.example.com", False),
        ("10.0.0.1", True),
        ("10.0.0.2", False),
        ("a.wild.example.com", True),
        ("a.b.wild.example.com", False),
        ("wild.example.com", False),
    ],
)
def test_names_are_compared_as_go_does(host: str, valid: bool) -> None:
    """A star is one label; addresses are compared as addresses."""
    assert names_host((NAME, "10.0.0.1", "*.wild.example.com"), host) is valid


def test_an_encrypted_key_is_refused_instead_of_asked_for(folder: Path) -> None:
    """OpenSSL would ask on the terminal in the middle of a run."""
    key = serialization.load_pem_private_key((folder / "agent.pem").read_bytes(), None)
    encrypted = folder / "encrypted.pem"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"word"),
        )
    )
    with pytest.raises(RequestError, match="encrypted"):
        check_files(None, Identity(str(folder / "agent.pem"), str(encrypted)))
