"""Questions that no neighbour learns anything from, and their answers."""

from __future__ import annotations

import socket
import struct

from netprobe.agent.segment.asking import (
    make_arp_request,
    make_solicitation,
    pack_any,
    read_advertisement,
    read_arp,
)

LINK = bytes.fromhex("020000000001")


def test_a_probe_has_no_sender_address() -> None:
    """RFC 5227: the sender's IP address is 0.0.0.0, and so is the target's link-layer address."""
    frame = make_arp_request(LINK, pack_any("10.0.0.100"), bytes(4))
    assert frame.hex() == "0001080006040001" + LINK.hex() + "00000000" + "000000000000" + "0a000064"
    assert read_arp(frame, b"") is None


def test_a_reply_names_who_has_the_address() -> None:
    """The sender of a reply; what it asks for itself is no answer."""
    reply = bytes.fromhex("0001080006040002") + LINK + pack_any("10.0.0.100") + bytes(10)
    assert read_arp(reply, b"") == (pack_any("10.0.0.100"), LINK)
    assert read_arp(reply[:20], b"") is None
    assert read_arp(reply.replace(b"\0\2", b"\0\1", 1), b"") is None


def test_a_solicitation_comes_from_nobody() -> None:
    """RFC 4862: from ``::`` to the group of the address, without a link, with a right checksum."""
    wanted = pack_any("fd00::1:2345")
    packet = make_solicitation(LINK, wanted, bytes(16))
    source, to, body = packet[8:24], packet[24:40], packet[40:]
    assert (source, socket.inet_ntop(socket.AF_INET6, to)) == (bytes(16), "ff02::1:ff01:2345")
    assert (packet[6:8], body[0], body[8:]) == (b"\x3a\xff", 135, wanted)
    assert add_words(source, to, body) in (0xFFFF, 0x1FFFE)


def test_a_solicitation_from_an_address_says_its_link() -> None:
    """RFC 4861: from the own address, with the link as an option, and a right checksum."""
    own, wanted = pack_any("fd00::9"), pack_any("fd00::1:2345")
    packet = make_solicitation(LINK, wanted, own)
    source, to, body = packet[8:24], packet[24:40], packet[40:]
    assert (source, body[8:], packet[5]) == (own, wanted + b"\1\1" + LINK, 32)
    assert add_words(source, to, body) in (0xFFFF, 0x1FFFE)


def add_words(source: bytes, to: bytes, body: bytes) -> int:
    """The sum of a right checksum."""
    pseudo = source + to + struct.pack("!II", len(body), 58) + body
    total: int = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    return (total & 0xFFFF) + (total >> 16)


def test_an_advertisement_names_who_has_the_address() -> None:
    """Its option, or where it has none the frame's sender; only with the highest hop limit."""
    wanted = pack_any("fd00::1")
    body = bytes([136, 0, 0, 0, 0x20, 0, 0, 0]) + wanted
    option = b"\2\1" + LINK
    header = bytes([0x60, 0, 0, 0, 0, 32, 58, 255]) + bytes(32)
    other = bytes.fromhex("020000000002")
    assert read_advertisement(header + body + option, other) == (wanted, LINK)
    assert read_advertisement(header + body, other) == (wanted, other)
    assert read_advertisement(header[:7] + b"\xfe" + header[8:] + body, other) is None
    assert read_advertisement(header + b"\x87" + body[1:], other) is None
    assert read_advertisement(header + body[:20], other) is None
