"""TLS from the server's side over bytes in memory."""

from __future__ import annotations

import ssl
from contextlib import suppress

from netprobe.files import memory_file
from netprobe.protocols.services.tls_end import TlsEnd, TlsState


def make_server_context(certificate: bytes, key: bytes, alpn: tuple[str, ...]) -> ssl.SSLContext:
    """Make the context of a server from PEM; the key is never in a file of a disk."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([*alpn])
    with memory_file(certificate + key) as handle:
        context.load_cert_chain(f"/dev/fd/{handle}")
    return context


class TlsServer(TlsEnd):
    """The server's end of one TLS connection."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.seen = TlsState()
        super().__init__(self.seen)
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def end(self) -> bytes:
        """Give the alert that says that nothing more comes."""
        with suppress(ssl.SSLError):
            self._object.unwrap()
        return self._outgoing.read()
