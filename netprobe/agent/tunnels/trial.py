"""What goes through a tunnel in a trial: echo requests, one segment of full size, a transfer.

A message over the connection is eight bytes (how many bytes follow, how many are to come back) and
these bytes. So a message of the connection's MSS is one segment.
"""

import select
import socket
import struct
import threading
import time
from typing import NamedTuple, Optional

from ..net.binding import LINGER_RESET, family_of
from ..net.icmp import PROTOCOL, RAW, echo_request, read_echo_reply
from .device import Ends

PORT = 8472
# At least two SYNs leave in this time, after 0 and 1 s.
CONNECT_S = 2.3
# A transfer is one of many parts, so that a slow link is none that stands still. A part that takes
# longer is over: TCP has repeated a segment.
PARTS, STILL_S = 10, 2.0
ECHOES, ECHO_S = 3, 1.0
FEW = 64
MOST_BYTES = 1 << 24

_MESSAGE = struct.Struct(">II")


class Trial(NamedTuple):
    """What passed, as ``TunnelTried`` has it."""

    echo: Optional[bool]
    opened: bool
    full: bool
    bytes: int
    took_us: int
    failure: Optional[str]


NOTHING = Trial(None, False, False, 0, 0, None)


def try_tunnel(ends: Ends, count: int, tcp_only: bool) -> Trial:
    """Try a tunnel from a thread in its namespace. Raises OSError where this host cannot."""
    trial = NOTHING._replace(echo=None if tcp_only else send_echoes(ends))
    sock = open_stream_socket(ends)
    try:
        sock.settimeout(CONNECT_S)
        sock.connect((ends.other, PORT))
        sock.settimeout(STILL_S)
        exchange(sock, FEW, FEW)
        trial = trial._replace(opened=True)
        mss = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        exchange(sock, mss - _MESSAGE.size, mss)
        trial = trial._replace(full=True)
        began = time.monotonic()
        for _ in range(PARTS):
            exchange(sock, count // PARTS, count // PARTS)
        return trial._replace(bytes=count, took_us=int((time.monotonic() - began) * 1000000))
    except (OSError, EOFError):
        return trial
    finally:
        sock.close()


def open_stream_socket(ends: Ends) -> socket.socket:
    """Open a socket whose connections end with a reset, those that it accepts, too.

    A connection that the kernel goes on closing after its process holds the namespace, and with it
    the device and the port, for minutes.
    """
    sock = socket.socket(family_of(ends.own), socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
    return sock


def exchange(sock: socket.socket, there: int, back: int) -> None:
    """Send so many bytes, and take as many as are to come back. Raises OSError or EOFError."""
    sock.sendall(_MESSAGE.pack(there, back) + bytes(there))
    _take_bytes(sock, back)


def _take_bytes(sock: socket.socket, left: int) -> None:
    while left:
        taken = len(sock.recv(min(left, 65536)))
        if not taken:
            raise EOFError
        left -= taken


def send_echoes(ends: Ends) -> bool:
    """Tell whether any of some echo requests is answered through the tunnel. Raises OSError."""
    family = family_of(ends.other)
    with socket.socket(family, socket.SOCK_RAW, PROTOCOL[family]) as sock:
        for sequence in range(ECHOES):
            request = echo_request(family, 0, sequence, bytes(56))
            sock.sendto(request, (ends.other, 0))
            if _await_reply(sock):
                return True
    return False


def _await_reply(sock: socket.socket) -> bool:
    """Wait for any reply: this namespace has no network but the tunnel."""
    end = time.monotonic() + ECHO_S
    while select.select([sock], [], [], max(0, end - time.monotonic()))[0]:
        if read_echo_reply(sock.family, RAW, sock.recv(4096)):
            return True
    return False


class Answerer(threading.Thread):
    """The end that answers: one connection after the other, until it is closed."""

    def __init__(self, ends: Ends) -> None:
        threading.Thread.__init__(self, daemon=True)
        self._listener = open_stream_socket(ends)
        self._listener.bind((ends.own, PORT))
        self._listener.listen(8)
        self._taken: Optional[socket.socket] = None

    def run(self) -> None:
        """Answer. What goes wrong with a connection, the other end judges."""
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            self._taken = sock
            try:
                sock.settimeout(STILL_S)
                _answer_messages(sock)
            except (OSError, EOFError):
                pass
            sock.close()

    def close(self) -> None:
        """End it, also in the middle of a transfer."""
        for sock in (self._listener, self._taken):
            try:
                if sock is not None:
                    sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.join()
        self._listener.close()


def _answer_messages(sock: socket.socket) -> None:
    while True:
        head = b""
        while len(head) < _MESSAGE.size:
            more = sock.recv(_MESSAGE.size - len(head))
            if not more:
                return
            head += more
        there, back = _MESSAGE.unpack(head)
        _take_bytes(sock, min(there, MOST_BYTES))
        sock.sendall(bytes(min(back, MOST_BYTES)))
