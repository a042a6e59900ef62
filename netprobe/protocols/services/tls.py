"""TLS from the client's side over bytes in memory, with everything that the server showed.

``ssl`` does the cryptography. What Python hides (the certificate request, alerts, the chain of a
handshake that failed) is read from OpenSSL's message callback, which hands over every message after
decryption. That callback is private to Python's tests but has had this form since 3.8.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec import Struct

from netprobe.errors import FileErrors, RequestError
from netprobe.files import memory_file, read_file
from netprobe.protocols.services.tls_certificates import Certificate, read_certificate, read_name
from netprobe.protocols.services.tls_end import TlsEnd, TlsState

ALERT = 21
HANDSHAKE = 22
CERTIFICATE = 11
CERTIFICATE_REQUEST = 13
AUTHORITIES = b"\x00\x2f"  # extension certificate_authorities, RFC 8446 section 4.2.4
RECORD_TYPES = frozenset((20, 21, 22, 23))
TLS1_3 = 0x0304

# One curve that every server has, FIPS ones included. Newer OpenSSL adds a post-quantum key of
# 1,184 bytes otherwise, and there would be no small hello.
SMALL_CURVE = "prime256v1"
# Unknown ALPN ids, which make the hello as large as that of the real agent.
FILLER_BYTES = 240
SHOWN_BYTES = 60
# Where a record that begins a handshake has the type of its message.
MESSAGE_TYPE_AT = 5
ECHO = "our own ClientHello, sent back"
# A server that misses a client certificate says so: certificate_required (TLS 1.3),
# bad_certificate (Go, TLS 1.2), handshake_failure (OpenSSL, TLS 1.2).
MISSING_CERTIFICATE = frozenset((116, 42, 40))


class Identity(Struct, frozen=True):
    """The files of a client certificate; the key never leaves ``ssl``."""

    certificate: str
    key: str


class Hello(Struct, frozen=True):
    """The offer of a handshake. ``server_name`` None: no SNI, as Go does for an IP address.

    ``padding`` is how many bytes of unknown ALPN ids follow the real ones. ``ca`` is a file that
    the chain is verified against (not the name: that is compared apart); None verifies nothing.
    """

    server_name: str | None
    alpn: tuple[str, ...] = ("h2",)
    padding: int = 0
    identity: Identity | None = None
    ca: str | None = None


class Distrust(NamedTuple):
    """Why a chain does not verify, as OpenSSL says it."""

    code: int
    words: str


class SeenHandshake(TlsState):
    """The server's side of the handshake so far. ``chain`` holds DER certificates, the leaf first.

    ``authorities`` are the names in its request for a client certificate, None where it made none.
    ``alert`` is the number of the alert that it sent; ``distrust`` OpenSSL's code and words where
    the chain does not lead to ``Hello.ca``. ``foreign`` is the beginning of an answer that is not
    TLS, or ``ECHO``.
    """

    hello_bytes: int = 0
    version: str | None = None
    alpn: str | None = None
    chain: tuple[bytes, ...] = ()
    authorities: tuple[str, ...] | None = None
    alert: int | None = None
    distrust: Distrust | None = None
    foreign: str | None = None

    @property
    def certificate(self) -> Certificate | None:
        """The server's own certificate."""
        return read_certificate(self.chain[0]) if self.chain else None

    @property
    def refuses_strangers(self) -> bool:
        """Whether the server asked for a certificate and complained that it got none."""
        return self.authorities is not None and self.alert in MISSING_CERTIFICATE


