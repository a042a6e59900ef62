"""One HTTP request over a pipe, through httpx: the one way in which netprobe speaks HTTP.

An answer is read for a bounded time and to a bounded size, redirects are not followed, and what is
wrong with an answer is a fact of it, never an exception.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from netprobe.model.konnectivity import Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.services.proxy_url import ProxyUrl

if TYPE_CHECKING:
    import httpx

    from netprobe.protocols.services.http_backend import PipeStream

ANSWER_S = 20.0
BODY_LIMIT = 64 * 1024
HEADER_LIMIT = 200
SHOWN_BEGIN = 60
# Where a request goes is decided by the pipe: no URL is ever resolved.
NOWHERE = {scheme: f"{scheme}://netprobe.invalid" for scheme in ("http", "https")}
_BACKEND = "netprobe.protocols.services.http_backend"
_CODINGS = ("gzip", "x-gzip", "deflate")
# No coding, and nothing after this answer. A proxy gets none of them with CONNECT, as of grpc-go.
_GET = (("Accept", "*/*"), ("Accept-Encoding", "identity"), ("Connection", "close"))


class ReadLimits(Struct, frozen=True):
    """How long an answer is read, in seconds: ``silence_s`` while nothing comes, by the clock of
    who holds the connection, and ``whole_s`` in all, by ours.

    Our own work counts in the whole, and a busy machine takes seconds for it.
    """

    silence_s: float = ANSWER_S
    whole_s: float = ANSWER_S


EASY = ReadLimits()


class HttpRequest(Struct, frozen=True):
    """One request: the Host header, and what stands in the request line.

    ``proxy``: the other end is this proxy, which gets its credentials; for a GET ``target`` is a
    whole URL then. ``tls`` and ``http2`` are what the connection speaks already.
    """

    host: str
    target: str = "/"
    method: Literal["GET", "CONNECT"] = "GET"
    tls: bool = False
    http2: bool = False
    proxy: ProxyUrl | None = None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers but the proxy's own."""
        more = _GET if self.method == "GET" else ()
        return [("Host", self.host), ("User-Agent", "netprobe"), *more]

    def hide(self, text: str) -> str:
        """Strike from an answer what its proxy was told in secret."""
        return text if self.proxy is None else self.proxy.hide(text)


class HttpAnswer(Struct):
    """An HTTP answer. ``status`` None: none came, and ``ended`` says how the stream ended.

    ``schemes`` are the kinds of authentication that a proxy offers; ``foreign`` is the beginning of
    an answer that is not HTTP as it was asked for. ``headers`` are cut, and the last of a name;
    ``fields`` are all, whole and as they came. ``text`` is the body as it came, of which ``body``
    is one printable line; ``is_cut``: it is longer than what is read of it. ``flaw`` says what is
    wrong with the answer as such, such as that it does not end in time.
    """

    status: int | None = None
    reason: str = ""
    server: str = ""
    schemes: tuple[str, ...] = ()
    body: str = ""
    ended: str | None = None
    foreign: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    http2: bool = False
    text: str = ""
    is_cut: bool = False
    flaw: str = ""

    def words(self) -> str:
        """Word its head: ``HTTP 407 Proxy Authentication Required, says squid, asks for Basic``."""
        server = f", says {self.server}" if self.server else ""
        schemes = f", asks for {', '.join(self.schemes)}" if self.schemes else ""
        return f"HTTP {self.status} {self.reason}{server}{schemes}"


async def load_http() -> None:
    """Import httpx, which takes many seconds on a busy machine. Call this before you open a
    connection: its other end does not wait so long.

    A thread imports it: agents hear no beats while the loop imports, and end after 30 s without
    one. At the first request httpcore imports a few modules more, a sixth of it.
    """
    await asyncio.to_thread(importlib.import_module, _BACKEND)


async def exchange_http(
    pipe: Pipe, request: HttpRequest, limits: ReadLimits = EASY, answer: HttpAnswer | None = None
) -> HttpAnswer:
    """Ask, and give what came within the limits; ``answer`` is filled as it comes.

    The caller has called ``load_http`` before it opened the pipe.
    """
    from netprobe.protocols.services.http_backend import PipeStream

    answer = HttpAnswer() if answer is None else answer
    stream = PipeStream(pipe, limits.silence_s, request.http2)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.whole_s):
            await _send_request(stream, request, answer, body)
    except TimeoutError:
        stream.ended = "timeout"
    finally:
        # A limit of the caller's ends this too: what came until then is kept.
        answer.ended = answer.ended or stream.ended
        _note_body(answer, bytes(body), request)
        _note_begin(answer, stream, request)
    return answer


async def _send_request(
    stream: PipeStream, request: HttpRequest, answer: HttpAnswer, body: bytearray
) -> None:
    """Send the request and read its answer; what goes wrong becomes a fact of the answer."""
    import httpcore
    import httpx
    from h2.exceptions import H2Error

    async def note_head(response: httpx.Response) -> None:
        _note_head(response, answer, request)

    try:
        async with httpx.AsyncClient(
            transport=_make_transport(stream, request.proxy),
            trust_env=False,
            follow_redirects=False,
            event_hooks={"response": [note_head]},
        ) as client:
            response = await client.send(_make_request(request), stream=True)
            async with contextlib.aclosing(response):
                await _read_body(response, answer, body)
    except httpcore.TimeoutException:
        answer.ended = "timeout"
    except httpcore.NetworkError:
        answer.ended = stream.ended or "fin"
    except (httpcore.ProtocolError, httpcore.ConnectionNotAvailable, H2Error, ValueError):
        # A ValueError is httpcore's word for a status of HTTP/2 that is no number.
        _note_foreign(answer, stream, request)
    except httpx.RemoteProtocolError:
        answer.flaw = "it redirects to what is no URL"


