"""ICMP echo packets and the sockets for them: datagram socket, raw socket, or neither."""

import os
import socket
import struct
from typing import Dict, NamedTuple, Optional, Tuple

from .sockets import ProbeTarget, open_probe

# linux/icmp.h, linux/icmpv6.h; RFC 792 and RFC 4443.
ECHO_REQUEST: Dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 128}
ECHO_REPLY: Dict[int, int] = {socket.AF_INET: 0, socket.AF_INET6: 129}
PROTOCOL: Dict[int, int] = {
    socket.AF_INET: socket.IPPROTO_ICMP,
    socket.AF_INET6: socket.IPPROTO_ICMPV6,
}
_HEADER = struct.Struct(">BBHHH")
HEADER_BYTES = 8
# SOL_RAW, ICMP_FILTER: a set bit is a type that is not delivered.
_SOL_RAW = 255
_FILTER = 1

DATAGRAM = "datagram"
RAW = "raw"
PROGRAM = "program"


class EchoSocket(NamedTuple):
    """A socket for echo and what kind it is; ``number`` is its identifier (raw only)."""

    sock: socket.socket
    kind: str
    number: int


def open_echo(target: ProbeTarget) -> EchoSocket:
    """A datagram socket where the host permits it, else a raw one. Raises OSError where neither is.

    Datagram sockets need net.ipv4.ping_group_range, which Debian closes; raw ones CAP_NET_RAW. IPv6
    tries raw first: its datagram sockets do not say that our own firewall dropped a packet.
    """
    first, second = _open_datagram, _open_raw
    if target.family == socket.AF_INET6:
        first, second = second, first
    try:
        return first(target)
    except OSError:
        return second(target)


def _open_datagram(target: ProbeTarget) -> EchoSocket:
    sock = open_probe(target, socket.SOCK_DGRAM, PROTOCOL[target.family])
    return EchoSocket(sock, DATAGRAM, 0)


def _open_raw(target: ProbeTarget) -> EchoSocket:
    sock = open_probe(target, socket.SOCK_RAW, PROTOCOL[target.family])
    _filter_replies(sock)
    # Other raw sockets of this host hear our replies and we theirs: the nonce tells them apart.
    return EchoSocket(sock, RAW, os.getpid() & 0xFFFF)


def _filter_replies(sock: socket.socket) -> None:
    reply = ECHO_REPLY[sock.family]
    if sock.family == socket.AF_INET6:
        words = [0xFFFFFFFF] * 8
        words[reply // 32] &= ~(1 << (reply % 32)) & 0xFFFFFFFF
        sock.setsockopt(socket.IPPROTO_ICMPV6, _FILTER, struct.pack("=8I", *words))
    else:
        sock.setsockopt(_SOL_RAW, _FILTER, struct.pack("=I", ~(1 << reply) & 0xFFFFFFFF))


def echo_request(family: int, number: int, sequence: int, payload: bytes) -> bytes:
    """An echo request; the kernel fills in a datagram socket's identifier and IPv6's checksum."""
    kind = ECHO_REQUEST[family]
    bare = _HEADER.pack(kind, 0, 0, number, sequence) + payload
    if family == socket.AF_INET6:
        return bare
    return _HEADER.pack(kind, 0, checksum(bare), number, sequence) + payload


def checksum(data: bytes) -> int:
    """Give the Internet checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    # 2**16 is 1 modulo 65535: the remainder is the sum of the words with its carries added. Only
    # data of nothing but zeros has the sum 0.
    number = int.from_bytes(data, "big")
    total = number % 0xFFFF or (0xFFFF if number else 0)
    return ~total & 0xFFFF


def read_echo_reply(family: int, kind: str, data: bytes) -> Optional[Tuple[int, bytes]]:
    """Sequence number and payload of an echo reply as the socket delivered it; None: it is none.

    Raw IPv4 sockets deliver the IP header too.
    """
    if kind == RAW and family == socket.AF_INET:
        data = data[(data[0] & 15) * 4 :] if data else b""
    if len(data) < HEADER_BYTES or data[0] != ECHO_REPLY[family]:
        return None
    return int(_HEADER.unpack_from(data)[4]), data[HEADER_BYTES:]


def quoted_sequence(data: bytes) -> Optional[int]:
    """Give the sequence number of our own request, as an ICMP error quotes it."""
    if len(data) < HEADER_BYTES:
        return None
    return int(_HEADER.unpack_from(data)[4])
