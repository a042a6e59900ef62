"""What asks for DHCP servers, and what they answer."""

from __future__ import annotations

import socket
import struct

from netprobe.agent.segment.dhcp import make_discover, make_solicit, read_answer
from netprobe.agent.segment.packets import make_packet

LINK = bytes.fromhex("020000000001")
XID_4, XID_6 = b"abcd", b"abc"


def offer(options: bytes, transaction: bytes = XID_4) -> bytes:
    """An answer of a server over IPv4, which offers 10.0.0.50."""
    body = b"\2\1\6\0" + transaction + bytes(8) + socket.inet_aton("10.0.0.50") + bytes(216)
    return datagram("10.0.0.9", "255.255.255.255", 68, body + b"\x63\x82\x53\x63" + options)


def advertise(options: bytes, kind: int = 2) -> bytes:
    """The same over IPv6."""
    return datagram("fe80::9", "fe80::1", 546, bytes([kind]) + XID_6 + options)


def datagram(source: str, to: str, port: int, body: bytes) -> bytes:
    """UDP to this port, with a frame's padding."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    ends = b"".join(socket.inet_pton(family, one) for one in (source, to))
    return make_packet(ends, 17, 64, struct.pack("!HHHH", 67, port, 8 + len(body), 0) + body, 6)


def option_6(code: int, value: bytes) -> bytes:
    """An option of DHCPv6."""
    return struct.pack("!HH", code, len(value)) + value


def test_an_offer_names_its_server() -> None:
    """Its option, not the relay that sent it; other kinds and transactions, and what ends too soon,
    are none."""
    named = b"\x36\x04" + socket.inet_aton("10.0.1.9")
    whole = offer(b"\x35\x01\x02" + named + b"\xff" + bytes(20))
    assert read_answer(whole, XID_4) == ("10.0.1.9", "10.0.0.50")
    assert read_answer(whole + bytes(9), XID_4) == ("10.0.1.9", "10.0.0.50")
    others = [
        offer(b"\x35\x01\x05" + named + b"\xff"), offer(named + b"\xff"),
        offer(b"\x35\x01\x02\xff"), offer(b"\x35\x01\x02" + named, b"abce"),
        *(whole[:end] for end in range(270)),
    ]  # fmt: skip
    assert {read_answer(one, XID_4) for one in others} == {None}


def test_an_advertisement_names_its_server() -> None:
    """The sender; a server that has no address to offer answers, too."""
    address = option_6(5, socket.inet_pton(socket.AF_INET6, "fd00::50") + bytes(8))
    offered = option_6(2, b"x") + option_6(3, bytes(12) + address)
    assert read_answer(advertise(offered), XID_6) == ("fe80::9", "fd00::50")
    assert read_answer(advertise(option_6(3, bytes(12))), XID_6) == ("fe80::9", None)
    assert read_answer(advertise(offered, 7), XID_6) is None
    assert read_answer(advertise(offered), b"abd") is None


def test_a_discover_comes_from_nobody() -> None:
    """From 0.0.0.0 to all, with the host's own link-layer address, and the answer goes to all."""
    packet = make_discover(LINK, XID_4)
    assert packet[12:20] == bytes(4) + b"\xff" * 4
    assert packet[20:24] == struct.pack("!HH", 68, 67)
    body = packet[28:]
    assert (body[4:8], body[10:12], body[28:34], len(body)) == (XID_4, b"\x80\0", LINK, 300)
    assert body[236:244] == b"\x63\x82\x53\x63\x35\1\1\xff"


def test_a_solicit_asks_for_an_address() -> None:
    """From the link-local address to all servers: who asks, and one address; no quick lease."""
    packet = make_solicit(LINK, XID_6, "fe80::1")
    ends = [socket.inet_ntop(socket.AF_INET6, packet[at : at + 16]) for at in (8, 24)]
    assert (ends, packet[40:44]) == (["fe80::1", "ff02::1:2"], struct.pack("!HH", 546, 547))
    body = packet[48:]
    assert body[:4] == b"\1" + XID_6
    client = option_6(1, b"\0\3\0\1" + LINK)
    assert body[4:] == client + option_6(8, bytes(2)) + option_6(3, bytes(12))
