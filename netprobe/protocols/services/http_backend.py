"""httpx over connections that an agent opened: a network backend of httpcore, and a transport.

Imported late, by ``http_exchange`` alone: httpx takes longer to import than most runs need for all
of their HTTP. Whoever made the pipe has connected it, and has shaken hands where TLS is spoken: the
facts of a handshake are read below HTTP (docs/decisions/0013-httpx.md).
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore
import httpx

from netprobe.model.konnectivity import Pipe

# What is kept to tell what else speaks there: long credentials in it are to be found whole.
BEGIN_BYTES = 16 * 1024
# The head of a frame of HTTP/2.
FRAME_BYTES = 9
# Head and body have limits of their own; answers 100 and frames without end have only this one.
MOST_BYTES = 512 * 1024


def begins_http2(data: bytes) -> bool:
    """Tell whether bytes begin as a server of HTTP/2 begins: with SETTINGS of stream 0."""
    return len(data) >= FRAME_BYTES and data[3] == 4 and data[4] <= 1 and not any(data[5:9])


class PipeStream(httpcore.AsyncNetworkStream):
    """A pipe as httpcore reads it; ``http2`` is what it speaks, ``limit_s`` how long it may wait.

    ``ended`` is the event that ended the reading, ``begin`` the first bytes that came, ``received``
    how many came in all.
    """

    def __init__(self, pipe: Pipe, limit_s: float, http2: bool) -> None:
        self.http2 = http2
        self.ended: str | None = None
        self.begin = b""
        self.received = 0
        self._pipe = pipe
        self._limit_s = limit_s
        self._rest = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what came, at most so much; nothing at the end. Raises httpcore's ReadError."""
        if not self._rest and self.ended is None:
            await self._receive_more()
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        if not data and self.ended == "timeout":
            raise httpcore.ReadTimeout(self.ended)
        if not data and self.ended != "fin":
            raise httpcore.ReadError(self.ended)
        return data

    async def _receive_more(self) -> None:
        if self.received > MOST_BYTES:
            raise httpcore.RemoteProtocolError("more than any answer needs")
        event = await self._pipe.receive(self._limit_s)
        if event.kind != "data":
            self.ended = event.kind
        self._rest = event.data
        self.received += len(event.data)
        self.begin = (self.begin + event.data)[:BEGIN_BYTES]
        if self.http2 and len(self.begin) >= FRAME_BYTES and not begins_http2(self.begin):
            # Read as a frame, words announce megabytes, and httpcore would wait for them.
            raise httpcore.RemoteProtocolError("no answer of HTTP/2")

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        if buffer:
            await self._pipe.send(buffer)

    async def aclose(self) -> None:
        """Leave the pipe open: who opened it closes it, and behind a CONNECT it is a tunnel."""

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Give the same stream: hands were shaken before, by those who read the handshake."""
        return self

    def get_extra_info(self, info: str) -> Any:
        """Give httpcore the one thing that it asks for: what ALPN chose."""
        return _Chosen(self.http2) if info == "ssl_object" else None


class _Chosen:
    """The outcome of ALPN, as httpcore asks for it."""

    def __init__(self, http2: bool) -> None:
        self._http2 = http2

    def selected_alpn_protocol(self) -> str:
        """Give the protocol of the connection."""
        return "h2" if self._http2 else "http/1.1"


class AgentBackend(httpcore.AsyncNetworkBackend):
    """Gives httpcore the one connection that there is: one attempt is one attempt."""

    def __init__(self, stream: PipeStream) -> None:
        self._streams = [stream]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Give the connection that the agent opened. Raises ConnectError the second time."""
        if not self._streams:
            raise httpcore.ConnectError("one connection was opened, and it is used")
        return self._streams.pop()


class AgentTransport(httpx.AsyncBaseTransport):
    """Carries requests of httpx over an agent's connection, to a proxy where there is one."""

    def __init__(self, stream: PipeStream, proxy: httpcore.Proxy | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            # It is never used, and httpcore would read all authorities of this machine.
            ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            proxy=proxy,
            max_connections=1,
            http2=True,
            network_backend=AgentBackend(stream),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; errors are httpcore's own."""
        url = request.url
        found = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            found.status, headers=found.headers, stream=_Body(found), extensions=found.extensions
        )

    async def aclose(self) -> None:
        """Forget the connection."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    """The bytes of an answer as they come."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.aiter_stream():
            yield part

    async def aclose(self) -> None:
        """End the reading."""
        await self._response.aclose()
