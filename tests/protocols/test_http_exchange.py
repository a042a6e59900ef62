"""One HTTP exchange through httpx, against servers that answer in every way, and in none."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model.konnectivity import Event
from netprobe.protocols.services.http_exchange import (
    ANSWER_S,
    BODY_LIMIT,
    HttpAnswer,
    HttpRequest,
    ReadLimits,
    exchange_http,
)
from netprobe.protocols.services.proxy_url import parse_proxy
from tests.protocols.pipes import SocketPipe, open_pair

pytestmark = pytest.mark.asyncio(loop_factories=["jumping"])

Write = Callable[[bytes], Awaitable[None]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[bytes, Write], Awaitable[None]]
ASKED = HttpRequest("service.lab.test:8081", "/x?y=%7B")
# Of a server that never comes to an end no more is waited for; it is the jumping loop's time.
SHORT_S = 0.3


@contextlib.asynccontextmanager
async def pipe_to(talk: Talk) -> AsyncIterator[SocketPipe]:
    """A pipe to a server; if that still talks in the end, it is cut short."""
    pipe, reader, writer = await open_pair()

    async def hold() -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                await talk(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    talking = asyncio.create_task(hold())
    yield pipe
    pipe.close()
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)


async def ask(serve: Serve, request: HttpRequest = ASKED, limit_s: float = 5.0) -> HttpAnswer:
    """One exchange; ``serve`` gets the head of the request, and writes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        await serve(await reader.readuntil(b"\r\n\r\n"), write)

    async with pipe_to(talk) as pipe:
        return await exchange_http(pipe, request, ReadLimits(limit_s, limit_s))


def says(*parts: bytes) -> Serve:
    """A server that writes these and closes."""

    async def serve(_: bytes, write: Write) -> None:
        for part in parts:
            await write(part)

    return serve


