"""Samples of a way: one packet after the other at a steady pace, each with its round trip.

Of TCP the kernel says how long the handshake took (TCP_INFO). Datagrams have the kernel's time of
arrival where it gives one, so that a busy process does not make the way look slow. A sample that
met a pause of this process all the same, or of its whole machine, is taken again.
"""

import errno
import socket
import struct
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..core.agent import AgentCore
from ..core.loop import READ, WRITE, Timer
from ..net.errqueue import drain
from ..net.icmp import echo_request, open_echo, read_echo_reply
from ..net.sockets import close_with_reset, open_probe, opening_of, target_of
from ..wire.failures import IN_PROGRESS, NO_PERMISSION, PERMISSION, STOOD_STILL, name_of
from ..wire.quality_messages import SampleOrder, SamplesTaken
from ..wire.templates import NONCE_BYTES, pack_nonce, read_nonce, request_mac

# asm-generic/socket.h: the socket module does not name it; a kernel with other numbers refuses it.
SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
DATAGRAM_BYTES = 9216
ANCILLARY_BYTES = 256
# A clock that was set meanwhile tells nothing.
SLACK_S = 0.001
# A kernel answers while a process waits; what stands still for longer is the machine.
MACHINE_STILL_S = 1.0


class SentAt(NamedTuple):
    """When a sample went: by the clock that never jumps, and by that of the kernel's stamps."""

    steady_s: float
    wall_s: float


