"""IP packets as they stand on a segment: made with their checksums, and read."""

import socket
import struct
from typing import Tuple

from ..net.icmp import checksum

IPV6_HEADER = 40
_IP4 = struct.Struct("!BBHHHBBH")


def make_packet(ends: bytes, protocol: int, ttl: int, body: bytes, at: int) -> bytes:
    """Give a packet; ``ends``: its addresses, ``at``: where in its body the checksum stands."""
    total = checksum(ends + struct.pack("!II", len(body), protocol) + body) or 0xFFFF
    body = body[:at] + struct.pack("!H", total) + body[at + 2 :]
    if len(ends) > 8:
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, ttl) + ends + body
    header = _IP4.pack(0x45, 0, 20 + len(body), 0, 0, ttl, protocol, 0)
    return header[:10] + struct.pack("!H", checksum(header + ends)) + ends + body


def read_packet(packet: bytes) -> Tuple[int, int, str, bytes]:
    """Give the protocol, TTL, sender and body of a packet, without the padding of its frame.

    Raises struct.error, IndexError or ValueError if it ends too soon.
    """
    data = bytearray(packet)
    if data[0] >> 4 == 6:
        end = IPV6_HEADER + int(struct.unpack_from("!H", packet, 4)[0])
        sender = socket.inet_ntop(socket.AF_INET6, packet[8:24])
        return data[6], data[7], sender, packet[IPV6_HEADER:end]
    (end,) = struct.unpack_from("!H", packet, 2)
    sender = socket.inet_ntop(socket.AF_INET, packet[12:16])
    return data[9], data[8], sender, packet[(data[0] & 15) * 4 : end]
