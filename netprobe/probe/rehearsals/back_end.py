"""A back end that is played: it speaks over what an agent accepts, and notes every visit.

It answers as the API would: TLS with a certificate of its own, the path of the health check with
200, everything else with its name. A request that one of our sources sent has a number.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from netprobe.model.inventory import Health
from netprobe.model.konnectivity import Pipe
from netprobe.probe.rehearsals.proxy_header import ProxyHeader, read_proxy_header
from netprobe.protocols.services.own_authority import BackEndIdentity
from netprobe.protocols.services.tls_server import TlsServer

# A visit that says nothing, or never ends.
QUIET_S = 10.0
VISIT_S = 30.0
CLOSE_S = 1.0
HEAD_BYTES = 16 * 1024
HANDSHAKE = 22
FAILED = 500  # the answer to a health check of one that fails
PREFIX = "/netprobe-rehearsal/"

# How far a visitor went: it connected; shook hands; asked over HTTP without or with TLS. ``alert``:
# it refused our certificate, or the handshake failed; ``else``: it spoke neither TLS nor HTTP.
VisitKind = Literal["connection", "handshake", "http", "https", "alert", "else"]


@dataclass(slots=True)
class Visit:
    """A connection that came to a back end. ``number``: of the dial that it belongs to."""

    back_end: str
    port: int
    peer: str
    at: float
    asked: VisitKind = "connection"
    path: str = ""
    status: int | None = None
    header: ProxyHeader | None = None
    number: int | None = None
    words: str = ""


@dataclass(slots=True)
class VisitLog:
    """All visits of one rehearsal, and those of dials by their number. ``token``: what the paths of
    our own requests contain."""

    token: str
    visits: list[Visit] = field(default_factory=list)
    by_number: dict[int, Visit] = field(default_factory=dict)

    def path(self, number: int) -> str:
        """Give the path of a dial."""
        return f"{PREFIX}{self.token}/{number}"

    def note_path(self, visit: Visit, path: str) -> None:
        """Note what was asked for, and whose request it is."""
        visit.path = path
        begin, _, number = path.rpartition("/")
        if begin == f"{PREFIX}{self.token}" and number.isdecimal():
            visit.number = int(number)
            self.by_number[visit.number] = visit


@dataclass(slots=True)
class PlayedBackEnd:
    """One back end. ``health``: what its balancer asks, None where the inventory has none.

    ``fails``: it answers that as one that is not ready, and everything else as before.
    """

    name: str
    identity: BackEndIdentity
    health: Health | None
    log: VisitLog
    read_clock: Callable[[], float]
    fails: bool = False

    async def serve(self, port: int, pipe: Pipe, peer: str) -> None:
        """Speak over a connection to a port until it is over."""
        visit = Visit(self.name, port, peer, self.read_clock())
        self.log.visits.append(visit)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(VISIT_S):
                await self._serve_visit(Talk(pipe), visit)

    async def _serve_visit(self, talk: Talk, visit: Visit) -> None:
        data = await talk.read_until(lambda got: read_proxy_header(got).length is not None)
        header = read_proxy_header(data)
        visit.header = header if header.length else None
        talk.buffer = data[header.length or 0 :]
        if visit.header is not None and not talk.buffer:
            await talk.read_more()
        if talk.buffer[:1] == bytes((HANDSHAKE,)):
            await talk.shake(TlsServer(self.identity.context))
            visit.asked = "handshake" if talk.is_shaken else "alert"
            visit.words = talk.failure
        if talk.is_usable:
            await self._answer_request(talk, visit)

    async def _answer_request(self, talk: Talk, visit: Visit) -> None:
        head = await talk.read_until(lambda got: b"\r\n\r\n" in got)
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) < 3 or not words[2].startswith("HTTP/"):
            if head and not talk.is_shaken:
                visit.asked = "else"
            return
        visit.asked = "https" if talk.is_shaken else "http"
        self.log.note_path(visit, words[1])
        visit.status, body = self._choose_answer(visit)
        text = f"{body}\n".encode()
        reply = (
            f"HTTP/1.1 {visit.status} {'OK' if visit.status == 200 else 'Not OK'}\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        await talk.send(reply.encode() + (b"" if words[0] == "HEAD" else text))
        await talk.end()

    def _choose_answer(self, visit: Visit) -> tuple[int, str]:
        """Give status and body: an API refuses HTTP without TLS, unless its check is made so."""
        asks = self.health is not None and visit.path == self.health.path
        plain = self.health is not None and self.health.kind == "http"
        if visit.asked == "http" and not (plain and asks):
            return 400, "Client sent an HTTP request to an HTTPS server."
        if asks:
            return (FAILED, "failed on purpose by netprobe") if self.fails else (200, "ok")
        return 200, self.name


class Talk:
    """The talk with one visitor, over TLS after a handshake. ``buffer``: what is not read yet."""

    def __init__(self, pipe: Pipe) -> None:
        self.buffer = b""
        self._pipe = pipe
        self._tls: TlsServer | None = None
        self._is_over = False

    @property
    def is_shaken(self) -> bool:
        """Whether the TLS handshake is done."""
        return self._tls is not None and self._tls.seen.done

    @property
    def is_usable(self) -> bool:
        """Whether the connection still carries requests and answers."""
        return not self._is_over and (self._tls is None or self.is_shaken)

    @property
    def failure(self) -> str:
        """OpenSSL's word for what ended TLS."""
        return (self._tls.seen.failure or "") if self._tls is not None else ""

    async def shake(self, tls: TlsServer) -> None:
        """Do the TLS handshake, beginning with the bytes that were read already."""
        self._tls, data, self.buffer = tls, self.buffer, b""
        await self._feed_data(data)
        while not (tls.seen.done or tls.seen.closed or self._is_over):
            await self.read_more()

    async def read_until(self, is_enough: Callable[[bytes], bool]) -> bytes:
        """Read until the bytes are enough, or no more come; give all that were read."""
        while not is_enough(self.buffer) and not self._is_over and len(self.buffer) < HEAD_BYTES:
            await self.read_more()
        return self.buffer

    async def read_more(self) -> None:
        """Read what comes next."""
        event = await self._pipe.receive(QUIET_S)
        if event.kind == "data":
            await self._feed_data(event.data)
        else:
            self._is_over = True

    async def send(self, data: bytes) -> None:
        """Send bytes, encrypted where TLS is spoken."""
        await self._pipe.send(data if self._tls is None else self._tls.write(data))

    async def end(self) -> None:
        """End our side, and wait until the visitor closes: a reset would overtake the answer."""
        if self._tls is not None:
            await self._pipe.send(self._tls.end())
        while not self._is_over and (await self._pipe.receive(CLOSE_S)).kind == "data":
            pass

    async def _feed_data(self, data: bytes) -> None:
        if self._tls is None:
            self.buffer += data
            return
        answer = self._tls.feed(data)
        if answer:
            await self._pipe.send(answer)
        self.buffer += self._tls.read()
        self._is_over = self._is_over or self._tls.seen.closed
