"""Bind one listener's socket on the probed address, touching nothing that somebody else holds.

Never SO_REUSEPORT, and never SO_REUSEADDR on UDP: both would take packets from a live service.
"""

import errno
import socket
from typing import Any, Dict, List, Tuple, Union

IP_PKTINFO = getattr(socket, "IP_PKTINFO", 8)
BACKLOG = 1024
# Closing first must leave no TIME_WAIT on a port that a service of the platform will want. Accepted
# connections inherit this from their listener.
LINGER_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"

SocketOption = Tuple[int, int, Union[int, bytes]]


def family_of(address: str) -> int:
    """Give the family of an IP address in text."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def wildcard(address: str) -> str:
    """Give the wildcard of an address's family."""
    return "::" if ":" in address else "0.0.0.0"


def has_address(address: str) -> bool:
    """Tell whether this host has the address now (a NAT address it has not)."""
    sock = socket.socket(family_of(address), socket.SOCK_DGRAM)
    try:
        sock.bind((address, 0))
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return False
        raise
    finally:
        sock.close()
    return True


def bind_tcp(address: str, port: int, reuse: bool) -> socket.socket:
    """Bind a TCP listener. ``reuse`` only where nothing but old connections keeps the port."""
    options: List[SocketOption] = [(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)]
    if reuse:
        options.append((socket.SOL_SOCKET, socket.SO_REUSEADDR, 1))
    return _bind_socket(address, port, socket.SOCK_STREAM, 0, options)


def bind_udp(address: str, port: int) -> socket.socket:
    """Bind a UDP listener; on a wildcard it learns which address was asked."""
    asked: Dict[str, SocketOption] = {
        "0.0.0.0": (socket.IPPROTO_IP, IP_PKTINFO, 1),
        "::": (socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1),
    }
    options = [asked[address]] if address in asked else []
    return _bind_socket(address, port, socket.SOCK_DGRAM, 0, options)


def bind_raw(address: str, number: int) -> socket.socket:
    """Bind a raw socket that receives an IP protocol for this address (CAP_NET_RAW)."""
    return _bind_socket(address, 0, socket.SOCK_RAW, number, [])


def _bind_socket(
    address: str, port: int, kind: int, protocol: int, options: List[SocketOption]
) -> socket.socket:
    sock = socket.socket(family_of(address), kind, protocol)
    try:
        for option in options:
            sock.setsockopt(*option)
        # A raw socket has its "port" from birth, and then the kernel refuses V6ONLY with EINVAL.
        if sock.family == socket.AF_INET6 and kind != socket.SOCK_RAW:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        sock.setblocking(False)
        if kind == socket.SOCK_STREAM:
            sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def peer(address: Tuple[Any, ...]) -> str:
    """Give the text of a peer's address as ``accept`` and ``recvfrom`` give it, without a scope."""
    return str(address[0]).partition("%")[0]
