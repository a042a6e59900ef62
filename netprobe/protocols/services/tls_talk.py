"""A TLS conversation over a pipe: the hello, the first answer and its time, the handshake, data.

Times are those of the pipe's events, so the agent's. How long to wait in silence depends on what
the kernel knows about the bytes that were sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.parts import IcmpFact
from netprobe.model.konnectivity import Event, Pipe
from netprobe.protocols.services.tls import Hello, SeenHandshake, TlsClient

# The first thing that came back after the hello. ``silent``: nothing did, while we waited.
First = Literal["bytes", "fin", "reset", "silent", "failed"]

_FIRST: dict[str, First] = {
    "data": "bytes",
    "fin": "fin",
    "reset": "reset",
    "timeout": "silent",
    "failed": "failed",
}

LOOK_S = 1.0
FLIGHT_S = 5.0
# What a server has to say after the handshake comes within a round trip, of which the first answer
# took one; and a little for its work. It may have nothing to say before we do.
LEAST_WORDS_S = 0.5
MOST_WORDS_S = 5.0
ROUND_TRIPS = 4
# A server that gets a request need not speak first, so there is no wait for a greeting.
NO_GREETING_S = 0.05


class Patience(Struct, frozen=True):
    """How long to wait in silence after the hello, in seconds since it was sent.

    ``lost_s``: our bytes were not acknowledged; the kernel's fifth retransmission comes at 6.2 s.
    ``gap_s``: later bytes of the server arrived, earlier ones did not. ``silent_s``: the server's
    host has our bytes. ``enough``: another try has meanwhile explained why acknowledged bytes get
    no answer. ``watch`` gets the kernel's numbers of every look.
    """

    lost_s: float = 9.0
    gap_s: float = 3.0
    silent_s: float = 9.0
    enough: Callable[[], bool] | None = None
    watch: Callable[[Mapping[str, int]], None] | None = None

    def less(self, begun_s: float) -> Patience:
        """Give the patience of a try that begins so much later and is to end with the others."""
        return replace(
            self, lost_s=self.lost_s - begun_s, silent_s=max(self.gap_s, self.silent_s - begun_s)
        )

    def over(self, event: Event) -> bool:
        """Tell whether waiting longer would tell nothing more."""
        if self.watch is not None:
            self.watch(event.tcp)
        waited_s = (event.since_sent_ms or event.elapsed_ms) / 1000
        if event.soft is not None:
            return waited_s >= self.gap_s
        if event.tcp.get("unacked"):
            return waited_s >= self.lost_s
        if self.enough is not None and self.enough():
            return True
        if event.tcp.get("rcv_ooopack"):
            return waited_s >= self.gap_s
        return waited_s >= self.silent_s


# For questions whose answer is known to come at once, if it comes.
BRIEF = Patience(2.5, 2.5, 2.5)


@dataclass(slots=True)
class Attempt:
    """One handshake. ``first_ms`` is from the last byte of the hello to the first event.

    ``tcp`` are TCP_INFO numbers at that event (or when the wait ended). ``stalled``: the
    server's flight began and did not end. ``greeting`` are the first bytes after the handshake.
    """

    hello: Hello
    seen: SeenHandshake
    first: First = "silent"
    first_ms: float = 0.0
    failure: str | None = None
    icmp: IcmpFact | None = None
    soft: str | None = None
    tcp: Mapping[str, int] = field(default_factory=dict)
    stalled: bool = False
    end: str | None = None
    greeting: bytes = field(default=b"", repr=False)


class TlsTalk:
    """TLS over a pipe; make it, ``shake``, then ``send`` and ``receive`` as long as ``usable``.

    ``listen_s`` is how long the server's first words after the handshake are waited for; None: as
    long as it may have any.
    """

    def __init__(self, pipe: Pipe, hello: Hello, listen_s: float | None = None) -> None:
        self._pipe = pipe
        self._listen_s = listen_s
        self._client = TlsClient(hello)
        self.attempt = Attempt(hello, self._client.seen)

    @property
    def usable(self) -> bool:
        """Whether the handshake is done and the connection still open."""
        seen = self._client.seen
        return seen.done and not seen.closed and self.attempt.end is None

    async def shake(self, patience: Patience, words: bool = True) -> Attempt:
        """Send the hello, and go on until the server accepts or refuses the client.

        Without ``words`` the end of the handshake, with its certificate, is enough.
        """
        await self._pipe.send(self._client.start())
        event = await self._receive_first(patience)
        self._note_event(event)
        if event.kind == "data":
            await self._feed_handshake(event, words)
        return self.attempt

    async def send(self, data: bytes) -> None:
        """Send application data."""
        await self._pipe.send(self._client.write(data))

    async def receive(self, limit_s: float) -> tuple[bytes, Event]:
        """Give decrypted bytes (perhaps none) and the event that brought them."""
        event = await self._pipe.receive(limit_s)
        if event.kind == "data":
            await self._feed_client(event.data)
        elif event.over:
            self.attempt.end = event.kind
        return self._client.read(), event

    async def _receive_first(self, patience: Patience) -> Event:
        while True:
            event = await self._pipe.receive(min(LOOK_S, patience.silent_s))
            if event.kind != "timeout" or event.over or patience.over(event):
                return event

    def _note_event(self, event: Event) -> None:
        attempt = self.attempt
        attempt.first = _FIRST[event.kind]
        attempt.first_ms = event.since_sent_ms or event.elapsed_ms
        attempt.failure = event.failure
        attempt.icmp = event.icmp
        attempt.soft = event.soft
        attempt.tcp = event.tcp
        attempt.end = None if event.kind in ("data", "timeout") else event.kind

    async def _feed_handshake(self, event: Event, words: bool) -> None:
        """Feed the handshake until it is done and the first words after it have come."""
        attempt, seen = self.attempt, self._client.seen
        while event.kind == "data":
            await self._feed_client(event.data)
            attempt.greeting += self._client.read()
            if seen.closed or seen.foreign is not None or attempt.greeting:
                return
            if seen.done and not words:
                return
            event = await self._pipe.receive(self._choose_limit_s())
        if event.kind == "timeout":
            attempt.stalled = not seen.done
            attempt.tcp = event.tcp
        else:
            attempt.end = event.kind

    async def _feed_client(self, data: bytes) -> None:
        answer = self._client.feed(data)
        if answer:
            await self._pipe.send(answer)

    def _choose_limit_s(self) -> float:
        if not self._client.seen.done:
            return FLIGHT_S
        words_s = ROUND_TRIPS * self.attempt.first_ms / 1000
        return min(MOST_WORDS_S, max(LEAST_WORDS_S, words_s))


class TlsPipe:
    """A finished handshake as a pipe for a protocol inside it; the server's first words included.

    Use ``shaken`` for TLS to a proxy.
    """

    def __init__(self, talk: TlsTalk) -> None:
        self._talk = talk
        self._early = talk.attempt.greeting
        self.send = talk.send

    @classmethod
    async def shaken(cls, pipe: Pipe, hello: Hello) -> TlsPipe | None:
        """Shake hands; None where the other end does not."""
        talk = TlsTalk(pipe, hello, NO_GREETING_S)
        await talk.shake(BRIEF)
        return cls(talk) if talk.usable else None

    async def receive(self, limit_s: float) -> Event:
        """Receive decrypted data; records without data (session tickets) are passed over."""
        if self._early:
            early, self._early = self._early, b""
            return Event("data", early)
        while True:
            data, event = await self._talk.receive(limit_s)
            if event.kind != "data" or data:
                return replace(event, data=data)
            if not self._talk.usable:
                return replace(event, kind="fin", data=b"")
