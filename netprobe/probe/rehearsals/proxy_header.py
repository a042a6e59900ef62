"""The header of the PROXY protocol, which some balancers send before everything else."""

from __future__ import annotations

from typing import NamedTuple

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
WORD = b"PROXY "
LONGEST_LINE = 107
HEAD_BYTES = 16


class ProxyHeader(NamedTuple):
    """``length``: its bytes; 0: there is none; None: more must be read to tell."""

    length: int | None
    version: int = 0


def read_proxy_header(data: bytes) -> ProxyHeader:
    """Read the header at the beginning of a connection."""
    if not data:
        return ProxyHeader(None)
    for begin, read in ((WORD, _read_line), (SIGNATURE, _read_binary)):
        if data.startswith(begin):
            return read(data)
        if begin.startswith(data):
            return ProxyHeader(None)
    return ProxyHeader(0)


def _read_line(data: bytes) -> ProxyHeader:
    end = data.find(b"\r\n", 0, LONGEST_LINE)
    if end >= 0:
        return ProxyHeader(end + 2, 1)
    return ProxyHeader(0) if len(data) >= LONGEST_LINE else ProxyHeader(None)


def _read_binary(data: bytes) -> ProxyHeader:
    if len(data) < HEAD_BYTES:
        return ProxyHeader(None)
    length = HEAD_BYTES + int.from_bytes(data[14:16], "big")
    return ProxyHeader(length if len(data) >= length else None, 2)
