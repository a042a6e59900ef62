"""TLS from the server's side over bytes in memory."""

from __future__ import annotations

import ssl
from contextlib import suppress

from netprobe.files import memory_file


def make_server_context(certificate: bytes, key: bytes, alpn: tuple[str, ...]) -> ssl.SSLContext:
    """Make the context of a server from PEM; the key is never in a file of a disk."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([*alpn])
    with memory_file(certificate + key) as handle:
        context.load_cert_chain(f"/dev/fd/{handle}")
    return context


class TlsServer:
    """One TLS connection without a socket: feed it received bytes, send the bytes it gives.

    ``failure``: OpenSSL's word for why the handshake or the connection ended.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self.done = False
        self.closed = False
        self.failure: str | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the client and give what must be sent now. Never raises."""
        self._incoming.write(data)
        if not self.done and not self.closed:
            self._continue_handshake()
        return self._outgoing.read()

    def read(self) -> bytes:
        """Give application data that has been decrypted, as far as there is any."""
        parts = []
        while self.done and not self.closed:
            try:
                part = self._object.read(65536)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError as error:
                self._note_failure(error)
                break
            self.closed = not part
            parts.append(part)
        return b"".join(parts)

    def write(self, data: bytes) -> bytes:
        """Encrypt application data; gives what must be sent."""
        self._object.write(data)
        return self._outgoing.read()

    def end(self) -> bytes:
        """Give the alert that says that nothing more comes."""
        with suppress(ssl.SSLError):
            self._object.unwrap()
        return self._outgoing.read()

    def _continue_handshake(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self._note_failure(error)
            return
        self.done = True

    def _note_failure(self, error: ssl.SSLError) -> None:
        self.closed = True
        self.failure = error.reason or type(error).__name__
