"""What goes through a tunnel in a trial: echo requests, one segment of full size, a transfer.

A message over the connection is eight bytes (how many bytes follow, how many are to come back) and
these bytes. So a message of the connection's MSS is one segment.
"""

import os
import select
import socket
import struct
import threading
import time
from typing import NamedTuple, Optional

from ..net.binding import LINGER_RESET, family_of
from ..net.icmp import ECHO_REPLY, ECHO_REQUEST, PROTOCOL
from .device import Ends

PORT = 8472
# Two SYNs leave in this time (after 0 and 1 s; three since Linux 6.5).
CONNECT_S = 2.3
# A transfer that stands still for so long is over: TCP has repeated a segment three times.
STILL_S = 2.0
ECHOES, ECHO_S = 3, 1.0
FEW = 64
MOST_BYTES = 1 << 24

_MESSAGE = struct.Struct(">II")
_ECHO = struct.Struct(">BBHHH")


class Trial(NamedTuple):
    """What passed, as ``TunnelTried`` has it."""

    echo: Optional[bool]
    opened: bool
    full: bool
    sent: int
    got: int
    took_us: int
    mss: int
    failure: Optional[str]


NOTHING = Trial(None, False, False, 0, 0, 0, 0, None)


def try_tunnel(ends: Ends, count: int, tcp_only: bool) -> Trial:
    """Try a tunnel from a thread in its namespace. Raises OSError where a socket fails here."""
    trial = NOTHING._replace(echo=None if tcp_only else send_echoes(ends))
    sock = open_stream_socket(ends)
    try:
        sock.settimeout(CONNECT_S)
        sock.connect((ends.other, PORT))
        sock.settimeout(STILL_S)
        exchange(sock, FEW, FEW)
        trial = trial._replace(opened=True)
        mss = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        trial = trial._replace(mss=mss)
        exchange(sock, mss - _MESSAGE.size, mss)
        trial = trial._replace(full=True)
        began = time.monotonic()
        got = exchange(sock, count, count)
        took_us = int((time.monotonic() - began) * 1000000)
        return trial._replace(sent=count, got=got, took_us=took_us)
    except (OSError, EOFError) as error:
        return trial._replace(failure=str(error) or type(error).__name__)
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


def exchange(sock: socket.socket, there: int, back: int) -> int:
    """Send so many bytes, and take as many as are to come back. Raises OSError or EOFError."""
    sock.sendall(_MESSAGE.pack(there, back) + bytes(there))
    return _take_bytes(sock, back)


def _take_bytes(sock: socket.socket, count: int) -> int:
    left = count
    while left:
        taken = len(sock.recv(min(left, 65536)))
        if not taken:
            raise EOFError("the other end closed the connection")
        left -= taken
    return count


def send_echoes(ends: Ends) -> bool:
    """Tell whether any of some echo requests is answered through the tunnel."""
    family = family_of(ends.other)
    with socket.socket(family, socket.SOCK_RAW, PROTOCOL[family]) as sock:
        number = os.getpid() & 0xFFFF
        for sequence in range(1, ECHOES + 1):
            sock.sendto(_make_echo(family, number, sequence), (ends.other, 0))
            if _await_reply(sock, family, number):
                return True
    return False


def _make_echo(family: int, number: int, sequence: int) -> bytes:
    kind, payload = ECHO_REQUEST[family], bytes(range(56))
    message = _ECHO.pack(kind, 0, 0, number, sequence) + payload
    if family == socket.AF_INET6:
        return message  # the kernel writes the checksum
    total = sum(struct.unpack(">%dH" % (len(message) // 2), message))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return _ECHO.pack(kind, 0, ~total & 0xFFFF, number, sequence) + payload


def _await_reply(sock: socket.socket, family: int, number: int) -> bool:
    end = time.monotonic() + ECHO_S
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            return False
        data = sock.recv(4096)
        if family == socket.AF_INET:
            data = data[(data[0] & 0x0F) * 4 :]
        if len(data) >= _ECHO.size:
            kind, _code, _sum, its_number, _sequence = _ECHO.unpack_from(data)
            if kind == ECHO_REPLY[family] and its_number == number:
                return True


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