def _make_transport(stream: PipeStream, proxy: ProxyUrl | None) -> httpx.AsyncBaseTransport:
    import httpcore

    from netprobe.protocols.services.http_backend import AgentTransport

    if proxy is None:
        return AgentTransport(stream, None)
    return AgentTransport(stream, httpcore.Proxy(NOWHERE["http"], headers=_proxy_headers(proxy)))


def _make_request(request: HttpRequest) -> httpx.Request:
    """Make httpx's request: header and target are the caller's, as the connection is."""
    import httpx

    return httpx.Request(
        request.method,
        NOWHERE["https" if request.tls else "http"],
        headers=request.headers,
        extensions={"target": request.target.encode("ascii")},
    )


async def _read_body(response: httpx.Response, answer: HttpAnswer, body: bytearray) -> None:
    """Read the bytes of the body; what is left when enough came is not read at all."""
    answer.flaw = "its body does not end"
    async for part in response.aiter_raw():
        body += part
        if len(body) >= BODY_LIMIT:
            answer.is_cut = True
            break
    answer.flaw = ""


def _note_head(response: httpx.Response, answer: HttpAnswer, request: HttpRequest) -> None:
    answer.status = response.status_code
    # httpx drops what is no ASCII, and credentials would not be known any more.
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    answer.reason = printable(request.hide(reason or response.reason_phrase))
    answer.http2 = response.http_version == "HTTP/2"
    pairs = [
        (name.decode("latin-1").lower(), request.hide(value.decode("latin-1")))
        for name, value in response.headers.raw
    ]
    answer.headers = {name: printable(value, HEADER_LIMIT) for name, value in pairs}
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    answer.fields = {name: tuple(values) for name, values in fields.items()}
    answer.schemes = tuple(
        printable(value.split(" ")[0], 20) for name, value in pairs if name == "proxy-authenticate"
    )
    answer.server = printable(answer.headers.get("server", ""))


def _note_body(answer: HttpAnswer, data: bytes, request: HttpRequest) -> None:
    """Note the body: of what is packed so much as is read, however long it would grow."""
    coding = answer.headers.get("content-encoding", "identity").lower()
    if coding in _CODINGS:
        data = _unpack_body(data)
        answer.is_cut = answer.is_cut or len(data) >= BODY_LIMIT
    elif coding != "identity":
        answer.flaw = f"its body is packed ({coding}), which nobody asked for"
    answer.text = request.hide(data[:BODY_LIMIT].decode("utf-8", "replace"))
    answer.body = printable(" ".join(answer.text.split()), BODY_LIMIT)


def _unpack_body(data: bytes) -> bytes:
    """Unpack so much of a body as is looked at, whatever it would grow to."""
    for bits in (47, -15):
        with contextlib.suppress(zlib.error):
            return zlib.decompressobj(bits).decompress(data, BODY_LIMIT)
    return data


def _note_foreign(answer: HttpAnswer, stream: PipeStream, request: HttpRequest) -> None:
    """Note an answer that breaks the rules of HTTP: what it is instead, or where it breaks."""
    from netprobe.protocols.services.http_backend import begins_http2

    begin = _word_begin(stream, request)
    if answer.status is not None:
        answer.flaw = "its body breaks off"
    elif not stream.begin:
        answer.ended = stream.ended or "fin"
    elif stream.http2 and not begins_http2(stream.begin):
        in_what = "in HTTP/1" if stream.begin.startswith(b"HTTP/1") else f'"{begin}"'
        answer.foreign, answer.flaw = begin, f"HTTP/2 is not spoken: it answers {in_what}"
    elif begins_http2(stream.begin) and not stream.http2:
        answer.flaw = "it speaks HTTP/2 only, and HTTP/1.1 was asked for"
    elif stream.begin.startswith(b"HTTP/") and stream.received > BODY_LIMIT:
        answer.flaw = "the head of its answer does not end"
    else:
        answer.foreign = begin


def _note_begin(answer: HttpAnswer, stream: PipeStream, request: HttpRequest) -> None:
    """Note a head that began and came to no end in time."""
    if answer.status is None and answer.foreign is None and not answer.flaw and stream.begin:
        begin = _word_begin(stream, request)
        answer.flaw = f'{stream.received:,} bytes came, and no whole answer ("{begin}")'


def _word_begin(stream: PipeStream, request: HttpRequest) -> str:
    """Word the first bytes: cut after the credentials are struck, or half of them would stay."""
    return printable(request.hide(stream.begin.decode("latin-1"))[:SHOWN_BEGIN])


def _proxy_headers(proxy: ProxyUrl) -> list[tuple[str, str]]:
    """Give the header with a proxy's credentials, where it has any."""
    if proxy.credentials is None:
        return []
    return [("Proxy-Authorization", f"Basic {proxy.token}")]
