"""The error queue of a socket: which ICMP error came, about which packet, and who sent it.

errno alone cannot tell a reset from a router's reject. With IP_RECVERR the kernel keeps the ICMP
error itself, for UDP, ICMP and raw sockets, and for connect() of TCP since Linux 5.8 (older kernels
simply leave the queue empty). No privilege is needed.
"""

import socket
import struct
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ..wire.failures import until_error
from ..wire.parts import IcmpFact

# linux/in.h and linux/in6.h; the socket module does not name them all in Python 3.6.
IP_TTL = 2
IP_RECVERR = 11
IP_RECVTTL = 12
IPV6_RECVERR = 25
IPV6_RECVHOPLIMIT = 51
IPV6_HOPLIMIT = 52
MSG_ERRQUEUE = 0x2000
# Level and kind of the control messages beside a packet or an error.
_TTL = ((socket.IPPROTO_IP, IP_TTL), (socket.IPPROTO_IPV6, IPV6_HOPLIMIT))
_ERROR = ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR))

# struct sock_extended_err of linux/errqueue.h: errno, origin, type, code, pad, info, data.
_EXTENDED = struct.Struct("=IBBBBII")
_INT = struct.Struct("=i")
ORIGIN_ICMP = 2
ORIGIN_ICMP6 = 3

ANCILLARY_BYTES = 512
_ANCILLARY, _NAME = itemgetter(1), itemgetter(3)
_recvmsg: Any = socket.SocketType.recvmsg


class QueuedError(NamedTuple):
    """One entry of the error queue.

    ``to`` and ``port`` are the destination of OUR packet that the error is about; ``offender`` is
    the sender of the error; ``ttl`` is the error's own TTL on arrival; ``info`` is the MTU where
    there is one. ``data`` is the start of our packet's payload, as far as it was quoted.
    """

    errno: int
    origin: int
    type: int
    code: int
    offender: Optional[str]
    ttl: Optional[int]
    to: str
    port: int
    info: int
    data: bytes

    @property
    def is_icmp(self) -> bool:
        """Whether a host said this; else our own kernel did without any packet."""
        return self.origin in (ORIGIN_ICMP, ORIGIN_ICMP6) and self.offender is not None

    def fact(self) -> Optional[IcmpFact]:
        """Give the error as it goes over the wire."""
        if not self.is_icmp or self.offender is None:
            return None
        return IcmpFact(self.type, self.code, self.offender, self.ttl)


def listen_for_errors(sock: socket.socket) -> None:
    """Ask the kernel to keep ICMP errors of this socket, and the TTL of what arrives."""
    set_ip_option(sock, IP_RECVERR, IPV6_RECVERR, 1)
    set_ip_option(sock, IP_RECVTTL, IPV6_RECVHOPLIMIT, 1)


