"""Questions to the kernel's routing (rtnetlink): one answer, or a dump of many."""

import os
import socket
import struct
from typing import Iterator, Tuple

NLM_F_REQUEST, NLM_F_DUMP = 0x01, 0x300
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


def _read_answers(kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    try:
        sock.bind((0, 0))
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
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def attributes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Kind and value of every attribute."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