class TlsClient(TlsEnd):
    """The client's end of one TLS connection."""

    def __init__(self, hello: Hello) -> None:
        self.seen = SeenHandshake()
        super().__init__(self.seen)
        self._first = True
        self._hello = b""
        # The context keeps the callback, and the object keeps its context: no name is lost.
        self._object = _make_context(hello, self._note_message).wrap_bio(
            self._incoming, self._outgoing, server_hostname=hello.server_name
        )

    def start(self) -> bytes:
        """Give the ClientHello."""
        self._continue_handshake()
        self._hello = self._outgoing.read()
        self.seen.hello_bytes = len(self._hello)
        return self._hello

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the server, unless its first ones are no TLS."""
        if self._first:
            self._first = False
            if data[0] not in RECORD_TYPES or (len(data) > 1 and data[1] != 3):
                self.seen.foreign = data[:SHOWN_BYTES].decode("latin-1")
                return b""
            # As far as its type, a client's message is like a server's.
            if len(data) > MESSAGE_TYPE_AT and self._hello.startswith(data[: len(self._hello)]):
                self.seen.foreign = ECHO
                return b""
        return super().feed(data) if self.seen.foreign is None else b""

    def _continue_handshake(self) -> None:
        super()._continue_handshake()
        if self.seen.done:
            self.seen.version = self._object.version()
            self.seen.alpn = self._object.selected_alpn_protocol()

    def _note_failure(self, error: ssl.SSLError) -> None:
        super()._note_failure(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            self.seen.distrust = Distrust(error.verify_code, error.verify_message)

    def _note_message(
        self, _tls: Any, direction: str, version: int, content: int, kind: int, data: bytes
    ) -> None:
        if direction != "read":
            return
        if content == ALERT and len(data) == 2:
            # close_notify is the end, not a complaint.
            self.seen.alert = data[1] or self.seen.alert
        elif content == HANDSHAKE and kind == CERTIFICATE:
            self.seen.chain = _read_certificates(data[4:], int(version) >= TLS1_3)
        elif content == HANDSHAKE and kind == CERTIFICATE_REQUEST:
            self.seen.authorities = _read_authorities(data[4:], int(version) >= TLS1_3)


def _make_context(hello: Hello, callback: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ecdh_curve(SMALL_CURVE)
    context.set_alpn_protocols([*hello.alpn, *_make_fillers(hello.padding)])
    if hello.ca is not None:
        with _path_of(hello.ca) as ca:
            context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
        # As Go: whatever is in the pool is trusted, a root or not.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if hello.identity is not None:
        _load_identity(context, hello.identity)
    context._msg_callback = callback  # type: ignore[attr-defined]  # see the module's docstring
    return context


def _refuse_password() -> str:
    """Refuse, because OpenSSL would ask on the terminal, in the middle of a run."""
    raise RequestError("--client-key: the key is encrypted; give one without a password")


def check_files(ca: str | None, identity: Identity | None) -> None:
    """Read the files once before anything is sent. Raises RequestError with the file's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca is not None:
            with _path_of(ca) as copy:
                context.load_verify_locations(copy)
    except ssl.SSLError:
        raise RequestError(f"--ca {ca}: no certificate in PEM") from None
    except FileErrors as error:
        raise RequestError(f"--ca {error}") from None
    if identity is None:
        return
    files = f"--client-cert {identity.certificate} --client-key {identity.key}"
    try:
        _load_identity(context, identity)
    except ssl.SSLError:
        raise RequestError(f"{files}: no certificate and matching key in PEM") from None
    except FileErrors as error:
        raise RequestError(f"{files}: {error}") from None


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    with _path_of(identity.certificate) as certificate, _path_of(identity.key) as key:
        context.load_cert_chain(certificate, key, _refuse_password)


@contextmanager
def _path_of(path: str) -> Iterator[str]:
    """Give OpenSSL a copy in memory: it would read a device without end, and a pipe only once."""
    with memory_file(read_file(path, "a file in PEM")) as handle:
        yield f"/dev/fd/{handle}"


def _make_fillers(padding: int) -> list[str]:
    fillers: list[str] = []
    while padding > 0:
        length = min(FILLER_BYTES, max(8, padding - 1))
        fillers.append(f"np{len(fillers):03d}-".ljust(length, "x"))
        padding -= length + 1
    return fillers


def _read_certificates(body: bytes, tls13: bool) -> tuple[bytes, ...]:
    """Read a Certificate message; cut-off ones give what is whole."""
    if tls13:
        _context, body = _split_vector(body, 1)
    rest = body[3:]
    found = []
    while len(rest) >= 3:
        certificate, rest = _split_vector(rest, 3)
        found.append(certificate)
        if tls13:
            _extensions, rest = _split_vector(rest, 2)
    return tuple(found)


def _read_authorities(body: bytes, tls13: bool) -> tuple[str, ...]:
    """Read the authorities' names in a CertificateRequest; a server may name none."""
    _context_or_kinds, rest = _split_vector(body, 1)
    if tls13:
        block = _find_authorities(rest[2:])
    else:
        _algorithms, block = _split_vector(rest, 2)
    names = []
    rest = block[2:]
    while len(rest) >= 2:
        name, rest = _split_vector(rest, 2)
        names.append(read_name(name))
    return tuple(names)


def _find_authorities(extensions: bytes) -> bytes:
    while len(extensions) >= 4:
        kind = extensions[:2]
        content, extensions = _split_vector(extensions[2:], 2)
        if kind == AUTHORITIES:
            return content
    return b""


def _split_vector(data: bytes, size: int) -> tuple[bytes, bytes]:
    """Split off a vector whose length stands in ``size`` bytes before it; give it and the rest."""
    end = size + int.from_bytes(data[:size], "big")
    return data[size:end], data[end:]
