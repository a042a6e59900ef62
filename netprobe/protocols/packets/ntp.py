"""NTP: a client request whose transmit timestamp a server must send back (RFC 5905)."""

from __future__ import annotations

import struct

from netprobe.agent.wire import templates as wire
from netprobe.model.evidence import ServerClock
from netprobe.protocols.base import Reading, Transport, printable, unknown, with_answer

# Leap indicator, version and mode share a byte. As chrony does, all else of a request is zero:
# a server needs nothing more, and nothing tells about the client (RFC 8633, section 3.5).
_CLIENT = b"\x23"
_HEADER_BYTES = 48
_ORIGIN_AT = 24
_RECEIVE_AT = 32
_TRANSMIT_AT = 40
_REFERENCE_AT = 12
# Root delay and root dispersion, in s with 16 bits of fraction.
_ROOT = struct.Struct(">II")
_ROOT_AT = 4
_TIME = struct.Struct(">II")
_FROM_1900_TO_1970_S = 2208988800
_ERA_S = 2**32
_SERVER_MODE = 4
_UNSYNCHRONISED = 3
_STRATUM_UNSYNCHRONISED = 16

# The symmetric-key trailer: 4 bytes of key id, 16 of digest. Our MAC is the digest.
_KEY_ID = struct.pack(">I", 0x4E50)
_SERVICE_TIMESTAMP = b"NETPROBE"

# Kiss codes that only say that the server has no time yet (RFC 5905, section 7.4).
_STARTING = (b"INIT", b"STEP")


class Ntp:
    """NTP; the nonce is the transmit timestamp, the MAC is where a symmetric key's digest is."""

    name = "ntp"
    one_way = False
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give a request with a key's digest, answered by a server that says it has no time.

        Leap 3 and stratum 16 make sure that no clock is ever set by our answer. The host index is
        in the reference id.
        """
        trailer = _KEY_ID + bytes(wire.MAC_BYTES)
        request = _CLIENT + bytes(_HEADER_BYTES - 1) + trailer
        first = _UNSYNCHRONISED << 6 | 4 << 3 | _SERVER_MODE
        head = bytes((first, _STRATUM_UNSYNCHRONISED))
        answer = head + bytes(_HEADER_BYTES - len(head)) + trailer
        mac_at = _HEADER_BYTES + len(_KEY_ID)
        return with_answer(
            wire.Template(request, _TRANSMIT_AT, mac_at),
            answer,
            nonce_at=_ORIGIN_AT,
            host_at=_REFERENCE_AT + 2,
            mac_at=mac_at,
            copies=((_RECEIVE_AT, _TRANSMIT_AT, 8), (_TRANSMIT_AT, _TRANSMIT_AT, 8)),
        )

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the plain 48 bytes: servers drop a digest of a key that they do not have."""
        return _CLIENT + bytes(_TRANSMIT_AT - 1) + _SERVICE_TIMESTAMP

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a server's answer to our request by the timestamp that it sends back."""
        if len(data) < _HEADER_BYTES or not 1 <= data[0] >> 3 & 7 <= 4:
            return unknown("an NTP answer", data)
        if data[0] & 7 != _SERVER_MODE:
            return Reading(False, f"an NTP packet of mode {data[0] & 7}, not a server's")
        if data[_ORIGIN_AT:_RECEIVE_AT] != _SERVICE_TIMESTAMP:
            return Reading(False, "an NTP answer to another request")
        clock = read_clock(data)
        times = _read_time(data, _RECEIVE_AT), _read_time(data, _TRANSMIT_AT)
        return Reading(True, _word_clock(clock), clock, times)


def read_clock(data: bytes) -> ServerClock:
    """Read what the server says of its clock; a kiss code such as RATE stands in the reference."""
    leap, stratum = data[0] >> 6, data[1]
    code = data[_REFERENCE_AT : _REFERENCE_AT + 4].rstrip(b"\0")
    kiss = None
    if stratum == 0 and code.isalpha() and code not in _STARTING:
        kiss = printable(code.decode("ascii"))
    good = leap != _UNSYNCHRONISED and 0 < stratum < _STRATUM_UNSYNCHRONISED
    delay, dispersion = (part / 65536 * 1000 for part in _ROOT.unpack_from(data, _ROOT_AT))
    return ServerClock(stratum, good, kiss, round(delay / 2 + dispersion, 1))


def compare_clocks(
    clock: ServerClock, times: tuple[float, float], came_s: float, rtt_s: float
) -> ServerClock:
    """Compare the source's clock with the server's (RFC 5905, section 8).

    ``came_s``: when the answer came by the source's clock, in s since 1970.
    """
    received, sent = times
    ahead = ((came_s - rtt_s - received) + (came_s - sent)) / 2
    # The server's seconds come round every 136 years.
    ahead = (ahead + _ERA_S / 2) % _ERA_S - _ERA_S / 2
    error = max(0.0, rtt_s - (sent - received)) / 2
    return clock._replace(offset_ms=round(ahead * 1000, 1), error_ms=round(error * 1000, 1))


def _read_time(data: bytes, at: int) -> float:
    """Read a timestamp: seconds since 1900 and their fraction, as s since 1970."""
    seconds, fraction = _TIME.unpack_from(data, at)
    return seconds - _FROM_1900_TO_1970_S + fraction / 2**32  # type: ignore[no-any-return]


def _word_clock(clock: ServerClock) -> str:
    if clock.kiss is not None:
        return f"NTP kiss code {clock.kiss}"
    return f"NTP stratum {clock.stratum}" if clock.good else "NTP, not synchronised"
