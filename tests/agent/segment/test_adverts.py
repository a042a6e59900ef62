"""What routers with virtual addresses send, and nothing else."""

from __future__ import annotations

import socket
import struct

from netprobe.agent.segment.adverts import Advert, read_advert

SENDER = {4: "10.0.0.9", 6: "fe80::9"}
VRRP2 = bytes.fromhex("21336401 00010000 0a000064 0000000000000000".replace(" ", ""))
VRRP3 = bytes.fromhex("31336401 00640000 0a000064".replace(" ", ""))
CARP = bytes([0x21, 7, 100, 7, 0, 1, 0, 0]) + bytes(28)
# HSRP (RFC 2281): version 0, hello, active, hello and hold time, priority, group.
HSRP = bytes([0, 0, 16, 3, 10, 110, 5, 0]) + b"cisco\0\0\0" + bytes([10, 0, 0, 100])
HSRP2 = struct.pack("!BBBBBBH6sIII", 1, 40, 2, 0, 6, 4, 300, bytes(6), 110, 3000, 10000) + bytes(16)


def packet(protocol: int, body: bytes, family: int = 4, ttl: int = 255) -> bytes:
    """An IP packet to a group."""
    if family == 6:
        header = struct.pack("!IHBB", 6 << 28, len(body), protocol, ttl)
        ends = [socket.inet_pton(socket.AF_INET6, one) for one in (SENDER[6], "ff02::12")]
    else:
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, ttl, protocol, 0)
        ends = [socket.inet_aton(one) for one in (SENDER[4], "224.0.0.18")]
    return header + b"".join(ends) + body


def datagram(port: int, body: bytes) -> bytes:
    """UDP from the port to the port."""
    return struct.pack("!HHHH", port, port, 8 + len(body), 0) + body


def test_each_kind_is_read() -> None:
    """Id and priority of each; a frame's padding is no part of it, which tells CARP from VRRP."""
    told = {
        packet(112, VRRP2): Advert("VRRPv2", 51, 100, SENDER[4]),
        packet(112, VRRP3): Advert("VRRPv3", 51, 100, SENDER[4]),
        packet(112, VRRP3, 6): Advert("VRRPv3", 51, 100, SENDER[6]),
        packet(112, CARP) + bytes(6): Advert("CARP", 7, 100, SENDER[4]),
        packet(17, datagram(1985, HSRP), ttl=1): Advert("HSRP", 5, 110, SENDER[4]),
        packet(17, datagram(1985, HSRP2), ttl=1): Advert("HSRPv2", 300, 110, SENDER[4]),
        packet(17, datagram(2029, HSRP2), 6): Advert("HSRPv2", 300, 110, SENDER[6]),
    }  # fmt: skip
    assert {one: read_advert(one) for one in told} == told


def test_nothing_else_is() -> None:
    """What came through a router, other types and versions, other ports, and what ends too soon."""
    others = [
        packet(112, VRRP2, ttl=254), packet(112, b"\x22" + VRRP2[1:]), packet(112, b"NETP" * 5),
        packet(17, datagram(1986, HSRP)), packet(17, datagram(1985, b"\1" + HSRP[1:])),
        packet(17, datagram(1985, HSRP2[:3] + b"\1" + HSRP2[4:])), packet(6, VRRP2), b"",
        *(packet(112, VRRP2)[:end] for end in range(1, 24)),
        *(packet(17, datagram(1985, HSRP))[:end] for end in range(20, 35)),
    ]  # fmt: skip
    assert {read_advert(one) for one in others} == {None}
