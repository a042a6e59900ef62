"""One end of a TLS connection over bytes in memory: what a client and a server have in common."""

from __future__ import annotations

import ssl

from msgspec import Struct

_READ_BYTES = 65536


class TlsState(Struct):
    """What became of a handshake so far. ``done``: application data may follow. ``closed``: the
    connection has ended. ``failure``: OpenSSL's word for why."""

    done: bool = False
    closed: bool = False
    failure: str | None = None


class TlsEnd:
    """Feed it bytes that came, and send the bytes that it gives. Subclasses make the object."""

    def __init__(self, seen: TlsState) -> None:
        self._state = seen
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object: ssl.SSLObject

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the other end and give what must be sent now. Never raises."""
        self._incoming.write(data)
        if not self._state.done and not self._state.closed:
            self._continue_handshake()
        return self._outgoing.read()

    def read(self) -> bytes:
        """Give application data that has been decrypted, as far as there is any."""
        parts = []
        while self._state.done and not self._state.closed:
            try:
                part = self._object.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError as error:
                self._note_failure(error)
                break
            self._state.closed = not part
            parts.append(part)
        return b"".join(parts)

    def write(self, data: bytes) -> bytes:
        """Encrypt application data; gives what must be sent."""
        self._object.write(data)
        return self._outgoing.read()

    def _continue_handshake(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self._note_failure(error)
            return
        self._state.done = True

    def _note_failure(self, error: ssl.SSLError) -> None:
        self._state.closed = True
        self._state.failure = error.reason or type(error).__name__
