"""TLS as a pipe for a protocol inside it: an ``https://`` proxy, and TLS through its tunnel."""

from __future__ import annotations

from dataclasses import replace

from netprobe.model.stream import Event, Pipe
from netprobe.protocols.tls import Hello
from netprobe.protocols.tls_talk import BRIEF, TlsTalk

NO_GREETING_S = 0.05


class TlsPipe:
    """A finished handshake, seen as a stream of bytes; use ``shaken``."""

    def __init__(self, talk: TlsTalk) -> None:
        self._talk = talk

    @classmethod
    async def shaken(cls, pipe: Pipe, hello: Hello) -> TlsPipe | None:
        """Shake hands; None where the other end does not."""
        talk = TlsTalk(pipe, hello, NO_GREETING_S)
        await talk.shake(BRIEF)
        return cls(talk) if talk.usable else None

    async def send(self, data: bytes) -> None:
        """Send bytes inside."""
        await self._talk.send(data)

    async def receive(self, limit_s: float) -> Event:
        """Receive decrypted data; records without data (session tickets) are passed over."""
        while True:
            data, event = await self._talk.receive(limit_s)
            if event.kind != "data" or data:
                return replace(event, data=data)
            if not self._talk.usable:
                return replace(event, kind="fin", data=b"")
