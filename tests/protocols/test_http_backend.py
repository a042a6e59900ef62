"""The network backend under httpx: one connection, opened by somebody else, read piece by piece."""

from __future__ import annotations

import ssl

import httpcore
import pytest

from netprobe.model.konnectivity import Event
from netprobe.protocols.services.http_backend import AgentBackend, PipeStream


class Script:
    """A pipe that gives these events."""

    def __init__(self, *events: Event) -> None:
        self.events = list(events)
        self.sent = b""
        self.limits: list[float] = []

    async def send(self, data: bytes) -> None:
        """Note the bytes."""
        self.sent += data

    async def receive(self, limit_s: float) -> Event:
        """Give the next event."""
        self.limits.append(limit_s)
        return self.events.pop(0)


def stream_of(*events: Event, http2: bool = False) -> PipeStream:
    """A stream over such a pipe."""
    return PipeStream(Script(*events), 1.5, http2)


async def test_the_one_connection_is_given_once() -> None:
    """Who needs another is told no: a probe does not dial twice in silence."""
    stream = stream_of()
    backend = AgentBackend(stream)

    assert await backend.connect_tcp("netprobe.invalid", 443) is stream
    with pytest.raises(httpcore.ConnectError):
        await backend.connect_tcp("netprobe.invalid", 443)


async def test_bytes_are_read_in_pieces_of_the_readers_size() -> None:
    """What does not fit waits; the stream remembers the first bytes and how many came."""
    stream = stream_of(Event("data", b"abc"), Event("data", b"d"), Event("fin"))

    read = [await stream.read(2) for _ in range(5)]

    assert read == [b"ab", b"c", b"d", b"", b""]
    assert (stream.begin, stream.received, stream.ended) == (b"abcd", 4, "fin")


@pytest.mark.parametrize(
    ("kind", "error"), [("timeout", httpcore.ReadTimeout), ("reset", httpcore.ReadError),
                        ("failed", httpcore.ReadError)],
)  # fmt: skip
async def test_other_ends_are_errors_of_httpcore(kind: str, error: type[Exception]) -> None:
    """And facts of the stream."""
    stream = stream_of(Event(kind))  # type: ignore[arg-type]  # one of its words

    with pytest.raises(error):
        await stream.read(10)
    assert stream.ended == kind


async def test_hands_were_shaken_before() -> None:
    """TLS is not begun again, and ALPN's choice is the one of the handshake."""
    for http2, chosen in ((True, "h2"), (False, "http/1.1")):
        stream = stream_of(http2=http2)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

        assert await stream.start_tls(context, "x") is stream
        assert stream.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
        assert stream.get_extra_info("socket") is None


async def test_an_answer_of_http1_to_http2_is_no_frame() -> None:
    """It would announce a frame of megabytes, which nobody waits for."""
    stream = stream_of(Event("data", b"HTTP/1.1 400 Bad Request\r\n"), http2=True)

    with pytest.raises(httpcore.RemoteProtocolError):
        await stream.read(10)


async def test_closing_leaves_the_pipe_to_its_owner() -> None:
    """Behind a CONNECT it is a tunnel; and nothing empty is ever sent."""
    pipe = Script()
    stream = PipeStream(pipe, 1.5, False)

    await stream.write(b"")
    await stream.write(b"x")
    await stream.aclose()

    assert pipe.sent == b"x"
