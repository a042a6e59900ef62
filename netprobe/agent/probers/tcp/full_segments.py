"""Full-sized segments both ways, on a connection whose request was answered.

The listener gives as many bytes back as it got behind the request, once the stream has ended there.
The first segment of each way is as large as both kernels agreed: where it never arrives, while
small ones do, the path is too narrow for it and nobody told the sender.
"""

import fcntl
import socket
import struct
import termios
from typing import Optional, Tuple

from ...net.sockets import IP_HEADER
from ...wire import replies

# Three: one that is lost is sent again at once, because the later ones are acknowledged.
SEGMENTS = 3
TCP_HEADER = 20
# What the kernel takes at most for TCP_MAXSEG (net/ipv4/tcp.c).
MOST_SEGMENT = 32767


def limit_segments(sock: socket.socket, size: int) -> None:
    """Let no packet of a connection that is still to be opened be larger, in either direction."""
    most = size - IP_HEADER[sock.family] - TCP_HEADER
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, min(most, MOST_SEGMENT))


class FullSegments:
    """The bytes that are on their way. ``answered_by``: the host that answered the request."""

    def __init__(self, sock: socket.socket, answered_by: int) -> None:
        self._sock = sock
        self.answered_by = answered_by
        self.size = SEGMENTS * sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        self._received = 0
        self._before: Optional[Tuple[int, int]] = None

    def take(self, count: int) -> bool:
        """Count bytes that came back; tell whether these were the last."""
        self._received += count
        return self._received >= self.size

    def moves(self) -> bool:
        """Tell whether anything was acknowledged or came back since this was last asked; yes, where
        it was never asked."""
        before, self._before = self._before, self._count_bytes()
        return self._before != before

    def conclude(self) -> str:
        """Give the answer's word: it is the nonce's where any full-sized segment came both ways."""
        unacknowledged, received = self._count_bytes()
        if received:
            return replies.NONCE
        return replies.NARROW if unacknowledged >= self.size else replies.NARROW_BACK

    def _count_bytes(self) -> Tuple[int, int]:
        """Give the bytes that nobody has acknowledged (the FIN counts as one), and those back."""
        (queued,) = struct.unpack("i", fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, bytes(4)))
        return min(self.size, queued), self._received
