"""What the kernel knows of a TCP connection: the numbers of TCP_INFO by name."""

import socket
import struct
from typing import Dict

# linux/tcp.h, struct tcp_info: eight bytes, then 32-bit words, later 64-bit ones. Kernels only ever
# add to its end, so the returned length says which fields there are.
INFO_BYTES = 256
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT = 1, 4, 5, 8
# States in which the connection is alive, whatever error the socket has just reported.
ALIVE = frozenset((ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT))

_FIELDS = (
    ("state", 0, "=B"), ("retransmits", 2, "=B"), ("snd_mss", 16, "=I"), ("rcv_mss", 20, "=I"),
    ("unacked", 24, "=I"), ("lost", 32, "=I"), ("retrans", 36, "=I"), ("pmtu", 60, "=I"),
    ("rtt_us", 68, "=I"), ("advmss", 84, "=I"), ("total_retrans", 100, "=I"),
    ("bytes_acked", 120, "=Q"), ("bytes_received", 128, "=Q"), ("segs_out", 136, "=I"),
    ("segs_in", 140, "=I"), ("rcv_ooopack", 224, "=I"),
)  # fmt: skip


def tcp_facts(sock: socket.socket) -> Dict[str, int]:
    """Give the facts that this kernel has; a field that it lacks is not there."""
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    except OSError:
        return {}
    return {
        name: struct.unpack_from(shape, raw, at)[0]
        for name, at, shape in _FIELDS
        if at + struct.calcsize(shape) <= len(raw)
    }
