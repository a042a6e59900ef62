"""Echoes a chunk at a time, by system calls that serve many packets: sendmmsg and recvmmsg.

The socket module does not have them, and importing ctypes takes as long as asking some hundred
hosts: this is for big orders, and for raw IPv4 sockets, which deliver the sender and the TTL in the
header. Where all replies to a chunk are there, it is compared as a whole.
"""

import ctypes
import socket
import struct
from typing import Any, List, Optional

from ...net.icmp import HEADER_BYTES
from .orders import REQUEST_BYTES, Volley, pick
from .sockets import WIDE_CHUNK

# One more than are sent: where fewer than that are heard, they are all that there are.
_ROOM = WIDE_CHUNK + 1
# struct mmsghdr, which begins with a struct msghdr; struct iovec; struct sockaddr_in.
_MESSAGE = struct.Struct("@PIPNPNi0PI0P")
_LENGTH_AT = struct.calcsize("@PIPNPNi0P")
_PART = struct.Struct("@PN")
_NAME = struct.pack("=H14x", socket.AF_INET)
_ADDRESS_AT, _ADDRESS_BYTES = 4, 4
# An IPv4 header without options begins with this byte.
_NO_OPTIONS = 0x45
_IP_BYTES, _TTL_AT, _SENDER_AT = 20, 8, 12
# What is received of a packet that is longer than ours: as much as IP options take.
_REST_BYTES = 40


class Mmsg:
    """Sends and hears over one socket; raises where this Python or system cannot."""

    def __init__(self, sock: socket.socket) -> None:
        libc: Any = ctypes.CDLL(None)
        self._sendmmsg, self._recvmmsg = libc.sendmmsg, libc.recvmmsg
        self._sock = sock
        self._names, self._requests = _Rows(len(_NAME)), _Rows(REQUEST_BYTES)
        self._names.data[:] = _NAME * _ROOM
        self._sent = _messages([self._requests], self._names)
        self._ip, self._icmp, self._rest = (
            _Rows(_IP_BYTES),
            _Rows(REQUEST_BYTES),
            _Rows(_REST_BYTES),
        )
        self._heard = _messages([self._ip, self._icmp, self._rest])
        self._lengths = self._heard.column(_LENGTH_AT)
        self._senders = self._ip.column(_SENDER_AT)

    def send(self, volley: Volley) -> int:
        """How many were sent before there was an error, maybe that of another packet."""
        addresses = b"".join(pick(volley.sweep.packed, volley.places))
        count = len(volley.places)
        for byte in range(_ADDRESS_BYTES):
            column = slice(_ADDRESS_AT + byte, len(_NAME) * count, len(_NAME))
            self._names.data[column] = addresses[byte::_ADDRESS_BYTES]
        self._requests.data[: len(volley.requests)] = volley.requests
        return max(0, int(self._sendmmsg(self._sock.fileno(), self._sent.memory, count, 0)))

    def hear(self) -> int:
        """Read what there is; how many packets; 0 may be an error."""
        return max(0, int(self._recvmmsg(self._sock.fileno(), self._heard.memory, _ROOM, 0, None)))

    def sequence(self) -> int:
        """The number of the first packet."""
        return int.from_bytes(self._icmp.data[HEADER_BYTES - 2 : HEADER_BYTES], "big")

    def ttl_of_all(self, count: int, volley: Volley) -> Optional[int]:
        """The TTL of these packets, where they are the replies to a volley, in order, with one TTL
        and no IP options; else None."""
        heads, end = self._ip.data, _IP_BYTES * count
        ttls, replies = heads[_TTL_AT:end:_IP_BYTES], self._icmp.data[: REQUEST_BYTES * count]
        if (
            len(replies) != len(volley.requests)
            or heads[:end:_IP_BYTES].count(_NO_OPTIONS) != count
            or ttls.count(ttls[0]) != count
            or self._lengths[:count].tolist().count(_IP_BYTES + REQUEST_BYTES) != count
            or self._senders[:count].tobytes() != b"".join(pick(volley.sweep.packed, volley.places))
            or any(replies[::REQUEST_BYTES])  # ECHO_REPLY is 0
        ):
            return None
        # Besides the type only the checksum may be another one.
        for byte in (0, 2, 3):
            replies[byte::REQUEST_BYTES] = volley.requests[byte::REQUEST_BYTES]
        return ttls[0] if replies == volley.requests else None

    def packets(self, count: int) -> List[bytes]:
        """These packets as ``recv`` gives them."""
        parts = (self._ip, self._icmp, self._rest)
        return [
            b"".join(part.row(number) for part in parts)[: self._lengths[number]]
            for number in range(count)
        ]


class _Rows:
    """Memory that the kernel reads and writes: rows of one size, one a packet."""

    def __init__(self, size: int) -> None:
        self.size = size
        # What its pointers point to.
        self.uses: Optional[_Rows] = None
        self.data = bytearray(size * _ROOM)
        self.memory = (ctypes.c_char * len(self.data)).from_buffer(self.data)
        first = ctypes.addressof(self.memory)
        self.addresses = range(first, first + len(self.data), size)

    def row(self, number: int) -> bytearray:
        """What is in one."""
        return self.data[self.size * number : self.size * (number + 1)]

    def column(self, at: int) -> memoryview:
        """The four bytes at this place of each, as numbers of this machine."""
        return memoryview(self.data).cast("I")[at // 4 :: self.size // 4]


def _messages(parts: List[_Rows], names: Optional[_Rows] = None) -> _Rows:
    """A ``struct mmsghdr`` a row, of packets whose parts are rows of these."""
    vectors, messages = _Rows(_PART.size * len(parts)), _Rows(_MESSAGE.size)
    for number in range(_ROOM):
        vector = b"".join(_PART.pack(part.addresses[number], part.size) for part in parts)
        vectors.data[vectors.size * number : vectors.size * (number + 1)] = vector
        name, size = (names.addresses[number], names.size) if names else (0, 0)
        at = _MESSAGE.size * number
        where = vectors.addresses[number]
        _MESSAGE.pack_into(messages.data, at, name, size, where, len(parts), 0, 0, 0, 0)
    messages.uses = vectors
    return messages
