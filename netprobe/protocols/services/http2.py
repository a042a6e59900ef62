"""HTTP/2 as a gRPC client begins it: settings, one call of an unknown method, pings.

A gRPC server answers a call of an unknown method with status 12 and names the service, before any
handler runs: nothing is registered and nothing is opened. ``AgentService/Connect`` is never called.
"""

from __future__ import annotations

from msgspec import Struct

from netprobe.model.konnectivity import IdleClock
from netprobe.protocols.base import printable
from netprobe.protocols.services.tls_talk import TlsTalk

# A method that no service has, and the services of Konnectivity's two ports: agents', front end's.
METHOD = "NetprobeNoSuchMethod"
AGENT_SERVICE = "AgentService"
FRONT_END_SERVICE = "ProxyService"
ANSWER_S = 10.0
SETTINGS_S = 5.0
ACK_S = 20.0
UNIMPLEMENTED = "12"
MESSAGE_LIMIT = 200
_GRPC_HEADERS = (
    ("content-type", "application/grpc"),
    ("te", "trailers"),
    ("user-agent", "netprobe"),
)


class CallFacts(Struct):
    """The answer of an HTTP/2 server. ``goaway`` is (error code, debug text).

    ``unanswered``: it spoke HTTP/2, and nothing came for the call in 10 s. ``reset``: the code of
    RST_STREAM that came instead of an answer.
    """

    settings: bool = False
    status: str | None = None
    grpc_status: str | None = None
    grpc_message: str | None = None
    goaway: tuple[int, str] | None = None
    unanswered: bool = False
    reset: int | None = None
    ended: str | None = None
    failure: str | None = None
    alert: int | None = None
    acks: int = 0

    def has_service(self, service: str = AGENT_SERVICE) -> bool:
        """Tell whether the server has this service: it misses the method, not the service.

        Any gRPC server that knows neither says ``unknown service``.
        """
        known = f"method {METHOD} for service {service}"
        return self.grpc_status == UNIMPLEMENTED and known in (self.grpc_message or "")


class Http2Talk:
    """An HTTP/2 connection over a TLS conversation whose handshake is done."""

    def __init__(self, tls: TlsTalk) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.facts = CallFacts()
        self._tls = tls
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._answered = False
        self.clock = IdleClock()

    async def begin(self, greeting: bytes) -> CallFacts:
        """Send preface and settings, read earlier bytes, wait for the server's settings."""
        self._http.initiate_connection()
        await self._flush_data()
        await self._take_data(greeting)
        while not self.facts.settings and await self._receive_more(SETTINGS_S):
            pass
        return self.facts

    async def call(self, authority: str, service: str = AGENT_SERVICE) -> CallFacts:
        """Call the method that no service has, and wait for the answer."""
        self.facts, self._answered = CallFacts(settings=self.facts.settings), False
        stream = self._http.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "https"), (":path", f"/{service}/{METHOD}")]
        headers += [(":authority", authority), *_GRPC_HEADERS]
        self._http.send_headers(stream, headers)
        self._http.send_data(stream, bytes(5), end_stream=True)
        await self._flush_data()
        while not self._answered and await self._receive_more(ANSWER_S):
            pass
        self.facts.unanswered = not self._answered and self.facts.ended is None
        return self.facts

    async def ping(self) -> bool:
        """Send one PING; whether its acknowledgement came within 20 s."""
        before = self.facts.acks
        self._http.ping(b"netprobe")
        await self._flush_data()
        while self.facts.acks == before and await self._receive_more(ACK_S):
            pass
        return self.facts.acks > before

    async def wait(self, limit_s: float) -> bool:
        """Receive until the limit; False where the connection has ended."""
        return await self._receive_more(limit_s, idle=True)

    async def _receive_more(self, limit_s: float, idle: bool = False) -> bool:
        """Receive one more event; whether it makes sense to wait for another.

        ``idle``: silence is no reason to give up.
        """
        data, event = await self._tls.receive(limit_s)
        self.clock.note(event)
        if data:
            await self._take_data(data)
        if event.kind == "timeout" and not event.over:
            return idle
        if not self._tls.usable and self.facts.ended is None:
            self.facts.ended = event.kind if event.over else "closed"
        return self.facts.ended is None and self.facts.failure is None

    async def _take_data(self, data: bytes) -> None:
        from h2.exceptions import H2Error

        try:
            events = self._http.receive_data(data) if data else []
        except H2Error as error:
            # The bytes are not HTTP/2. The library's error text stays out: it may quote bytes.
            self.facts.failure = type(error).__name__
            self.facts.ended = "not-http2"
            return
        for event in events:
            self._note_event(event)
        await self._flush_data()

    def _note_event(self, event: object) -> None:
        from h2 import events

        if isinstance(event, events.RemoteSettingsChanged):
            self.facts.settings = True
        elif isinstance(event, events.PingAckReceived):
            self.facts.acks += 1
        elif isinstance(event, events.ResponseReceived | events.TrailersReceived):
            self._note_headers({str(name): str(value) for name, value in event.headers or ()})
        elif isinstance(event, events.StreamEnded | events.StreamReset):
            self._answered = True
            if isinstance(event, events.StreamReset) and self.facts.status is None:
                self.facts.reset = int(event.error_code)
        elif isinstance(event, events.ConnectionTerminated):
            words = (event.additional_data or b"").decode("latin-1")
            self.facts.goaway = (int(event.error_code or 0), printable(words, MESSAGE_LIMIT))
            self.facts.ended = self.facts.ended or "goaway"

    def _note_headers(self, headers: dict[str, str]) -> None:
        facts = self.facts
        facts.status = headers.get(":status", facts.status)
        facts.grpc_status = headers.get("grpc-status", facts.grpc_status)
        if "grpc-message" in headers:
            facts.grpc_message = printable(headers["grpc-message"], MESSAGE_LIMIT)

    async def _flush_data(self) -> None:
        data = self._http.data_to_send()
        if data and self._tls.usable:
            await self._tls.send(data)
