"""VXLAN, Geneve and IP in IP: a harmless packet to documentation addresses, encapsulated.

A host that decapsulates the inner packet by mistake drops it: the MAC addresses are locally
administered and nobody's, the IP addresses are of TEST-NET-1 (RFC 5737), the TTL is 1 so that no
router sends it on, and the port is discard. Nonce and MAC are in the inner datagram. scapy is
imported late: it takes longer than all else of a start.
"""

from __future__ import annotations

import functools
import typing

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import (
    Reading,
    Transport,
    import_without_files,
    make_template,
    unknown,
)
from netprobe.protocols.packets.plain import MARK

if typing.TYPE_CHECKING:
    from scapy.packet import Packet

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


class Encapsulated:
    """One kind of tunnel; our listener answers nothing, as a real tunnel end would."""

    name = ""
    one_way = True
    transports: tuple[Transport, ...] = ("udp",)

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the packet, which ends with the marked payload."""
        return make_template(_make_request(self.name))

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same packet: a real device drops the unknown network without a word."""
        return _make_request(self.name)


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
        if data[_IP_ADDRESSES] == _make_request(self.name)[_IP_ADDRESSES]:
            return Reading(False, "our own encapsulated packet came back")
        return Reading(True, f"encapsulated IPv4, protocol {data[9]}")


def _read_network(kind: str, data: bytes) -> Reading:
    """Read the network's number: only a reflector sends packets of our unused network."""
    network = int.from_bytes(data[4:7], "big")
    if network == NETWORK_ID:
        return Reading(False, f"our own {kind} packet came back")
    return Reading(True, f"{kind}, network {network}")


@functools.cache
def _make_request(name: str) -> bytes:
    with import_without_files():
        from scapy.contrib.geneve import GENEVE
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        from scapy.layers.vxlan import VXLAN
        from scapy.packet import Raw

    ip = IP(src="192.0.2.1", dst="192.0.2.2", ttl=1, id=0, flags="DF")
    # Checksum 0 means none: the holes are filled later.
    inner: Packet = ip / UDP(sport=20048, dport=9, chksum=0) / Raw(MARK)
    if name == "ipip":
        return bytes(inner)
    frame = Ether(src="02:4e:50:00:00:01", dst="02:4e:50:00:00:02") / inner
    if name == "vxlan":
        return bytes(VXLAN(flags="Instance", vni=NETWORK_ID) / frame)
    # Neither the control nor the critical bit is set, since there are no options.
    return bytes(GENEVE(proto=_GENEVE_ETHERNET, vni=NETWORK_ID) / frame)
