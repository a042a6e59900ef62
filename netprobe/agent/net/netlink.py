"""Questions to the kernel's routing (rtnetlink): one answer, or a dump of many; and changes."""

import os
import socket
import struct
from typing import Iterator, Tuple

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x01, 0x04, 0x300
NLM_F_EXCL, NLM_F_CREATE = 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
MOST_BYTES = 65536

_NLMSGHDR = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")


def ask(kind: int, body: bytes) -> bytes:
    """Give the body of the only answer. Raises OSError with the kernel's errno."""
    return next(_read_answers(kind, NLM_F_REQUEST, body))


def dump(kind: int, body: bytes) -> Iterator[bytes]:
    """Give the bodies of all entries. Raises OSError with the kernel's errno."""
    return _read_answers(kind, NLM_F_REQUEST | NLM_F_DUMP, body)


def open_netlink() -> socket.socket:
    """Open a socket that stays in the network namespace of the thread that opens it."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    try:
        sock.bind((0, 0))
    except OSError:
        sock.close()
        raise
    return sock


def change(sock: socket.socket, kind: int, body: bytes, flags: int = 0) -> None:
    """Change something in the socket's namespace. Raises OSError with the kernel's errno."""
    flags |= NLM_F_REQUEST | NLM_F_ACK
    sock.send(_NLMSGHDR.pack(_NLMSGHDR.size + len(body), kind, flags, 1, 0) + body)
    number = -struct.unpack_from("=i", sock.recv(MOST_BYTES), _NLMSGHDR.size)[0]
    if number:
        raise OSError(number, os.strerror(number))


def _read_answers(kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    sock = open_netlink()
    try:
        sock.send(_NLMSGHDR.pack(_NLMSGHDR.size + len(body), kind, flags, 1, 0) + body)
        while True:
            data = sock.recv(MOST_BYTES)
            at = 0
            while at + _NLMSGHDR.size <= len(data):
                length, kind = _NLMSGHDR.unpack_from(data, at)[:2]
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", data, at + _NLMSGHDR.size)[0]
                    raise OSError(number, os.strerror(number))
                yield data[at + _NLMSGHDR.size : at + length]
                at += (length + 3) & ~3
    finally:
        sock.close()


def attribute(kind: int, value: bytes) -> bytes:
    """Give one attribute as requests carry it."""
    padding = b"\0" * (-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + padding


def attributes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Kind and value of every attribute."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
