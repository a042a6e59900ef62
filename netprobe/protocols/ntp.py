"""NTP: a client request whose transmit timestamp a server must send back (RFC 5905)."""

from __future__ import annotations

import struct

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, printable, unknown, with_answer

# Leap indicator, version and mode share a byte. As chrony does, all else of a request is zero:
# a server needs nothing more, and nothing tells about the client (RFC 8633, section 3.5).
_CLIENT = b"\x23"
_HEADER_BYTES = 48
_ORIGIN_AT = 24
_RECEIVE_AT = 32
_TRANSMIT_AT = 40
_REFERENCE_AT = 12
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
        return Reading(True, _word_answer(data))


def _word_answer(data: bytes) -> str:
    """Name the stratum; a kiss code such as RATE is four letters where the reference id is."""
    leap, stratum = data[0] >> 6, data[1]
    code = data[_REFERENCE_AT : _REFERENCE_AT + 4].rstrip(b"\0")
    if stratum == 0 and code.isalpha() and code not in _STARTING:
        return f"NTP kiss code {printable(code.decode('ascii'))}"
    if leap == _UNSYNCHRONISED or not 0 < stratum < _STRATUM_UNSYNCHRONISED:
        return "NTP, not synchronised"
    return f"NTP stratum {stratum}"