def page(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer of HTTP/1.1."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_an_answer_is_read_whole() -> None:
    """Status, reason, headers by small letters, and the body: as text and as one line."""
    answer = await ask(says(page(b"a\n\x1b[31mb\n", "Server: nginx/1", "X-A: 1\xa0".strip("\xa0"))))

    assert (answer.status, answer.reason, answer.server) == (200, "OK", "nginx/1")
    assert answer.headers["x-a"] == "1"
    assert (answer.text, answer.body) == ("a\n\x1b[31mb\n", "a ?[31mb")
    assert (answer.ended, answer.foreign, answer.flaw, answer.http2) == (None, None, "", False)


async def test_headers_are_kept_whole() -> None:
    """All of a name, as long as they are; what is printed is cut."""
    answer = await ask(says(page(b"", "X-Ver: 1.2", "x-ver: other", "X-Long: " + "y" * 5000)))

    assert answer.fields["x-ver"] == ("1.2", "other")
    assert answer.fields["x-long"] == ("y" * 5000,)
    assert (answer.headers["x-ver"], len(answer.headers["x-long"])) == ("other", 200)


async def test_what_is_sent_is_what_was_meant() -> None:
    """The target as it stands, the Host header, no coding, no cookie; and nothing of httpx."""
    heads = []

    async def serve(head: bytes, write: Write) -> None:
        heads.append(head)
        await write(page(b"", "Set-Cookie: a=b"))

    await ask(serve)

    assert heads == [
        b"GET /x?y=%7B HTTP/1.1\r\nHost: service.lab.test:8081\r\nUser-Agent: netprobe\r\n"
        b"Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    ]


async def test_the_environment_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and authorities of the coordinator are not those of the source."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "[::1]")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("NETRC", "/nowhere")

    assert (await ask(says(page(b"ok")))).body == "ok"


@pytest.mark.parametrize("place", ["https://login.lab.test/x", "/login", "http://[::1", "//", "\t"])
async def test_redirects_are_not_followed(place: str) -> None:
    """Where it leads is a fact, even where it leads nowhere."""
    answer = await ask(says(page(b"moved", f"Location: {place}", status="302 Found")))

    assert answer.status == 302
    assert answer.headers["location"] == place.strip()


async def test_a_proxy_is_asked_for_a_whole_url_with_its_credentials() -> None:
    """They are in no text of the request or of the answer."""
    heads = []

    async def serve(head: bytes, write: Write) -> None:
        heads.append(head)
        await write(page(b"ok"))

    proxy = parse_proxy("http://us%40er:s3cret@p:3128", "x")
    whole = replace(ASKED, target="http://service.lab.test:8081/x", proxy=proxy)
    answer = await ask(serve, whole)

    token = base64.b64encode(b"us@er:s3cret")
    assert heads[0].startswith(b"GET http://service.lab.test:8081/x HTTP/1.1\r\n")
    assert heads[0].count(b"Host:") == 1
    assert b"Proxy-Authorization: Basic " + token in heads[0]
    assert "s3cret" not in repr(whole) + repr(answer)


HEAD = b"HTTP/1.1 200 OK\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
CUT_OFF = "its body breaks off"


async def drip_head(_: bytes, write: Write) -> None:
    """One byte at a time, and no end of the head."""
    for place in range(1000):
        await write((HEAD + b"X: " + b"a" * 1000)[place : place + 1])
        await asyncio.sleep(0.02)


async def drip_body(_: bytes, write: Write) -> None:
    """A head, and then a byte of the body now and then."""
    await write(HEAD + b"\r\n")
    for _place in range(1000):
        await write(b"x")
        await asyncio.sleep(0.02)


async def send_for_ever(_: bytes, write: Write) -> None:
    """A body that does not end."""
    await write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _number in count():
        await write(b"1000\r\n" + b"y" * 4096 + b"\r\n")


async def send_headers_for_ever(_: bytes, write: Write) -> None:
    """A head that does not end."""
    await write(HEAD)
    for number in count():
        await write(b"X-%d: %s\r\n" % (number, b"z" * 1000))


async def continue_for_ever(_: bytes, write: Write) -> None:
    """Answers that announce an answer."""
    while True:
        await write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def hang(_: bytes, write: Write) -> None:
    """Nothing at all."""
    await asyncio.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("serve", "status", "ended", "foreign", "flaw"),
    [
        (says(b""), None, "fin", None, ""),
        (hang, None, "timeout", None, ""),
        (says(b"SSH-2.0-x\r\n"), None, None, "SSH-2.0-x??", ""),
        (says(bytes(range(200))), None, None, "?" * 32 + " !\"#$%&'()*+,-./0123456789:;", ""),
        (says(b"HTTP/1.1 2"), None, "fin", "HTTP/1.1 2", ""),
        (says(SETTINGS), None, None, None, "it speaks HTTP/2 only, and HTTP/1.1 was asked for"),
        (says(HEAD + b"Content-Length: 9\r\n\r\nab"), 200, "fin", None, CUT_OFF),
        (says(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 200, None, None, CUT_OFF),
        (drip_head, None, "timeout", None, " bytes came, and no whole answer (\"HTTP/1.1 200"),
        (drip_body, 200, "timeout", None, "its body does not end"),
        (continue_for_ever, None, None, None, "the head of its answer does not end"),
        (send_for_ever, 200, None, None, ""),
        (send_headers_for_ever, None, None, None, "the head of its answer does not end"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
async def test_what_is_no_whole_answer(
    serve: Serve, status: int | None, ended: str | None, foreign: str | None, flaw: str
) -> None:
    """It is bounded, it is no exception, and one phrase says what is wrong."""
    answer = await ask(serve, limit_s=SHORT_S if ended == "timeout" else ANSWER_S)

    assert (answer.status, answer.foreign) == (status, foreign)
    assert flaw in answer.flaw
    assert bool(flaw) == bool(answer.flaw)
    assert ended is None or answer.ended == ended
    assert len(answer.text) <= BODY_LIMIT
    assert answer.is_cut == (serve is send_for_ever)


async def test_a_reset_is_told() -> None:
    """It is no end like another."""

    class Reset:
        async def send(self, data: bytes) -> None: ...

        async def receive(self, limit_s: float) -> Event:
            return Event("reset")

    assert (await exchange_http(Reset(), ASKED)).ended == "reset"


def bomb(times: int = 1) -> bytes:
    """Many megabytes that fit into few kilobytes; packed ``times`` times."""
    data = b"0" * (32 << 20)
    for _ in range(times):
        data = gzip.compress(data)
    return data


@pytest.mark.parametrize(
    ("coding", "make_data", "begin", "flaw"),
    [
        ("gzip", lambda: gzip.compress(b"hello"), "hello", ""),
        ("deflate", lambda: zlib.compress(b"hello"), "hello", ""),
        ("deflate", lambda: zlib.compress(b"hello")[2:-4], "hello", ""),
        ("gzip", lambda: b"hello", "hello", ""),
        ("gzip", bomb, "0000", ""),
        ("gzip, gzip", lambda: bomb(2), "\x1f", "its body is packed (gzip, gzip)"),
        ("br", lambda: b"\x0b\x02", "\x0b", "its body is packed (br), which nobody asked for"),
    ],
    ids=["gzip", "zlib", "deflate", "not packed", "bomb", "packed twice", "br"],
)
async def test_packed_bodies_are_bounded(
    coding: str, make_data: Callable[[], bytes], begin: str, flaw: str
) -> None:
    """What nobody asked for is unpacked once, and never to more than is read."""
    data = make_data()
    tracemalloc.start()
    try:
        answer = await ask(says(page(data, f"Content-Encoding: {coding}")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 << 20
    assert answer.text.startswith(begin)
    assert answer.flaw.startswith(flaw)
    assert len(answer.text) <= BODY_LIMIT


@pytest.mark.slow
@given(data=st.binary(max_size=300) | st.binary(max_size=200).map(lambda rest: HEAD + rest))
async def test_no_bytes_are_too_strange(data: bytes) -> None:
    """Whatever comes becomes an answer that can be printed."""

    class Bytes:
        def __init__(self) -> None:
            self.left = data

        async def send(self, data: bytes) -> None: ...

        async def receive(self, limit_s: float) -> Event:
            data, self.left = self.left, b""
            return Event("data" if data else "fin", data)

    for http2 in (False, True):
        answer = await exchange_http(Bytes(), replace(ASKED, http2=http2))
        assert (answer.foreign or "").isprintable()
        assert answer.body.isprintable()
        assert answer.flaw.isprintable()


async def ask_http2(status: str, seen: list[dict[str, str]]) -> HttpAnswer:
    """One exchange with a server that h2 makes, which answers with this status."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = H2Configuration(
            client_side=False, header_encoding="utf-8", validate_outbound_headers=False
        )
        http = H2Connection(config)
        http.initiate_connection()
        writer.write(http.data_to_send())
        while data := await reader.read(65536):
            for event in http.receive_data(data):
                if isinstance(event, RequestReceived):
                    seen.append({str(name): str(value) for name, value in event.headers or ()})
                    http.send_headers(event.stream_id or 1, [(":status", status)])
                    http.send_data(event.stream_id or 1, b"ok", end_stream=True)
            writer.write(http.data_to_send())

    async with pipe_to(talk) as pipe:
        return await exchange_http(pipe, replace(ASKED, http2=True, tls=True))


async def test_http2_is_spoken_where_it_was_agreed_on() -> None:
    """The same request, in frames; the server is h2's own."""
    seen: list[dict[str, str]] = []

    answer = await ask_http2("200", seen)

    assert (answer.status, answer.body, answer.http2) == (200, "ok", True)
    assert seen[0][":path"] == "/x?y=%7B"
    assert (seen[0][":authority"], seen[0][":scheme"]) == ("service.lab.test:8081", "https")


async def test_a_status_that_is_no_number_is_no_http() -> None:
    """Frames are right, and what stands in them is not."""
    answer = await ask_http2("abc", [])

    assert answer.status is None
    assert answer.foreign is not None


async def test_who_was_asked_in_http2_and_speaks_none() -> None:
    """It is told, not taken for garbage."""

    async def serve(head: bytes, write: Write) -> None:
        await write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await hang(head, write)

    answer = await ask(serve, replace(ASKED, http2=True))

    assert answer.flaw == "HTTP/2 is not spoken: it answers in HTTP/1"
