"""What routers with virtual addresses tell each other, read from packets: VRRP, CARP and HSRP."""

import struct
from typing import NamedTuple, Optional

from .packets import read_packet
from .wire_socket import UDP

VRRP = 112
# By the family of addresses.
HSRP_PORTS = {4: 1985, 6: 2029}
UDP_HEADER = 8
# No router forwards VRRP and CARP: they come with the highest TTL.
TTL = 255
# A CARP advertisement has the version of VRRPv2; its length, in words behind the header, is always
# 7, and its whole length is none that a VRRPv2 packet with as many addresses has.
CARP_BYTES, CARP_WORDS = 36, 7
ADVERTISEMENT = 1
VERSION_2, VERSION_3 = 2, 3

_VRRP = struct.Struct("!BBBB")
_HSRP1 = struct.Struct("!BBBBBBB")
# Type and length of the group's part, version, operation, state, family; group, identifier;
# priority.
_HSRP2 = struct.Struct("!BBBBBBH6sI")
HSRP2_PART = (1, 40, 2)
HELLO = 0


class Advert(NamedTuple):
    """One packet of a router: see ``RouterHeard``."""

    speaks: str
    group: int
    priority: int
    sender: str


def read_advert(packet: bytes) -> Optional[Advert]:
    """Read a packet from its IP header on; None: it is nothing of this kind."""
    try:
        return _read_packet(packet)
    except (struct.error, IndexError, ValueError):
        return None  # it ends too soon


def _read_packet(packet: bytes) -> Optional[Advert]:
    protocol, ttl, sender, body = read_packet(packet)
    if protocol == VRRP:
        return _read_vrrp(body, sender) if ttl == TTL else None
    port = HSRP_PORTS[6 if ":" in sender else 4]
    is_hsrp = protocol == UDP and struct.unpack_from("!HH", body)[1] == port
    return _read_hsrp(body[UDP_HEADER:], sender) if is_hsrp else None


def _read_vrrp(body: bytes, sender: str) -> Optional[Advert]:
    first, group, priority, count = _VRRP.unpack_from(body)
    version, kind = first >> 4, first & 15
    if kind != ADVERTISEMENT or version not in (VERSION_2, VERSION_3):
        return None
    if version == VERSION_2 and count == CARP_WORDS and len(body) == CARP_BYTES:
        return Advert("CARP", group, priority, sender)
    return Advert("VRRPv%d" % version, group, priority, sender)


def _read_hsrp(body: bytes, sender: str) -> Optional[Advert]:
    if tuple(bytearray(body[:3])) == HSRP2_PART:
        fields = _HSRP2.unpack_from(body)
        return Advert("HSRPv2", fields[6], fields[8], sender) if fields[3] == HELLO else None
    version, operation, _state, _hello, _hold, priority, group = _HSRP1.unpack_from(body)
    is_hello = version == 0 and operation == HELLO
    return Advert("HSRP", group, priority, sender) if is_hello else None
