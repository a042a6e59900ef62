"""HTTP/1.1 in its two uses here: CONNECT through a proxy, as grpc-go does it, and one plain GET."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from netprobe.errors import RequestError
from netprobe.model.stream import Event, Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.tls_talk import TlsTalk

if TYPE_CHECKING:
    import h11

ANSWER_S = 20.0
SHOWN_BODY = 200
HEADER_LIMIT = 200
BODY_LIMIT = 16 * 1024
PORTS = {"http": 80, "https": 443}
_GET = (("User-Agent", "netprobe"), ("Accept", "*/*"), ("Connection", "close"))

Send = Callable[[bytes], Awaitable[None]]
Receive = Callable[[float], Awaitable[tuple[bytes, Event]]]


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """A proxy. ``credentials`` are ``user:password`` or None; they never reach a text or a repr."""

    scheme: str
    host: str
    port: int
    credentials: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        hidden = "***@" if self.credentials is not None else ""
        return f"{self.scheme}://{hidden}{host}:{self.port}"


@dataclass(slots=True)
class Answer:
    """An HTTP/1 answer. ``status`` None: none came, and ``ended`` says how the stream ended.

    ``schemes`` are the kinds of authentication that a proxy offers; ``foreign`` is the beginning of
    an answer that is not HTTP.
    """

    status: int | None = None
    reason: str = ""
    server: str = ""
    schemes: tuple[str, ...] = ()
    body: str = ""
    ended: str | None = None
    foreign: str | None = None
    first_ms: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_proxy(text: str, what: str) -> ProxyUrl:
    """Read a proxy URL as Go does: without a scheme it is http. Raises RequestError, which never
    repeats the text: it may hold a password."""
    words = f"{what}: expected a URL such as http://proxy.example.com:3128"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        raise RequestError(words) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise RequestError(words)
    credentials = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return ProxyUrl(parts.scheme, parts.hostname, port, credentials)


async def connect(pipe: Pipe, host: str, port: int, proxy: ProxyUrl) -> Answer:
    """Ask a proxy for a tunnel to host:port; with a 2xx the pipe is that tunnel."""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    headers = [("Host", authority), ("User-Agent", "netprobe"), *_make_authorization(proxy)]
    return await _exchange_http("CONNECT", authority, headers, pipe.send, _make_receiver(pipe))


async def get(tls: TlsTalk, host: str, path: str = "/") -> Answer:
    """GET a path over TLS."""
    return await _exchange_http("GET", path, [("Host", host), *_GET], tls.send, tls.receive)


async def get_plain(
    pipe: Pipe, host: str, path: str = "/", proxy: ProxyUrl | None = None
) -> Answer:
    """GET a path, or of a proxy a whole URL, without TLS."""
    headers = [("Host", host), *_GET, *_make_authorization(proxy)]
    return await _exchange_http("GET", path, headers, pipe.send, _make_receiver(pipe))


def _make_authorization(proxy: ProxyUrl | None) -> list[tuple[str, str]]:
    if proxy is None or proxy.credentials is None:
        return []
    token = base64.b64encode(proxy.credentials.encode("utf-8")).decode("ascii")
    return [("Proxy-Authorization", f"Basic {token}")]


def _make_receiver(pipe: Pipe) -> Receive:
    async def receive(limit_s: float) -> tuple[bytes, Event]:
        event = await pipe.receive(limit_s)
        return event.data, event

    return receive


async def _exchange_http(
    method: str, target: str, headers: list[tuple[str, str]], send: Send, receive: Receive
) -> Answer:
    import h11

    http = h11.Connection(h11.CLIENT)
    request = http.send(h11.Request(method=method, target=target, headers=headers))
    await send((request or b"") + (http.send(h11.EndOfMessage()) or b""))
    answer = Answer()
    body = b""
    complete = False
    while not complete and answer.ended is None:
        data, event = await receive(ANSWER_S)
        if data:
            if answer.first_ms is None:
                answer.first_ms = event.since_sent_ms
            more, complete = _read_answer(http, data, answer)
            body = (body + more)[:BODY_LIMIT]
        if event.kind != "data":
            answer.ended = event.kind
    answer.body = printable(" ".join(body.decode("latin-1").split()), SHOWN_BODY)
    return answer


def _read_answer(http: h11.Connection, data: bytes, answer: Answer) -> tuple[bytes, bool]:
    """Take more bytes; give those of the body, and whether the answer is complete."""
    import h11

    body = b""
    http.receive_data(data)
    try:
        while (event := http.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                _note_response(event, answer)
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                # The end of the message, or PAUSED: the pipe is a tunnel now.
                return body, True
    except h11.RemoteProtocolError:
        answer.foreign = printable(data[:60].decode("latin-1"))
        return body, True
    return body, False


def _note_response(response: h11.Response, answer: Answer) -> None:
    answer.status = response.status_code
    answer.reason = printable(response.reason.decode("latin-1"))
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    answer.headers = {name: printable(value, HEADER_LIMIT) for name, value in pairs}
    answer.schemes = tuple(
        printable(value.split(" ")[0], 20) for name, value in pairs if name == "proxy-authenticate"
    )
    answer.server = printable(answer.headers.get("server", ""))
