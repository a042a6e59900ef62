"""A back end that is played, over real connections: what it answers, and what it notes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import NamedTuple

import pytest

from netprobe.model.inventory import Health
from netprobe.probe.rehearsals.back_end import PlayedBackEnd, Visit, VisitLog
from netprobe.probe.rehearsals.proxy_header import read_proxy_header
from netprobe.protocols.services.own_authority import make_identities
from tests.protocols.pipes import SocketPipe

IDENTITY = make_identities(["cp1"])["cp1"]
LINE = b"PROXY TCP4 10.0.0.1 10.0.0.2 5000 6443\r\n"
BINARY = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12)
READYZ = Health("https", "/readyz")


class Visited(NamedTuple):
    """What a visitor got, the certificate that it saw, and what the back end noted."""

    answer: bytes
    certificate: bytes | None
    visit: Visit


async def visit(
    data: bytes = b"", *, header: bytes = b"", tls: bool = True, health: Health | None = READYZ,
) -> Visited:  # fmt: skip
    """Visit a back end: send a header, shake hands, send data, and read to the end."""
    near, far = socket.socketpair()
    log = VisitLog("token")
    back_end = PlayedBackEnd("cp1", IDENTITY, health, log, lambda: 0.0)
    pipe = SocketPipe(*await asyncio.open_connection(sock=near))
    serving = asyncio.create_task(_serve(back_end, pipe))
    reader, writer = await asyncio.open_connection(sock=far)
    writer.write(header)
    certificate = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        await writer.start_tls(context)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.write(data)
    if data:
        answer = await reader.read()
    else:
        answer = b""
    writer.close()
    await serving
    (seen,) = log.visits
    return Visited(answer, certificate, seen)


async def _serve(back_end: PlayedBackEnd, pipe: SocketPipe) -> None:
    await back_end.serve(6443, pipe, "10.0.0.9")
    pipe.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_a_dial_is_known_by_its_path() -> None:
    """It gets the back end's name by TLS with its certificate, and its number is noted."""
    done = await visit(get("/netprobe-rehearsal/token/17"))
    assert done.answer.startswith(b"HTTP/1.1 200 ")
    assert done.answer.endswith(b"\r\ncp1\n")
    assert done.certificate == IDENTITY.certificate
    assert (done.visit.number, done.visit.asked, done.visit.peer) == (17, "https", "10.0.0.9")
    other = await visit(get("/netprobe-rehearsal/another/17"))
    assert other.visit.number is None


async def test_the_health_check() -> None:
    """Its path gets the answer of a healthy API, and is no dial of ours."""
    asked = await visit(get("/readyz"))
    assert asked.answer.startswith(b"HTTP/1.1 200 ")
    assert (asked.visit.status, asked.visit.number) == (200, None)
    assert (await visit(get("/else"))).visit.status == 200


async def test_http_without_tls() -> None:
    """An API refuses it; a check that is made so gets its answer, and whose dial it is is known."""
    refused = await visit(get("/netprobe-rehearsal/token/3"), tls=False)
    assert refused.answer.startswith(b"HTTP/1.1 400 ")
    assert (refused.visit.number, refused.visit.asked) == (3, "http")
    plain = await visit(get("/ready"), tls=False, health=Health("http", "/ready", 6080))
    assert plain.visit.status == 200


@pytest.mark.parametrize(("header", "version"), [(LINE, 1), (BINARY, 2)])
@pytest.mark.parametrize("tls", [True, False])
async def test_a_header_of_the_proxy_protocol(header: bytes, version: int, tls: bool) -> None:
    """It is noted, and what follows is served as if it were not there."""
    done = await visit(get("/netprobe-rehearsal/token/1"), header=header, tls=tls)
    assert done.visit.header is not None
    assert (done.visit.header.version, done.visit.number) == (version, 1)


async def test_what_says_nothing_is_a_connection() -> None:
    """So are checks that only connect; those that only shake hands are told from them."""
    assert (await visit(tls=False)).visit.asked == "connection"
    assert (await visit()).visit.asked == "handshake"
    assert (await visit(b"SSH-2.0-x\r\n\r\n", tls=False)).visit.asked == "else"


@pytest.mark.parametrize("header", [LINE, BINARY])
def test_a_header_in_pieces(header: bytes) -> None:
    """Each beginning of it asks for more, and all of it has its own length."""
    for end in range(len(header)):
        assert read_proxy_header(header[:end]).length is None
    assert read_proxy_header(header + b"more").length == len(header)
    for data in (b"\x16\x03\x01", b"GET / HTTP/1.1\r\n", b"POST"):
        assert read_proxy_header(data).length == 0