class Sampling:
    """One order while it is worked on. A subclass sends a sample, and reads what comes back."""

    def __init__(self, agent: AgentCore, order: SampleOrder, ended: Any) -> None:
        self.agent = agent
        self.order = order
        self.target = target_of(order.dst, order.src)
        self._ended = ended
        self._sent = 0
        # Of the last sample; those that a pause has spoilt are not among ``_sent`` any more.
        self._place = 0
        self._begun_at = agent.loop.now()
        self._timer: Optional[Timer] = None
        self._failure: Optional[str] = None
        self._refused = 0
        self.out: Dict[int, SentAt] = {}
        self._rtts_us: Dict[int, int] = {}

    def send_sample(self, place: int) -> None:
        """Send the sample at this place, from 1. Raises OSError."""
        raise NotImplementedError

    def drop_sample(self, place: int) -> None:
        """Forget a sample that was not answered in time."""

    def close(self) -> None:
        """Close every socket, and ask nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def proceed(self) -> None:
        """Send what is due, and end when there is nothing left to wait for."""
        now = self.agent.loop.now()
        self._drop_late(now)
        if self._sent < self.order.samples and self.agent.rate.take(1, now):
            self._send_next()
        if self._place > 2 * self.order.samples:
            self.end(STOOD_STILL)
        elif self.out or self._sent < self.order.samples:
            self._timer = self.agent.loop.call_later(self._find_wait_s(now), self.proceed)
        else:
            self.end(None if self._rtts_us else self._failure)

    def note_answer(self, place: int, rtt_s: Optional[float]) -> None:
        """Note that a sample was answered; what comes twice, or too late, is not. None: the kernel
        does not say when."""
        sent = self.out.pop(place, None)
        if sent is None or self.resend_spoilt(sent, 0 if rtt_s is None else MACHINE_STILL_S):
            return
        if rtt_s is None:
            rtt_s = self.agent.loop.now() - sent.steady_s
        if rtt_s * 1000 <= self.order.timeout_ms:
            self._rtts_us[place] = max(1, int(rtt_s * 1000000))

    def resend_spoilt(self, sent: SentAt, most_s: float) -> bool:
        """Tell whether pauses took more of the time since then; if so, one more is sent."""
        now, since = self.agent.loop.now(), sent.steady_s
        spoilt = self.agent.loop.pauses.is_spoilt(since, now - since - most_s, now)
        self._sent -= spoilt
        return spoilt

    def note_failure(self, code: Optional[int]) -> None:
        """Note why a sample did not leave, or came back as an error; a refusal is no loss."""
        self._refused += code in (errno.ECONNREFUSED, errno.ECONNRESET)
        self._failure = NO_PERMISSION if code in PERMISSION else name_of(code)

    def end(self, failure: Optional[str]) -> None:
        """Report."""
        self.close()
        rtts_us = [self._rtts_us[place] for place in sorted(self._rtts_us)]
        lost = max(0, self.order.samples - len(rtts_us) - self._refused)
        self.agent.send(SamplesTaken(self.order.id, rtts_us, lost, failure))
        self._ended(self)

    def _send_next(self) -> None:
        self._sent += 1
        self._place += 1
        place = self._place
        self.out[place] = SentAt(self.agent.loop.now(), time.time())
        try:
            self.send_sample(place)
        except OSError as error:
            self.out.pop(place, None)
            self.drop_sample(place)
            self.note_failure(error.errno)

    def _drop_late(self, now: float) -> None:
        limit_s = self.order.timeout_ms / 1000.0
        for place, sent in list(self.out.items()):
            if self.agent.loop.pauses.is_over(sent.steady_s, limit_s, now):
                del self.out[place]
                self.drop_sample(place)
                self.resend_spoilt(sent, now - sent.steady_s - limit_s)

    def _find_wait_s(self, now: float) -> float:
        """Give the time until the next sample: an agent that was late does not catch up at once."""
        interval_s = self.order.interval_ms / 1000.0
        if self._sent == self.order.samples:
            return interval_s
        due_s = self._begun_at + self._sent * interval_s - now
        if due_s < 0:
            self._begun_at -= due_s
        return max(due_s, self.agent.rate.wait_s(now), 0.001)


class ConnectSampling(Sampling):
    """A connection for each sample."""

    def __init__(self, agent: AgentCore, order: SampleOrder, ended: Any) -> None:
        Sampling.__init__(self, agent, order, ended)
        self._socks: Dict[int, socket.socket] = {}

    def send_sample(self, place: int) -> None:
        """Begin to connect."""
        sock = open_probe(self.target, socket.SOCK_STREAM)
        self._socks[place] = sock
        code = sock.connect_ex(self.target.sockaddr(self.order.port))
        if code not in (0, *IN_PROGRESS):
            raise OSError(code, "")
        self.agent.loop.watch(sock.fileno(), WRITE, lambda _events: self._read_result(place))

    def drop_sample(self, place: int) -> None:
        """Close the socket of a sample."""
        sock = self._socks.pop(place, None)
        if sock is not None:
            self.agent.loop.unwatch(sock.fileno())
            close_with_reset(sock)

    def close(self) -> None:
        """Close every socket."""
        Sampling.close(self)
        for place in list(self._socks):
            self.drop_sample(place)

    def _read_result(self, place: int) -> None:
        """Read what became of a connect; one whose SYN had to be repeated is lost."""
        sock, sent = self._socks[place], self.out[place]
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.note_failure(code)
        else:
            syns, rtt_s = opening_of(sock, 0)
            if syns is None:
                self.note_answer(place, rtt_s or None)
            else:
                self.resend_spoilt(sent, MACHINE_STILL_S)
        self.out.pop(place, None)
        self.drop_sample(place)


class DatagramSampling(Sampling):
    """All samples over one socket."""

    def __init__(self, agent: AgentCore, order: SampleOrder, ended: Any) -> None:
        Sampling.__init__(self, agent, order, ended)
        self.sock = self.open_socket()
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        except OSError:
            pass  # then this process says when an answer came
        agent.loop.watch(self.sock.fileno(), READ, lambda _events: self._read_answers())

    def open_socket(self) -> socket.socket:
        """Open the socket. Raises OSError."""
        return open_probe(self.target, socket.SOCK_DGRAM)

    def send_packet(self, packet: bytes, port: int) -> None:
        """Send the packet of a sample. Raises OSError."""
        # Errors of earlier packets are in the queue; this send must not fail with them.
        self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.sock.sendto(packet, self.target.sockaddr(port))

    def find_place(self, data: bytes, sender: Tuple[Any, ...]) -> int:
        """Tell which sample a packet answers; 0: none of ours."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the socket."""
        Sampling.close(self)
        if self.sock.fileno() >= 0:
            self.agent.loop.unwatch(self.sock.fileno())
            self.sock.close()

    def _read_answers(self) -> None:
        for error in drain(self.sock):
            self.note_failure(error.errno)
        while True:
            try:
                data, ancillary, _, sender = self.sock.recvmsg(DATAGRAM_BYTES, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self.note_failure(error.errno)
                return
            place = self.find_place(data, sender)
            if place in self.out:
                self.note_answer(place, _find_rtt_s(self.out[place], ancillary))


class UdpSampling(DatagramSampling):
    """Datagrams to a listener of netprobe."""

    def send_sample(self, place: int) -> None:
        """Send a datagram with a nonce of its own."""
        template = self.agent.templates[self.order.template]
        nonce = pack_nonce(self.order.number, self.order.port, place)
        self.send_packet(template.fill(self.agent.key, nonce), self.order.port)

    def find_place(self, data: bytes, sender: Tuple[Any, ...]) -> int:
        """Find the nonce; only the listener's genuine answer counts."""
        template = self.agent.templates[self.order.template]
        nonce = data[template.answer_nonce_at : template.answer_nonce_at + NONCE_BYTES]
        if template.answering_host(self.agent.key, nonce, data) != self.order.host:
            return 0
        said = read_nonce(nonce)
        return said.attempt if said.order == self.order.number else 0


class EchoSampling(DatagramSampling):
    """ICMP echo requests."""

    def open_socket(self) -> socket.socket:
        """Open a datagram socket where the host permits it, else a raw one."""
        self._echo = open_echo(self.target)
        return self._echo.sock

    def send_sample(self, place: int) -> None:
        """Send an echo request."""
        payload = self._make_payload(place)
        self.send_packet(echo_request(self.target.family, self._echo.number, place, payload), 0)

    def find_place(self, data: bytes, sender: Tuple[Any, ...]) -> int:
        """Find the sample by its number; its payload is one that nobody else can make."""
        reply = read_echo_reply(self.target.family, self._echo.kind, data)
        if reply is None or sender[0].partition("%")[0] != self.target.address:
            return 0
        place, payload = reply
        return place if payload == self._make_payload(place) else 0

    def _make_payload(self, place: int) -> bytes:
        nonce = pack_nonce(self.order.number, 0, place)
        return nonce + request_mac(self.agent.key, nonce)


SAMPLINGS = {"tcp": ConnectSampling, "udp": UdpSampling, "icmp": EchoSampling}


class Sampler:
    """All sample orders of the agent."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._open: List[Sampling] = []

    def submit(self, order: SampleOrder) -> None:
        """Start an order; ``SamplesTaken`` follows."""
        try:
            sampling = SAMPLINGS[order.proto](self._agent, order, self._open.remove)
        except OSError as error:
            failure = NO_PERMISSION if error.errno in PERMISSION else name_of(error.errno)
            self._agent.send(SamplesTaken(order.id, [], order.samples, failure))
            return
        self._open.append(sampling)
        sampling.proceed()

    def close(self) -> None:
        """Close every socket."""
        for sampling in self._open:
            sampling.close()
        self._open = []


def _find_rtt_s(sent: SentAt, ancillary: List[Tuple[int, int, bytes]]) -> Optional[float]:
    """Give the time from sending to the kernel's stamp; None without a true one."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) == _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            rtt_s: float = seconds + nanoseconds / 1e9 - sent.wall_s
            if 0 <= rtt_s <= time.monotonic() - sent.steady_s + SLACK_S:
                return rtt_s
    return None
