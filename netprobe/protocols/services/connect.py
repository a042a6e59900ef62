"""The two uses of HTTP besides a service's own: CONNECT through a proxy, and one GET over TLS."""

from __future__ import annotations

from netprobe.model.konnectivity import Pipe
from netprobe.protocols.base import format_place
from netprobe.protocols.services.http_exchange import (
    EASY,
    HttpAnswer,
    HttpRequest,
    ReadLimits,
    exchange_http,
)
from netprobe.protocols.services.proxy_url import ProxyUrl
from netprobe.protocols.services.tls_talk import TlsPipe, TlsTalk


async def connect(
    pipe: Pipe, host: str, port: int, proxy: ProxyUrl, limits: ReadLimits = EASY
) -> HttpAnswer:
    """Ask a proxy for a tunnel to host:port, as grpc-go does; with a 2xx the pipe is that tunnel.

    httpx could ask by itself, but of a refusal it would keep the status alone.
    """
    authority = format_place(host, port)
    request = HttpRequest(authority, authority, "CONNECT", proxy=proxy)
    return await exchange_http(pipe, request, limits)


async def get(
    tls: TlsTalk,
    host: str,
    path: str = "/",
    limits: ReadLimits = EASY,
    answer: HttpAnswer | None = None,
) -> HttpAnswer:
    """GET a path over TLS, in the HTTP that the handshake agreed on."""
    request = HttpRequest(host, path, tls=True, http2=tls.attempt.seen.alpn == "h2")
    return await exchange_http(TlsPipe(tls), request, limits, answer)
