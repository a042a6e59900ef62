"""IP in IP (protocol 4, RFC 2003): an inner IPv4 packet right behind the outer header.

Protocol 4 carries IPv4 behind IPv6 too (RFC 2473). ``ipip`` in /etc/protocols is another one, 94.
"""

from __future__ import annotations

import functools

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, unknown
from netprobe.protocols.inner import inner_packet, marked_template

_SHORTEST_HEADER = 20
_ADDRESSES = slice(12, 20)


class IpIp:
    """IP protocol 4; nonce and MAC are in the inner datagram."""

    name = "ipip"
    one_way = True
    transports: tuple[Transport, ...] = ("ipproto",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give what follows the outer IP header; our listener answers nothing."""
        return marked_template(_make_request())

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: its TTL of 1 ends in whatever decapsulates it."""
        return _make_request()

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise an inner IPv4 header and name its protocol."""
        length = int.from_bytes(data[2:4], "big")
        if len(data) < _SHORTEST_HEADER or data[0] >> 4 != 4 or length != len(data):
            return unknown("an encapsulated IPv4 packet", data)
        if data[_ADDRESSES] == _make_request()[_ADDRESSES]:
            return Reading(False, "our own encapsulated packet came back")
        return Reading(True, f"encapsulated IPv4, protocol {data[9]}")


@functools.cache
def _make_request() -> bytes:
    return bytes(inner_packet())
