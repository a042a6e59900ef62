"""Packet sockets on the network segments of this host."""

import socket
import struct
from typing import Optional

from ..net.bpf import attach

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 263, 1, 0
LINK_BYTES = 6

_MEMBERSHIP = struct.Struct("=iHH8s")


def open_segment(protocol: int, instructions: bytes, device: Optional[str] = None) -> socket.socket:
    """Open a packet socket for one protocol, at a device or at all. Raises OSError.

    Packets begin with their network header. One that came before the filter may be any.
    """
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(protocol))
    try:
        attach(sock, instructions)
        sock.setblocking(False)
        # Python binds to named devices only.
        if device is not None:
            sock.bind((device, protocol))
    except OSError:
        sock.close()
        raise
    return sock


def hear_group(sock: socket.socket, device: str, link: bytes) -> None:
    """Let a device take in frames to a group, as long as the socket is open; nothing is sent."""
    entry = _MEMBERSHIP.pack(socket.if_nametoindex(device), PACKET_MR_MULTICAST, len(link), link)
    try:
        sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, entry)
    except OSError:
        pass  # a device without groups, or one that is down
