"""HTTP/1.1 in its two uses here: CONNECT through a proxy, as grpc-go does it, and one plain GET."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from netprobe.errors import RequestError
from netprobe.model.stream import Event, Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.tls_talk import TlsTalk

ANSWER_S = 20.0
SHOWN_BODY = 200
HEADER_LIMIT = 200
BODY_LIMIT = 16 * 1024
PORTS = {"http": 80, "https": 443}


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
    """An HTTP/1 answer. ``status`` None: none came, and ``ended`` says how it stood then.

    ``schemes`` are the kinds of authentication that a proxy offers; ``foreign`` is the beginning of
    an answer that is no HTTP.
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
    headers = [("Host", authority), ("User-Agent", "netprobe"), *_authorization(proxy)]
    return await _exchange("CONNECT", authority, headers, pipe.send, _raw(pipe))


async def get(tls: TlsTalk, host: str, path: str = "/") -> Answer:
    """GET a path over TLS."""
    return await _exchange("GET", path, _get_headers(host), tls.send, tls.receive)


async def get_plain(
    pipe: Pipe, host: str, path: str = "/", proxy: ProxyUrl | None = None
) -> Answer:
    """GET a path, or of a proxy a whole URL, without TLS."""
    headers = _get_headers(host) + ([] if proxy is None else _authorization(proxy))
    return await _exchange("GET", path, headers, pipe.send, _raw(pipe))


def _authorization(proxy: ProxyUrl) -> list[tuple[str, str]]:
    if proxy.credentials is None:
        return []
    token = base64.b64encode(proxy.credentials.encode("utf-8")).decode("ascii")
    return [("Proxy-Authorization", f"Basic {token}")]


def _get_headers(host: str) -> list[tuple[str, str]]:
    headers = [("Host", host), ("User-Agent", "netprobe"), ("Accept", "*/*")]
    return [*headers, ("Connection", "close")]


Receive = Callable[[float], Awaitable[tuple[bytes, Event]]]


def _raw(pipe: Pipe) -> Receive:
    async def receive(limit_s: float) -> tuple[bytes, Event]:
        event = await pipe.receive(limit_s)
        return event.data, event

    return receive


async def _exchange(
    method: str,
    target: str,
    headers: list[tuple[str, str]],
    send: Callable[[bytes], Awaitable[None]],
    receive: Receive,
) -> Answer:
    import h11

    http = h11.Connection(h11.CLIENT)
    request = http.send(h11.Request(method=method, target=target, headers=headers))
    await send((request or b"") + (http.send(h11.EndOfMessage()) or b""))
    answer = Answer()
    reader = _AnswerReader(http, answer)
    while not reader.done:
        data, event = await receive(ANSWER_S)
        if data and answer.first_ms is None:
            answer.first_ms = event.since_sent_ms
        if data:
            reader.feed(data)
        if event.kind != "data":
            answer.ended = event.kind
            break
    return answer


class _AnswerReader:
    """Takes bytes and fills an answer until it is complete."""

    def __init__(self, http: object, answer: Answer) -> None:
        import h11

        assert isinstance(http, h11.Connection)
        self.done = False
        self._http = http
        self._answer = answer
        self._body = b""

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        import h11

        self._http.receive_data(data)
        try:
            self._events()
        except h11.RemoteProtocolError:
            self._answer.foreign = printable(data[:60].decode("latin-1"))
            self.done = True
        self._answer.body = printable(" ".join(self._body.decode("latin-1").split()), SHOWN_BODY)

    def _events(self) -> None:
        import h11

        while not self.done:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Response):
                self._response(event.status_code, event.reason, event.headers)
            elif isinstance(event, h11.Data):
                self._body = (self._body + event.data)[:BODY_LIMIT]
            else:
                # The end of the message, or PAUSED: the pipe is a tunnel now.
                self.done = True

    def _response(self, status: int, reason: bytes, headers: object) -> None:
        answer = self._answer
        answer.status = status
        answer.reason = printable(bytes(reason).decode("latin-1"))
        pairs = [(bytes(name), bytes(value)) for name, value in headers]  # type: ignore[attr-defined]  # h11.Headers iterates so
        answer.schemes = tuple(
            printable(value.split(b" ")[0].decode("latin-1"), 20)
            for name, value in pairs
            if name == b"proxy-authenticate"
        )
        answer.headers = {
            name.decode("latin-1"): printable(value.decode("latin-1"), HEADER_LIMIT)
            for name, value in pairs
        }
        answer.server = printable(answer.headers.get("server", ""))
