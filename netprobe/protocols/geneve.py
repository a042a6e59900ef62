"""Geneve (RFC 8926): an encapsulated frame of an unused network, without options."""

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
_ETHERNET = 0x6558
_OPTIONS_LENGTH = 0x3F  # in words of 4 bytes; the two bits above it are the version


class Geneve:
    """Geneve on port 6081; nonce and MAC are in the inner datagram."""

    name = "geneve"
    one_way = True
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the packet; our listener answers nothing, as a real tunnel end would."""
        return marked_template(_make_request())

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: a real device drops the unknown network without a word."""
        return _make_request()

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a Geneve header of version 0 with Ethernet inside, and name its network."""
        if len(data) < _HEADER_BYTES or data[7] or data[2:4] != _ETHERNET.to_bytes(2, "big"):
            return unknown("a Geneve packet", data)
        inner_at = _HEADER_BYTES + 4 * (data[0] & _OPTIONS_LENGTH)
        if data[0] & ~_OPTIONS_LENGTH or len(data) < inner_at + _ETHERNET_BYTES:
            return unknown("a Geneve packet", data)
        return tunnel_reading("Geneve", int.from_bytes(data[4:7], "big"))


@functools.cache
def _make_request() -> bytes:
    """Build it; neither the control nor the critical bit is set, since there are no options."""
    with scapy_without_files():
        from scapy.contrib.geneve import GENEVE

    return bytes(GENEVE(proto=_ETHERNET, vni=NETWORK_ID) / inner_frame())
