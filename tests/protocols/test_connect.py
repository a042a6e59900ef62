"""CONNECT through a proxy, against servers that answer in every way."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from netprobe.errors import RequestError
from netprobe.protocols.services.connect import connect
from netprobe.protocols.services.http_exchange import HttpAnswer
from netprobe.protocols.services.proxy_url import ProxyUrl, parse_proxy
from tests.protocols.pipes import open_pipe

SECRET = "s3cret"


class Proxy:
    """Answers every request with the same bytes and keeps what it was asked."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        writer.close()


@contextlib.asynccontextmanager
async def proxy_that(answer: bytes) -> AsyncIterator[Proxy]:
    """A proxy with one answer."""
    proxy = Proxy(answer)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy


async def ask(proxy: Proxy, url: ProxyUrl, host: str = "k.example.com") -> HttpAnswer:
    """One CONNECT."""
    pipe = await open_pipe(proxy.port)
    try:
        return await connect(pipe, host, 443, url)
    finally:
        pipe.close()


async def test_a_tunnel_opens() -> None:
    """2xx: the request was a plain CONNECT with the name, as grpc-go sends it."""
    async with proxy_that(b"HTTP/1.1 200 Connection established\r\n\r\n") as proxy:
        answer = await ask(proxy, parse_proxy("p:3128", "x"))
        assert (answer.status, answer.foreign) == (200, None)
        assert proxy.asked.startswith(b"CONNECT k.example.com:443 HTTP/1.1\r\n")
        assert b"Proxy-Authorization" not in proxy.asked
        await ask(proxy, parse_proxy("p:3128", "x"), "fd00::1")
        assert proxy.asked.startswith(b"CONNECT [fd00::1]:443 ")


async def test_credentials_are_basic_and_decoded() -> None:
    """User and password of the URL, percent-decoded."""
    async with proxy_that(b"HTTP/1.1 200 OK\r\n\r\n") as proxy:
        await ask(proxy, parse_proxy(f"http://us%40er:{SECRET}@p:1", "x"))
        token = base64.b64encode(f"us@er:{SECRET}".encode())
        assert b"Proxy-Authorization: Basic " + token in proxy.asked


async def test_a_refusal_is_read_whole() -> None:
    """Status, schemes of authentication, who says so, and a little of the page."""
    page = (
        b"HTTP/1.1 407 Proxy Authentication Required\r\nServer: squid/6\r\nContent-Length: 9\r\n"
        b'Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n<h1>no\x1b[0'
    )
    async with proxy_that(page) as proxy:
        answer = await ask(proxy, parse_proxy("p:1", "x"))
    assert (answer.status, answer.server) == (407, "squid/6")
    assert answer.schemes == ("Negotiate", "Basic")
    assert answer.body == "<h1>no?[0"


LOUD = "s3c+/r&tP\u00e4W"
TOKEN = base64.b64encode(f"us@er:{LOUD}".encode()).decode()
WRITTEN = (
    TOKEN, TOKEN.rstrip("="), f"us@er:{LOUD}", LOUD, quote(LOUD, ""), quote(LOUD, "").lower(),
    html.escape(LOUD), f"us%40er:{quote(LOUD, '')}",
)  # fmt: skip


@pytest.mark.parametrize("secret", WRITTEN)
@pytest.mark.parametrize(
    "said",
    [
        "HTTP/1.1 403 by {} no\r\nServer: {}\r\nX-You: a {} b\r\n"
        "Proxy-Authenticate: {} realm\r\nContent-Length: 400\r\n\r\n<p>you\n sent {}<",
        "SSH-2.0 you sent me {} as it is\r\n\r\n",
        "HTTP/1.1 407 " + "x" * 20 + " {} ",
        # A cut comes after the credentials are struck: half of them would do.
        "garbage that is just a little shorter than what is shown {}",
    ],
)
async def test_a_proxy_that_repeats_credentials_gives_nothing_away(said: str, secret: str) -> None:
    """Wherever they stand in an answer, and however they are written, stars stand for them."""
    async with proxy_that(said.replace("{}", secret).encode()) as proxy:
        answer = await ask(proxy, parse_proxy(f"http://us%40er:{quote(LOUD, '')}@p:1", "x"))

    shown = repr(answer) + answer.text
    assert secret not in shown
    assert secret.rpartition(":")[2][:8] not in shown
    assert ("***" in shown) or said.startswith("garbage")


async def test_a_name_without_a_password_is_the_secret() -> None:
    """As of services that hand out tokens; and a proxy without credentials hides nothing."""
    page = b"HTTP/1.1 403 for t0ken\r\nContent-Length: 0\r\n\r\n"
    async with proxy_that(page) as proxy:
        assert (await ask(proxy, parse_proxy("http://t0ken:@p:1", "x"))).reason == "for ***"
        assert (await ask(proxy, parse_proxy("http://p:1", "x"))).reason == "for t0ken"


@pytest.mark.parametrize(
    ("said", "foreign"), [(b"\x15\x03\x01\x00\x02\x02\x28", True), (b"SSH-2.0-x\r\n\r\n", True)]
)
async def test_what_speaks_no_http_is_told(said: bytes, foreign: bool) -> None:
    """A port that takes TLS only, or is no proxy at all."""
    async with proxy_that(said) as proxy:
        answer = await ask(proxy, parse_proxy("p:1", "x"))
    assert answer.status is None
    assert (answer.foreign is not None or answer.ended is not None) is foreign


async def test_a_close_without_an_answer() -> None:
    """No status, and how it ended."""
    async with proxy_that(b"") as proxy:
        answer = await ask(proxy, parse_proxy("p:1", "x"))
    assert (answer.status, answer.ended) == (None, "fin")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p:3128", "http://p:3128"),
        ("http://p", "http://p:80"),
        ("https://p", "https://p:443"),
        ("http://[fd00::1]:8080/", "http://[fd00::1]:8080"),
        (f"http://u:{SECRET}@p:3128", "http://***@p:3128"),
    ],
)
def test_urls_are_read_as_go_reads_them(text: str, shown: str) -> None:
    """Without a scheme it is http; credentials are never shown."""
    assert str(parse_proxy(text, "x")) == shown
    assert SECRET not in repr(parse_proxy(text, "x"))


@pytest.mark.parametrize("text", ["", "socks5://p:1", f"http://u:{SECRET}@p:x", "http://:3128"])
def test_urls_that_are_none(text: str) -> None:
    """They are refused without being repeated."""
    with pytest.raises(RequestError, match="x: expected a URL") as refused:
        parse_proxy(text, "x")
    assert SECRET not in str(refused.value)
