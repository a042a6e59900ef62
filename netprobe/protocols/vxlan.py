"""VXLAN (RFC 7348): an encapsulated frame of an unused network."""

from __future__ import annotations

import functools

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, unknown
from netprobe.protocols.inner import (
    NETWORK_ID,
    inner_frame,
    marked_template,
    scapy_without_files,
    tunnel_reading,
)

_HEADER_BYTES = 8
_ETHERNET_BYTES = 14

# The I flag; and the same with the group policy bit that Cisco and OVS set.
_FLAGS = (0x08, 0x88)


class Vxlan:
    """VXLAN on whatever port (4789, 8472); nonce and MAC are in the inner datagram."""

    name = "vxlan"
    one_way = True
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the packet; our listener answers nothing, as a real tunnel end would."""
        return marked_template(_make_request())

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: a real device drops the unknown network without a word."""
        return _make_request()

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a VXLAN header with a frame behind it, and name its network."""
        if len(data) < _HEADER_BYTES + _ETHERNET_BYTES or data[0] not in _FLAGS or data[7]:
            return unknown("a VXLAN packet", data)
        return tunnel_reading("VXLAN", int.from_bytes(data[4:7], "big"))


@functools.cache
def _make_request() -> bytes:
    with scapy_without_files():
        from scapy.layers.vxlan import VXLAN

    return bytes(VXLAN(flags="Instance", vni=NETWORK_ID) / inner_frame())
