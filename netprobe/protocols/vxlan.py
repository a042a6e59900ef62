"""VXLAN (RFC 7348): an encapsulated frame of a network that nobody has."""

from __future__ import annotations

import functools

from netprobe.agent import wire
from netprobe.protocols.base import Reading, Transport, unknown
from netprobe.protocols.inner import NETWORK_ID, inner_frame, marked_template

_HEADER_BYTES = 8
_NETWORK_IS_VALID = 0x08


class Vxlan:
    """VXLAN on whatever port (4789, 8472); nonce and MAC are in the inner datagram."""

    name = "vxlan"
    one_way = True
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the packet; our listener answers nothing, as a real tunnel end would."""
        return marked_template(_request())

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: a real device drops the unknown network without a word."""
        return _request()

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a VXLAN header and name its network."""
        if len(data) <= _HEADER_BYTES or not data[0] & _NETWORK_IS_VALID:
            return unknown("a VXLAN packet", data)
        return Reading(True, f"VXLAN, network {int.from_bytes(data[4:7], 'big')}")


@functools.cache
def _request() -> bytes:
    from scapy.layers.vxlan import VXLAN

    return bytes(VXLAN(flags="Instance", vni=NETWORK_ID) / inner_frame())