def set_ip_option(sock: socket.socket, option: int, option_v6: int, value: int) -> None:
    """Set an option that IPv4 and IPv6 have under different numbers."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, option_v6, value)
    else:
        sock.setsockopt(socket.IPPROTO_IP, option, value)


def drain(sock: socket.socket, room: int = 512) -> List[QueuedError]:
    """Empty the error queue, and give everything that was in it."""
    errors: List[QueuedError] = []
    while True:
        try:
            data, ancillary, _, name = sock.recvmsg(room, ANCILLARY_BYTES, MSG_ERRQUEUE)
        except OSError:
            # Empty. Any other errno here is the socket's pending one, which recvmsg does not
            # return for MSG_ERRQUEUE; a queue that cannot be read is as good as an empty one.
            return errors
        error = _read_error(data, ancillary, name)
        if error is not None:
            errors.append(error)


def about(errors: List[QueuedError], to: str, port: Optional[int]) -> Optional[QueuedError]:
    """Give the first error that is about a packet of ours to this destination, ICMP before local.

    The destination is checked because a socket that is used again, and any raw socket, also holds
    the errors of other flows.
    """
    local = None
    for error in errors:
        if error.to != to or (port is not None and error.port != port):
            continue
        if error.is_icmp:
            return error
        local = local or error
    return local


# Why a connect failed: errno, and the ICMP error that caused it (None: our own kernel did).
ConnectError = Tuple[int, Optional[IcmpFact]]


def next_cause(sock: socket.socket, to: Tuple[Any, ...]) -> Optional[ConnectError]:
    """Why our packet to this socket address failed, by the queue as it is now; ICMP before local.

    Reads no further than it must: the rest is about other flows, and later readers skip it.
    """
    return _find_cause(None, sock, to)


def next_causes(
    socks: Sequence[Any], addresses: Sequence[Tuple[Any, ...]]
) -> List[Optional[ConnectError]]:
    """``next_cause`` of many sockets and the addresses that they went to."""
    # An empty queue ends this; that one and those behind it are read one by one.
    heard = until_error(
        map(_recvmsg, socks, repeat(1), repeat(ANCILLARY_BYTES), repeat(MSG_ERRQUEUE))
    )
    told = list(map(_ANCILLARY, heard))
    if told and told.count(told[0]) == len(socks) and list(map(_NAME, heard)) == addresses:
        cause = _read_cause(tuple(told[0]))
        if cause is not None and cause[1] is not None:
            return [cause] * len(socks)
    return [
        _find_cause(heard[number] if number < len(heard) else None, sock, to)
        for number, (sock, to) in enumerate(zip(socks, addresses))
    ]


def _find_cause(
    heard: Optional[Tuple[Any, ...]], sock: socket.socket, to: Tuple[Any, ...]
) -> Optional[ConnectError]:
    """``next_cause`` where one entry of the queue may have been read already."""
    local = None
    while True:
        try:
            heard = heard or sock.recvmsg(1, ANCILLARY_BYTES, MSG_ERRQUEUE)
        except OSError:
            return local
        _, ancillary, _, name = heard
        heard = None
        if name != to and (not name or _strip_scope(name) != _strip_scope(to)):
            continue
        cause = _read_cause(tuple(ancillary))
        if cause is not None and cause[1] is not None:
            return cause
        local = local or cause


def _strip_scope(address: Tuple[Any, ...]) -> Tuple[str, int]:
    """Address and port without the scope, which Python 3.6 writes behind the address."""
    return address[0].partition("%")[0], address[1]


@lru_cache(maxsize=256)
def _read_cause(ancillary: Tuple[Tuple[int, int, bytes], ...]) -> Optional[ConnectError]:
    # A host that rejects a thousand connects sends the same error a thousand times.
    error = _read_error(b"", ancillary, None)
    return None if error is None else (error.errno, error.fact())


def ttl_of(ancillary: Sequence[Tuple[int, int, bytes]]) -> Optional[int]:
    """Give the TTL or hop limit that the kernel put beside a received packet."""
    for level, kind, data in ancillary:
        if (level, kind) in _TTL:
            return int(_INT.unpack_from(data)[0])
    return None


def _read_error(
    data: bytes, ancillary: Sequence[Tuple[int, int, bytes]], name: Optional[Tuple[str, int]]
) -> Optional[QueuedError]:
    for level, kind, body in ancillary:
        if (level, kind) in _ERROR:
            number, origin, type_, code, _, info, _ = _EXTENDED.unpack_from(body)
            offender = _read_offender(body[_EXTENDED.size :])
            to = name[0].partition("%")[0] if name else ""
            port = name[1] if name else 0
            return QueuedError(
                number, origin, type_, code, offender, ttl_of(ancillary), to, port, info, data
            )
    return None


@lru_cache(maxsize=256)
def _read_offender(sockaddr: bytes) -> Optional[str]:
    if len(sockaddr) < 8:
        return None
    (family,) = struct.unpack_from("=H", sockaddr)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, sockaddr[4:8])
    if family == socket.AF_INET6 and len(sockaddr) >= 24:
        return socket.inet_ntop(socket.AF_INET6, sockaddr[8:24])
    return None
