"""VXLAN, Geneve and IP in IP: a harmless packet to documentation addresses, encapsulated.

A host that decapsulates the inner packet by mistake drops it: the MAC addresses are locally
administered and nobody's, the IP addresses are of TEST-NET-1 (RFC 5737), the TTL is 1 so that no
router sends it on, and the port is discard. Nonce and MAC are in the inner datagram. The bytes are
those that scapy makes (docs/decisions/0047-packets-of-tunnels.md).
"""

from __future__ import annotations

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import (
    Reading,
    Transport,
    make_template,
    unknown,
)
from netprobe.protocols.packets.plain import MARK

# 24 bits. Neither flannel (1, 4096), Calico (4096) nor a hand-made network counts from the top;
# the very last number is left out, because some switches reserve it.
NETWORK_ID = 0xFFFFFE

_HEADER_BYTES = 8
_ETHERNET_BYTES = 14
# VXLAN's I flag; and the same with the group policy bit that Cisco and OVS set.
_VXLAN_FLAGS = (0x08, 0x88)
_GENEVE_ETHERNET = 0x6558
_GENEVE_OPTIONS_LENGTH = 0x3F  # in words of 4 bytes; the two bits above it are the version
_IP_HEADER_BYTES = 20
_IP_ADDRESSES = slice(12, 20)

# From 192.0.2.1 port 20048 to 192.0.2.2 port 9, TTL 1, not to be fragmented. UDP's checksum 0 means
# none: the holes are filled later.
_DATAGRAM = bytes.fromhex("4500003c 00004000 0111f5ad c0000201 c0000202 4e500009 00280000") + MARK
_FRAME = bytes.fromhex("024e50000002 024e50000001 0800") + _DATAGRAM
# VXLAN with the I flag, Geneve with neither the control nor the critical bit: it has no options.
_REQUESTS = {
    "ipip": _DATAGRAM,
    "vxlan": bytes.fromhex("08000000 fffffe00") + _FRAME,
    "geneve": bytes.fromhex("00006558 fffffe00") + _FRAME,
}


class Encapsulated:
    """One kind of tunnel; our listener answers nothing, as a real tunnel end would."""

    name = ""
    one_way = True
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the packet, which ends with the marked payload."""
        return make_template(_REQUESTS[self.name])

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: a real device drops the unknown network without a word."""
        return _REQUESTS[self.name]


class Vxlan(Encapsulated):
    """VXLAN (RFC 7348) on whatever port (4789, 8472): a frame of an unused network."""

    name = "vxlan"

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a VXLAN header with a frame behind it, and name its network."""
        if len(data) < _HEADER_BYTES + _ETHERNET_BYTES or data[0] not in _VXLAN_FLAGS or data[7]:
            return unknown("a VXLAN packet", data)
        return _read_network("VXLAN", data)


class Geneve(Encapsulated):
    """Geneve (RFC 8926) on port 6081: a frame of an unused network, without options."""

    name = "geneve"

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a Geneve header of version 0 with Ethernet inside, and name its network."""
        if len(data) < _HEADER_BYTES or data[7] or data[2:4] != _GENEVE_ETHERNET.to_bytes(2, "big"):
            return unknown("a Geneve packet", data)
        inner_at = _HEADER_BYTES + 4 * (data[0] & _GENEVE_OPTIONS_LENGTH)
        if data[0] & ~_GENEVE_OPTIONS_LENGTH or len(data) < inner_at + _ETHERNET_BYTES:
            return unknown("a Geneve packet", data)
        return _read_network("Geneve", data)


class IpIp(Encapsulated):
    """IP in IP (protocol 4, RFC 2003): an inner IPv4 packet right behind the outer header.

    Protocol 4 carries IPv4 behind IPv6 too (RFC 2473). ``ipip`` in /etc/protocols is another one,
    94. Its TTL of 1 ends in whatever decapsulates it.
    """

    name = "ipip"
    transports: tuple[Transport, ...] = ("ipproto",)

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise an inner IPv4 header and name its protocol."""
        length = int.from_bytes(data[2:4], "big")
        if len(data) < _IP_HEADER_BYTES or data[0] >> 4 != 4 or length != len(data):
            return unknown("an encapsulated IPv4 packet", data)
        if data[_IP_ADDRESSES] == _REQUESTS[self.name][_IP_ADDRESSES]:
            return Reading(False, "our own encapsulated packet came back")
        return Reading(True, f"encapsulated IPv4, protocol {data[9]}")


def _read_network(kind: str, data: bytes) -> Reading:
    """Read the network's number: only a reflector sends packets of our unused network."""
    network = int.from_bytes(data[4:7], "big")
    if network == NETWORK_ID:
        return Reading(False, f"our own {kind} packet came back")
    return Reading(True, f"{kind}, network {network}")
